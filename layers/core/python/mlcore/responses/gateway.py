"""MLflow's JSON of the gateway's configuration. It never contains values of secrets."""

from __future__ import annotations

from typing import Any

from mlcore.entities.gateway import (
    Binding,
    BudgetPolicy,
    Configuration,
    Endpoint,
    Guardrail,
    GuardrailUse,
    ModelDefinition,
    ModelMapping,
    Secret,
)
from mlcore.responses.evaluation.scorers import scorer

Json = dict[str, Any]


def secret(entity: Secret) -> Json:
    """Returns the JSON of MLflow's message ``mlflow.GatewaySecretInfo``."""
    return _without_none(
        secret_id=entity.secret_id,
        secret_name=entity.secret_name,
        masked_values=entity.masked or None,
        created_at=entity.created_at,
        last_updated_at=entity.last_updated_at,
        provider=entity.provider,
        created_by=entity.created_by,
        last_updated_by=entity.last_updated_by,
        auth_config=entity.auth_config or None,
    )


def model_definition(entity: ModelDefinition, known: Configuration) -> Json:
    """Returns the JSON of ``mlflow.GatewayModelDefinition``. If its secret was deleted, id and name
    of the secret are left out."""
    secret = known.secrets.get(entity.secret_id)
    return _without_none(
        model_definition_id=entity.model_definition_id,
        name=entity.name,
        secret_id=None if secret is None else secret.secret_id,
        secret_name=None if secret is None else secret.secret_name,
        provider=entity.provider,
        model_name=entity.model_name,
        created_at=entity.created_at,
        last_updated_at=entity.last_updated_at,
        created_by=entity.created_by,
        last_updated_by=entity.last_updated_by,
    )


def mapping(endpoint_id: str, entity: ModelMapping, known: Configuration) -> Json:
    """Returns the JSON of MLflow's message ``mlflow.GatewayEndpointModelMapping``."""
    definition = known.model_definitions.get(entity.model_definition_id)
    return _without_none(
        mapping_id=entity.mapping_id,
        endpoint_id=endpoint_id,
        model_definition_id=entity.model_definition_id,
        model_definition=None if definition is None else model_definition(definition, known),
        weight=entity.weight,
        created_at=entity.created_at,
        created_by=entity.created_by,
        linkage_type=entity.linkage_type,
        fallback_order=entity.fallback_order,
    )


def endpoint(entity: Endpoint, known: Configuration) -> Json:
    """Returns the JSON of MLflow's message ``mlflow.GatewayEndpoint``."""
    mappings = [
        mapping(entity.endpoint_id, model_mapping, known) for model_mapping in entity.mappings
    ]
    tags = [{"key": key, "value": value} for key, value in sorted(entity.tags.items())]
    fallback = entity.fallback
    return _without_none(
        endpoint_id=entity.endpoint_id,
        name=entity.name,
        created_at=entity.created_at,
        last_updated_at=entity.last_updated_at,
        model_mappings=mappings or None,
        created_by=entity.created_by or "",
        last_updated_by=entity.last_updated_by or "",
        tags=tags or None,
        routing_strategy=entity.routing_strategy,
        fallback_config=None if fallback is None else _without_none(**fallback._asdict()),
        experiment_id=entity.experiment_id,
        usage_tracking=entity.usage_tracking,
    )


def binding(endpoint_id: str, entity: Binding) -> Json:
    """Returns the JSON of MLflow's message ``mlflow.GatewayEndpointBinding``."""
    return _without_none(
        endpoint_id=endpoint_id,
        resource_type=entity.resource_type,
        resource_id=entity.resource_id,
        created_at=entity.created_at,
        last_updated_at=entity.created_at,
        created_by=entity.created_by,
        last_updated_by=entity.created_by,
        display_name=entity.display_name,
    )


def guardrail(entity: Guardrail, known: Configuration) -> Json:
    """Returns the JSON of ``mlflow.GatewayGuardrail``. The endpoint that rewrites refused texts is
    given by its name."""
    action_endpoint = known.endpoints.get(entity.action_endpoint_id or "")
    return _without_none(
        guardrail_id=entity.guardrail_id,
        name=entity.name,
        scorer=scorer(entity.scorer),
        stage=entity.stage,
        action=entity.action,
        action_endpoint_id=None if action_endpoint is None else action_endpoint.name,
        created_by=entity.created_by or "",
        created_at=entity.created_at,
        last_updated_by=entity.last_updated_by or "",
        last_updated_at=entity.last_updated_at,
    )


def guardrail_config(endpoint_id: str, use: GuardrailUse, known: Configuration) -> Json:
    """Returns the JSON of ``mlflow.GatewayGuardrailConfig``: one use of a guardrail by an endpoint.
    The guardrail must exist."""
    return _without_none(
        endpoint_id=endpoint_id,
        guardrail_id=use.guardrail_id,
        execution_order=use.execution_order,
        created_by=use.created_by or "",
        created_at=use.created_at,
        guardrail=guardrail(known.guardrails[use.guardrail_id], known),
    )


def budget_policy(entity: BudgetPolicy) -> Json:
    """Returns the JSON of MLflow's message ``mlflow.GatewayBudgetPolicy``."""
    return _without_none(
        budget_policy_id=entity.budget_policy_id,
        budget_unit=entity.budget_unit,
        budget_amount=entity.budget_amount,
        duration={"unit": entity.duration_unit, "value": entity.duration_value},
        target_scope=entity.target_scope,
        budget_action=entity.budget_action,
        created_by=entity.created_by or "",
        created_at=entity.created_at,
        last_updated_by=entity.last_updated_by or "",
        last_updated_at=entity.last_updated_at,
        target_value=entity.target_value,
    )


def _without_none(**fields: Any) -> Json:
    return {name: value for name, value in fields.items() if value is not None}
