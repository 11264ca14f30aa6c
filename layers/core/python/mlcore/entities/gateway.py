"""The AI gateway's configuration: secrets, model definitions, endpoints, guardrails and budgets."""

from __future__ import annotations

from typing import Final, NamedTuple

from mlcore.entities.evaluation.scorers import ScorerVersion

PRIMARY: Final = "PRIMARY"
FALLBACK: Final = "FALLBACK"

GLOBAL: Final = "GLOBAL"
WORKSPACE: Final = "WORKSPACE"
ENDPOINT: Final = "ENDPOINT"
USER: Final = "USER"

SCORER_RESOURCE: Final = "scorer"
"""The one type of what an endpoint can be bound to."""


class Secret(NamedTuple):
    """Credentials of a provider; in the clear only while a call is made with them."""

    secret_id: str
    secret_name: str
    sealed: str
    masked: dict[str, str]
    """What may be shown of each value."""
    provider: str | None
    auth_config: dict[str, str]
    """Not secret: where the provider is, which region."""
    created_by: str | None
    last_updated_by: str | None
    created_at: int
    last_updated_at: int
    revision: int = 0
    """Of the item that it was read from; 0 for one that is not there yet."""


class ModelDefinition(NamedTuple):
    """A model of a provider, and the secret that it is called with, which may be gone."""

    model_definition_id: str
    name: str
    secret_id: str
    provider: str
    model_name: str
    created_by: str | None
    last_updated_by: str | None
    created_at: int
    last_updated_at: int
    revision: int = 0


class Mapping(NamedTuple):
    """A model of an endpoint."""

    mapping_id: str
    model_definition_id: str
    weight: float
    linkage_type: str
    fallback_order: int | None
    created_at: int
    created_by: str | None


class Binding(NamedTuple):
    """What asks an endpoint."""

    resource_type: str
    resource_id: str
    created_at: int
    created_by: str | None
    display_name: str | None


class GuardrailUse(NamedTuple):
    """A guardrail of an endpoint."""

    guardrail_id: str
    execution_order: int | None
    created_at: int
    created_by: str | None


class FallbackConfig(NamedTuple):
    strategy: str | None
    max_attempts: int | None


class Endpoint(NamedTuple):
    endpoint_id: str
    name: str
    mappings: tuple[Mapping, ...]
    tags: dict[str, str]
    bindings: tuple[Binding, ...]
    guardrails: tuple[GuardrailUse, ...]
    """Some may be gone."""
    routing_strategy: str | None
    fallback: FallbackConfig | None
    experiment_id: str | None
    """Where its calls are traced."""
    usage_tracking: bool
    created_by: str | None
    last_updated_by: str | None
    created_at: int
    last_updated_at: int
    revision: int = 0


class Guardrail(NamedTuple):
    guardrail_id: str
    name: str
    scorer: ScorerVersion
    stage: str
    action: str
    action_endpoint_id: str | None
    """May be gone."""
    created_by: str | None
    last_updated_by: str | None
    created_at: int
    last_updated_at: int
    revision: int = 0


class Configuration(NamedTuple):
    """All of a workspace, by id, the oldest first; budgets apart."""

    workspace: str
    secrets: dict[str, Secret]
    model_definitions: dict[str, ModelDefinition]
    endpoints: dict[str, Endpoint]
    guardrails: dict[str, Guardrail]
    revision: int
    """Of the whole: 0 where nothing was ever configured."""

    def endpoint_named(self, name: str) -> Endpoint | None:
        return next((one for one in self.endpoints.values() if one.name == name), None)

    def guardrails_of(self, endpoint: Endpoint) -> list[GuardrailUse]:
        """Those that are still there, in the order in which they are asked; without one at last."""
        uses = [use for use in endpoint.guardrails if use.guardrail_id in self.guardrails]
        return sorted(
            uses, key=lambda use: (use.execution_order is None, use.execution_order or 0, use[0])
        )


class BudgetPolicy(NamedTuple):
    budget_policy_id: str
    workspace: str
    budget_unit: str
    budget_amount: float
    duration_unit: str
    duration_value: int
    target_scope: str
    budget_action: str
    target_value: str | None
    """The id of an endpoint, or the name of a user, by the scope."""
    created_by: str | None
    last_updated_by: str | None
    created_at: int
    last_updated_at: int
    revision: int = 0
