"""The AI gateway's configuration: secrets, model definitions, endpoints, guardrails and budgets."""

from __future__ import annotations

from typing import Final, NamedTuple

from mlcore.entities.evaluation.scorers import ScorerVersion
from mlcore.errors import InvalidParameterValue, ResourceDoesNotExist

PRIMARY: Final = "PRIMARY"
FALLBACK: Final = "FALLBACK"

GLOBAL: Final = "GLOBAL"
WORKSPACE: Final = "WORKSPACE"
ENDPOINT: Final = "ENDPOINT"
USER: Final = "USER"

SCORER_RESOURCE: Final = "scorer"
"""The only resource type that an endpoint can be bound to."""

_PROVIDER_BY_OTHER_NAME: Final = {
    "bedrock_converse": "bedrock",
    "amazon-bedrock": "bedrock",
    "together_ai": "togetherai",
}
"""Alternative names of providers, each with the name that it stands for."""


class Secret(NamedTuple):
    """Credentials of a model provider, encrypted in ``sealed``."""

    secret_id: str
    secret_name: str
    sealed: str
    masked: dict[str, str]
    """The part of each value that may be shown."""
    provider: str | None
    auth_config: dict[str, str]
    """Settings that are not secret, such as address and region."""
    created_by: str | None
    last_updated_by: str | None
    created_at: int
    last_updated_at: int
    revision: int = 0
    """Revision of the stored item; 0 before it is stored."""

    def is_of(self, provider: str) -> bool:
        """Whether these credentials may be used with ``provider``: it must be the provider that is
        stored with them, in upper or lower case and under any of its names. Credentials without a
        stored provider may be used with any."""
        return self.provider is None or _same_name(self.provider) == _same_name(provider)


class ModelDefinition(NamedTuple):
    """A provider's model that the gateway can call, with the id of the secret (credentials) for it.
    The secret may have been deleted."""

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

    @property
    def is_at_bedrock(self) -> bool:
        """Whether the model is called at Amazon Bedrock."""
        return _same_name(self.provider) == "bedrock"


class SavedKeyModel(NamedTuple):
    """A model of a provider that is called with a saved key, without a definition and an
    endpoint."""

    secret_id: str
    provider: str
    model_name: str

    def check_usable(self, known: Configuration) -> None:
        """Checks that the saved API key exists and is for the model's provider, since the key is
        sent to that provider.

        Raises:
            ResourceDoesNotExist: there is no such key.
            InvalidParameterValue: the key is for another provider.
        """
        secret = known.existing_secret(self.secret_id)
        if not secret.is_of(self.provider):
            raise InvalidParameterValue(
                f"The saved API key '{secret.secret_name}' is for the provider "
                f"'{secret.provider}', so it cannot be used with '{self.provider}'."
            )


class ModelMapping(NamedTuple):
    """Maps a gateway endpoint to a model definition, as a primary model or a fallback."""

    mapping_id: str
    model_definition_id: str
    weight: float
    linkage_type: str
    fallback_order: int | None
    created_at: int
    created_by: str | None


class Binding(NamedTuple):
    """Records that a resource, such as a scorer, uses a gateway endpoint."""

    resource_type: str
    resource_id: str
    created_at: int
    created_by: str | None
    display_name: str | None


class GuardrailUse(NamedTuple):
    """The attachment of a guardrail to an endpoint of the AI gateway."""

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
    mappings: tuple[ModelMapping, ...]
    tags: dict[str, str]
    bindings: tuple[Binding, ...]
    guardrails: tuple[GuardrailUse, ...]
    """Some may refer to deleted guardrails."""
    routing_strategy: str | None
    fallback: FallbackConfig | None
    experiment_id: str | None
    """The experiment that its calls are traced in."""
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
    """The endpoint that sanitizes; it may have been deleted."""
    created_by: str | None
    last_updated_by: str | None
    created_at: int
    last_updated_at: int
    revision: int = 0


class Configuration(NamedTuple):
    """The whole gateway configuration of a workspace except budgets: entities by id, oldest
    first."""

    workspace: str
    secrets: dict[str, Secret]
    model_definitions: dict[str, ModelDefinition]
    endpoints: dict[str, Endpoint]
    guardrails: dict[str, Guardrail]
    revision: int
    """Revision of the whole configuration if it was read to be changed; otherwise, and before the
    first change, 0."""

    def endpoint_named(self, name: str) -> Endpoint | None:
        return next(
            (endpoint for endpoint in self.endpoints.values() if endpoint.name == name), None
        )

    def existing_endpoint(self, name: str) -> Endpoint:
        """Returns the gateway endpoint of that name. Raises ResourceDoesNotExist."""
        endpoint = self.endpoint_named(name)
        if endpoint is None:
            raise ResourceDoesNotExist(f"GatewayEndpoint not found (name='{name}')")
        return endpoint

    def existing_secret(self, secret_id: str) -> Secret:
        """Returns the gateway secret with this id. Raises ResourceDoesNotExist if none has it."""
        secret = self.secrets.get(secret_id)
        if secret is None:
            raise ResourceDoesNotExist(f"GatewaySecret not found (secret_id='{secret_id}')")
        return secret

    def guardrails_of(self, endpoint: Endpoint) -> list[GuardrailUse]:
        """Returns a gateway endpoint's guardrails that exist, in execution order; those without an
        order come last."""
        uses = [use for use in endpoint.guardrails if use.guardrail_id in self.guardrails]
        return sorted(
            uses, key=lambda use: (use.execution_order is None, use.execution_order or 0, use[0])
        )


def _same_name(provider: str) -> str:
    """Returns the same name for all names of one provider: lower case, and ``bedrock`` for
    ``amazon-bedrock``."""
    name = provider.lower()
    return _PROVIDER_BY_OTHER_NAME.get(name, name)


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
    """The id of an endpoint or the name of a user, depending on the scope."""
    created_by: str | None
    last_updated_by: str | None
    created_at: int
    last_updated_at: int
    revision: int = 0
