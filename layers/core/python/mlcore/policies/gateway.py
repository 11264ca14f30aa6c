"""Who may do what with the gateway's configuration, and what its answers must not tell.

Secrets, model definitions and endpoints are granted one by one. To name one where something else is
made of it, its use must be granted. Budgets and guardrails are the administrators'.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from mlcore.auth.permissions import (
    ANY,
    EXPERIMENT,
    GATEWAY_ENDPOINT,
    GATEWAY_MODEL_DEFINITION,
    GATEWAY_SECRET,
    SCORER,
    SCORER_VERSION,
    scorer_pattern,
)
from mlcore.auth.requirements import NOT_DENIED, Requirement, Rung
from mlcore.errors import ResourceDoesNotExist
from mlcore.policies.access import Access
from mlcore.policies.requests import Policy, subject
from mlcore.repos.gateway import configuration
from mlcore.repos.users import grants

Json = dict[str, Any]


def _on(resource_type: str, field: str, action: str) -> Policy:
    """The action on what a message names. What is missing counts as something that nobody was
    granted."""

    def policy(access: Access, message: Any) -> bool:
        return access.allows(Requirement(resource_type, subject(message, field), action))

    return policy


def on_secret(action: str) -> Policy:
    return _on(GATEWAY_SECRET, "secret_id", action)


def on_model_definition(action: str) -> Policy:
    return _on(GATEWAY_MODEL_DEFINITION, "model_definition_id", action)


def on_endpoint(action: str) -> Policy:
    return _on(GATEWAY_ENDPOINT, "endpoint_id", action)


read_secret = on_secret("read")
update_secret = on_secret("update")
delete_secret = on_secret("delete")
read_model_definition = on_model_definition("read")
delete_model_definition = on_model_definition("delete")
change_endpoint = on_endpoint("update")
delete_endpoint = on_endpoint("delete")
read_guardrails = on_endpoint("read")


def create_secret(access: Access, message: Any) -> bool:
    return access.may_create() and _new(access, GATEWAY_SECRET)


def create_model_definition(access: Access, message: Any) -> bool:
    return _new(access, GATEWAY_MODEL_DEFINITION) and _uses_secret(access, message)


def update_model_definition(access: Access, message: Any) -> bool:
    return on_model_definition("update")(access, message) and _uses_secret(access, message)


def list_model_definitions(access: Access, message: Any) -> bool:
    """Who asks for those of a secret must not be denied it."""
    return not message.secret_id or access.allows(
        Requirement(GATEWAY_SECRET, message.secret_id, NOT_DENIED)
    )


def create_endpoint(access: Access, message: Any) -> bool:
    """Its models must be usable; without any, the caller must be one who makes things."""
    named = any(config.model_definition_id for config in message.model_configs)
    if not (_uses_models(access, message.model_configs) if named else access.may_create()):
        return False
    tracked = message.usage_tracking if message.has("usage_tracking") else True
    return _new(access, GATEWAY_ENDPOINT) and (
        not (message.experiment_id or tracked) or _traces_in(access, message.experiment_id)
    )


def read_endpoint(access: Access, message: Any) -> bool:
    """By its id, or by its name. Raises ResourceDoesNotExist: nothing has the name."""
    endpoint_id = message.endpoint_id
    if not endpoint_id and message.name:
        found = configuration.read(access.workspace).endpoint_named(message.name)
        if found is None:
            raise ResourceDoesNotExist(f"GatewayEndpoint not found (name='{message.name}')")
        endpoint_id = found.endpoint_id
    return access.allows(Requirement(GATEWAY_ENDPOINT, endpoint_id, "read"))


def update_endpoint(access: Access, message: Any) -> bool:
    if not change_endpoint(access, message) or not _uses_models(access, message.model_configs):
        return False
    if message.experiment_id:
        return _traces_in(access, message.experiment_id)
    if not message.usage_tracking:
        return True
    found = configuration.read(access.workspace).endpoints.get(message.endpoint_id)
    return (found is not None and found.experiment_id is not None) or _traces_in(access, "")


def attach_model(access: Access, message: Any) -> bool:
    configs = [message.model_config] if message.has("model_config") else []
    return change_endpoint(access, message) and _uses_models(access, configs)


def detach_model(access: Access, message: Any) -> bool:
    return change_endpoint(access, message) and (
        not message.model_definition_id
        or access.allows(
            Requirement(GATEWAY_MODEL_DEFINITION, message.model_definition_id, NOT_DENIED)
        )
    )


def list_bindings(access: Access, message: Any) -> bool:
    """Of an endpoint that is readable; all of them are for administrators."""
    return bool(message.endpoint_id) and access.allows(
        Requirement(GATEWAY_ENDPOINT, message.endpoint_id, "read")
    )


def use_guardrail(access: Access, message: Any) -> bool:
    """A guardrail shows its scorer, which must not be denied."""
    if not change_endpoint(access, message):
        return False
    found = configuration.read(access.workspace).guardrails.get(message.guardrail_id)
    if found is None:
        return False
    pattern = scorer_pattern(found.scorer.experiment_id, found.scorer.name)
    rung = Rung(SCORER, pattern, NOT_DENIED)
    return access.allows(
        Requirement(SCORER, pattern, NOT_DENIED),
        Requirement(SCORER_VERSION, ANY, NOT_DENIED, (rung,)),
    )


def secret_deleted(access: Access, message: Any, body: Mapping[str, Any]) -> None:
    """Grants that the transaction had no room for; so with the others."""
    grants.sweep(access.workspace, GATEWAY_SECRET, message.secret_id)


def model_definition_deleted(access: Access, message: Any, body: Mapping[str, Any]) -> None:
    grants.sweep(access.workspace, GATEWAY_MODEL_DEFINITION, message.model_definition_id)


def endpoint_deleted(access: Access, message: Any, body: Mapping[str, Any]) -> None:
    grants.sweep(access.workspace, GATEWAY_ENDPOINT, message.endpoint_id)


def hide_in_model_definitions(access: Access, definitions: Iterable[Json]) -> None:
    """The secret, where it is denied."""
    for definition in definitions:
        secret_id = definition.get("secret_id")
        if secret_id and not access.allows(Requirement(GATEWAY_SECRET, secret_id, NOT_DENIED)):
            del definition["secret_id"], definition["secret_name"]


def hide_in_mappings(access: Access, mappings: Iterable[Json]) -> None:
    """Model definitions that are denied, and secrets of others."""
    for mapping in mappings:
        named = Requirement(GATEWAY_MODEL_DEFINITION, mapping["model_definition_id"], NOT_DENIED)
        if not access.allows(named):
            del mapping["model_definition_id"]
            mapping.pop("model_definition", None)
        elif "model_definition" in mapping:
            hide_in_model_definitions(access, [mapping["model_definition"]])


def hide_in_endpoints(access: Access, endpoints: Iterable[Json]) -> None:
    for endpoint in endpoints:
        hide_in_mappings(access, endpoint.get("model_mappings", ()))


def hide_passphrase(access: Access, message: Any, body: Json) -> None:
    """How secrets are kept is for administrators."""
    body.pop("using_default_passphrase", None)


def _new(access: Access, resource_type: str) -> bool:
    return access.allows(Requirement(resource_type, ANY, NOT_DENIED))


def _uses_secret(access: Access, message: Any) -> bool:
    return not message.secret_id or access.allows(
        Requirement(GATEWAY_SECRET, message.secret_id, "use")
    )


def _uses_models(access: Access, configs: Iterable[Any]) -> bool:
    return access.allows(
        *(
            Requirement(GATEWAY_MODEL_DEFINITION, config.model_definition_id, "use")
            for config in configs
            if config is not None and config.model_definition_id
        )
    )


def _traces_in(access: Access, experiment_id: str) -> bool:
    return access.allows(Requirement(EXPERIMENT, experiment_id or ANY, NOT_DENIED))
