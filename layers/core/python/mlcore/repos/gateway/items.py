"""Converts the parts of a gateway configuration (secrets, model definitions, endpoints, guardrails)
to items of the table and back."""

from __future__ import annotations

import json
from typing import Any, Final

from mlcore.db import keys
from mlcore.db.expression import Raw
from mlcore.entities import gateway
from mlcore.entities.evaluation.scorers import ScorerVersion
from mlcore.entities.gateway import (
    Binding,
    Endpoint,
    FallbackConfig,
    Guardrail,
    GuardrailUse,
    ModelDefinition,
    Secret,
)
from mlcore.ids import now_ms
from mlcore.models import gateway as models
from mlcore.models.base import Item

Part = Secret | ModelDefinition | Endpoint | Guardrail


def key_of(workspace: str, part: Part) -> keys.Key:
    if isinstance(part, Secret):
        return keys.gateway_secret(workspace, part.secret_id)
    if isinstance(part, ModelDefinition):
        return keys.gateway_model_definition(workspace, part.model_definition_id)
    if isinstance(part, Endpoint):
        return keys.gateway_endpoint(workspace, part.endpoint_id)
    return keys.gateway_guardrail(workspace, part.guardrail_id)


def item_of(workspace: str, part: Part) -> Raw:
    """Returns the item to store for a part of a gateway configuration (a secret, model definition,
    endpoint or guardrail), with the next version number."""
    key = key_of(workspace, part)
    written: dict[str, Any] = {
        "PK": key.pk,
        "SK": key.sk,
        "created_by": part.created_by,
        "last_updated_by": part.last_updated_by,
        "created_at": part.created_at,
        "last_updated_at": part.last_updated_at,
        "version": part.revision + 1,
        "updated_at": now_ms(),
    }
    made: Item
    if isinstance(part, Secret):
        made = models.GatewaySecret(
            secret_id=part.secret_id,
            secret_name=part.secret_name,
            sealed=part.sealed,
            masked=_json(part.masked),
            provider=part.provider,
            auth_config=_json(part.auth_config),
            **written,
        )
    elif isinstance(part, ModelDefinition):
        made = models.GatewayModelDefinition(
            model_definition_id=part.model_definition_id,
            name=part.name,
            secret_id=part.secret_id,
            provider=part.provider,
            model_name=part.model_name,
            **written,
        )
    elif isinstance(part, Endpoint):
        made = models.GatewayEndpoint(
            endpoint_id=part.endpoint_id,
            name=part.name,
            mappings=_json(part.mappings),
            tags=_json(part.tags),
            bindings=_json(part.bindings),
            guardrails=_json(part.guardrails),
            routing_strategy=part.routing_strategy,
            fallback=_json(part.fallback),
            experiment_id=part.experiment_id,
            usage_tracking=part.usage_tracking,
            **written,
        )
    else:
        made = models.GatewayGuardrail(
            guardrail_id=part.guardrail_id,
            name=part.name,
            scorer=_json(part.scorer[:-1]),  # release 0.1.0 reads no seal
            stage=part.stage,
            action=part.action,
            action_endpoint_id=part.action_endpoint_id,
            **written,
        )
    return made.serialize()


def part_of(raw: Raw) -> Part | None:
    """Returns the part of a gateway configuration (a secret, model definition, endpoint or
    guardrail) that an item holds; None for an item of another kind, such as the change counter."""
    read = _READERS.get(Item.of(raw).type)
    return None if read is None else read(raw)


def _secret(raw: Raw) -> Secret:
    item = models.GatewaySecret.of(raw)
    return Secret(
        item.secret_id,
        item.secret_name,
        item.sealed,
        json.loads(item.masked or "{}"),
        item.provider,
        json.loads(item.auth_config or "{}"),
        *_made(item),
    )


def _model_definition(raw: Raw) -> ModelDefinition:
    item = models.GatewayModelDefinition.of(raw)
    return ModelDefinition(
        item.model_definition_id,
        item.name,
        item.secret_id,
        item.provider,
        item.model_name,
        *_made(item),
    )


def _endpoint(raw: Raw) -> Endpoint:
    item = models.GatewayEndpoint.of(raw)
    return Endpoint(
        item.endpoint_id,
        item.name,
        tuple(gateway.ModelMapping(*fields) for fields in json.loads(item.mappings or "[]")),
        json.loads(item.tags or "{}"),
        tuple(Binding(*fields) for fields in json.loads(item.bindings or "[]")),
        tuple(GuardrailUse(*fields) for fields in json.loads(item.guardrails or "[]")),
        item.routing_strategy,
        FallbackConfig(*json.loads(item.fallback)) if item.fallback else None,
        item.experiment_id,
        item.usage_tracking,
        *_made(item),
    )


def _guardrail(raw: Raw) -> Guardrail:
    item = models.GatewayGuardrail.of(raw)
    return Guardrail(
        item.guardrail_id,
        item.name,
        ScorerVersion(*json.loads(item.scorer)),
        item.stage,
        item.action,
        item.action_endpoint_id,
        *_made(item),
    )


_READERS: Final[dict[str, Any]] = {
    keys.GATEWAY_SECRET.name: _secret,
    keys.GATEWAY_MODEL_DEFINITION.name: _model_definition,
    keys.GATEWAY_ENDPOINT.name: _endpoint,
    keys.GATEWAY_GUARDRAIL.name: _guardrail,
}


def _made(item: models.GatewayItem) -> tuple[str | None, str | None, int, int, int]:
    return (
        item.created_by,
        item.last_updated_by,
        item.created_at,
        item.last_updated_at,
        item.version,
    )


def _json(value: Any) -> str | None:
    """Returns a value as JSON; None for an empty value."""
    return json.dumps(value, separators=(",", ":")) if value else None
