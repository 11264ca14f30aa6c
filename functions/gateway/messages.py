"""Request messages for the gateway's configuration. Fields are in the order of MLflow's protobuf
definitions."""

from __future__ import annotations

from typing import Annotated, Any

from mlcore.wire import Int32, Message, enum, intlike, required, string
from mlcore.wire.checks import CheckFailed

_NAMED = (required, string)


def _check_not_null(value: Any) -> None:
    """Refuses null; an omitted value is accepted. The error does not repeat the secret value."""
    if value is None:
        raise CheckFailed("Missing value for required parameter 'secret_value'.")


RoutingStrategy = Annotated[
    str | None, enum(ROUTING_STRATEGY_UNSPECIFIED=0, REQUEST_BASED_TRAFFIC_SPLIT=1)
]
FallbackStrategy = Annotated[str | None, enum(FALLBACK_STRATEGY_UNSPECIFIED=0, SEQUENTIAL=1)]
LinkageType = Annotated[str | None, enum(LINKAGE_TYPE_UNSPECIFIED=0, PRIMARY=1, FALLBACK=2)]
BudgetUnit = Annotated[str | None, enum(BUDGET_UNIT_UNSPECIFIED=0, USD=1)]
DurationUnit = Annotated[
    str | None,
    enum(DURATION_UNIT_UNSPECIFIED=0, MINUTES=1, HOURS=2, DAYS=3, WEEKS=4, MONTHS=5),
]
TargetScope = Annotated[
    str | None, enum(TARGET_SCOPE_UNSPECIFIED=0, GLOBAL=1, WORKSPACE=2, ENDPOINT=3, USER=4)
]
BudgetAction = Annotated[str | None, enum(BUDGET_ACTION_UNSPECIFIED=0, ALERT=1, REJECT=2)]
GuardrailStage = Annotated[str | None, enum(GUARDRAIL_STAGE_UNSPECIFIED=0, BEFORE=1, AFTER=2)]
GuardrailAction = Annotated[
    str | None, enum(GUARDRAIL_ACTION_UNSPECIFIED=0, VALIDATION=1, SANITIZATION=2)
]


class EmptyRequest(Message):
    """A request to the AI gateway's configuration API that has no fields."""


class CreateGatewaySecret(Message):
    secret_name: str
    secret_value: dict[str, str]
    provider: str
    auth_config: dict[str, str]
    created_by: str
    checks = {
        "secret_name": _NAMED,
        "secret_value": (_check_not_null,),
        "provider": (string,),
        "created_by": (string,),
    }
    conceals = ("secret_value", "secretValue")


class GetGatewaySecretInfo(Message):
    secret_id: str
    secret_name: str
    checks = {"secret_id": _NAMED}


class UpdateGatewaySecret(Message):
    secret_id: str
    secret_value: dict[str, str]
    auth_config: dict[str, str]
    updated_by: str
    checks = {"secret_id": _NAMED, "updated_by": (string,)}
    conceals = ("secret_value", "secretValue")


class DeleteGatewaySecret(Message):
    secret_id: str
    checks = {"secret_id": _NAMED}


class ListGatewaySecretInfos(Message):
    provider: str
    checks = {"provider": (string,)}


class CreateGatewayModelDefinition(Message):
    name: str
    secret_id: str
    provider: str
    model_name: str
    created_by: str
    checks = {
        "name": _NAMED,
        "secret_id": _NAMED,
        "provider": _NAMED,
        "model_name": _NAMED,
        "created_by": (string,),
    }


class GetGatewayModelDefinition(Message):
    model_definition_id: str
    checks = {"model_definition_id": _NAMED}


class ListGatewayModelDefinitions(Message):
    provider: str
    secret_id: str
    checks = {"provider": (string,), "secret_id": (string,)}


class UpdateGatewayModelDefinition(Message):
    model_definition_id: str
    name: str
    secret_id: str
    model_name: str
    updated_by: str
    provider: str
    checks = {
        "model_definition_id": _NAMED,
        "name": (string,),
        "secret_id": (string,),
        "model_name": (string,),
        "updated_by": (string,),
        "provider": (string,),
    }


class DeleteGatewayModelDefinition(Message):
    model_definition_id: str
    checks = {"model_definition_id": _NAMED}


class GatewayEndpointModelConfig(Message):
    model_definition_id: str
    linkage_type: LinkageType
    weight: float
    fallback_order: Int32


class FallbackConfig(Message):
    strategy: FallbackStrategy
    max_attempts: Int32


class CreateGatewayEndpoint(Message):
    name: str
    model_configs: list[GatewayEndpointModelConfig]
    created_by: str
    routing_strategy: RoutingStrategy
    fallback_config: FallbackConfig
    experiment_id: str
    usage_tracking: bool
    checks = {
        "name": _NAMED,
        "created_by": (string,),
        "model_configs": (required,),
        "routing_strategy": (string,),
    }


class GetGatewayEndpoint(Message):
    endpoint_id: str
    name: str
    checks = {"endpoint_id": (string,), "name": (string,)}


class UpdateGatewayEndpoint(Message):
    endpoint_id: str
    name: str
    updated_by: str
    model_configs: list[GatewayEndpointModelConfig]
    routing_strategy: RoutingStrategy
    fallback_config: FallbackConfig
    experiment_id: str
    usage_tracking: bool
    checks = {
        "endpoint_id": _NAMED,
        "name": (string,),
        "updated_by": (string,),
        "routing_strategy": (string,),
    }


class DeleteGatewayEndpoint(Message):
    endpoint_id: str
    checks = {"endpoint_id": _NAMED}


class ListGatewayEndpoints(Message):
    provider: str
    secret_id: str
    checks = {"provider": (string,)}


class AttachModelToGatewayEndpoint(Message):
    endpoint_id: str
    model_config: GatewayEndpointModelConfig
    created_by: str
    checks = {
        "endpoint_id": _NAMED,
        "model_config": (required,),
        "created_by": (string,),
    }


class DetachModelFromGatewayEndpoint(Message):
    endpoint_id: str
    model_definition_id: str
    checks = {"endpoint_id": _NAMED, "model_definition_id": _NAMED}


class CreateGatewayEndpointBinding(Message):
    endpoint_id: str
    resource_type: str
    resource_id: str
    created_by: str
    checks = {
        "endpoint_id": _NAMED,
        "resource_type": _NAMED,
        "resource_id": _NAMED,
        "created_by": (string,),
    }


class DeleteGatewayEndpointBinding(Message):
    endpoint_id: str
    resource_type: str
    resource_id: str
    checks = {"endpoint_id": _NAMED, "resource_type": _NAMED, "resource_id": _NAMED}


class ListGatewayEndpointBindings(Message):
    endpoint_id: str
    resource_type: str
    resource_id: str
    checks = {"endpoint_id": (string,), "resource_type": (string,), "resource_id": (string,)}


class SetGatewayEndpointTag(Message):
    endpoint_id: str
    key: str
    value: str
    checks = {"endpoint_id": _NAMED, "key": _NAMED, "value": (string,)}


class DeleteGatewayEndpointTag(Message):
    endpoint_id: str
    key: str
    checks = {"endpoint_id": _NAMED, "key": _NAMED}


class BudgetDuration(Message):
    unit: DurationUnit
    value: Int32


class CreateGatewayBudgetPolicy(Message):
    budget_unit: BudgetUnit
    budget_amount: float
    duration: BudgetDuration
    target_scope: TargetScope
    budget_action: BudgetAction
    created_by: str
    target_value: str
    checks = {
        "budget_unit": (required,),
        "budget_amount": (required,),
        "duration": (required,),
        "target_scope": (required,),
        "budget_action": (required,),
        "created_by": (string,),
        "target_value": (string,),
    }


class GetGatewayBudgetPolicy(Message):
    budget_policy_id: str
    checks = {"budget_policy_id": _NAMED}


class UpdateGatewayBudgetPolicy(Message):
    budget_policy_id: str
    budget_unit: BudgetUnit
    budget_amount: float
    duration: BudgetDuration
    target_scope: TargetScope
    budget_action: BudgetAction
    updated_by: str
    target_value: str
    checks = {
        "budget_policy_id": _NAMED,
        "updated_by": (string,),
        "target_value": (string,),
    }


class DeleteGatewayBudgetPolicy(Message):
    budget_policy_id: str
    checks = {"budget_policy_id": _NAMED}


class ListGatewayBudgetPolicies(Message):
    max_results: int
    page_token: str
    checks = {"max_results": (intlike,), "page_token": (string,)}


class CreateGatewayGuardrail(Message):
    name: str
    scorer_id: str
    scorer_version: int
    stage: GuardrailStage
    action: GuardrailAction
    action_endpoint_id: str
    checks = {
        "name": _NAMED,
        "scorer_id": _NAMED,
        "scorer_version": (required, intlike),
        "stage": (required,),
        "action": (required,),
        "action_endpoint_id": (string,),
    }


class GetGatewayGuardrail(Message):
    guardrail_id: str
    checks = {"guardrail_id": _NAMED}


class DeleteGatewayGuardrail(Message):
    guardrail_id: str
    checks = {"guardrail_id": _NAMED}


class ListGatewayGuardrails(Message):
    max_results: int
    page_token: str
    checks = {"max_results": (intlike,), "page_token": (string,)}


class AddGuardrailToEndpoint(Message):
    endpoint_id: str
    guardrail_id: str
    execution_order: int
    checks = {"endpoint_id": _NAMED, "guardrail_id": _NAMED, "execution_order": (intlike,)}


class RemoveGuardrailFromEndpoint(Message):
    endpoint_id: str
    guardrail_id: str
    checks = {"endpoint_id": _NAMED, "guardrail_id": _NAMED}


class ListEndpointGuardrailConfigs(Message):
    endpoint_id: str
    checks = {"endpoint_id": _NAMED}


class UpdateEndpointGuardrailConfig(Message):
    endpoint_id: str
    guardrail_id: str
    execution_order: int
    checks = {"endpoint_id": _NAMED, "guardrail_id": _NAMED}


class ProviderRequest(Message):
    """A request that may name a provider: lists its models (without a name, those of all
    providers) or returns its configuration (a name is required)."""

    provider: str
