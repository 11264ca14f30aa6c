"""Permission checks for requests about the gateway's configuration, and the removal of hidden parts
from their answers.

Secrets, model definitions and endpoints have grants one by one. To refer to such a resource from
another one, the caller needs USE on it. Budgets and guardrails are made by administrators; who may
update an endpoint may add guardrails to it and remove them.
"""

from __future__ import annotations

from collections.abc import Iterable
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
from mlcore.auth.requirements import NOT_DENIED, InheritedFrom, Requirement
from mlcore.policies.access import Access
from mlcore.policies.shared_rules import Policy, subject
from mlcore.repos.gateway import configuration

Json = dict[str, Any]


def _on_resource(resource_type: str, field: str, action: str) -> Policy:
    """Returns the policy that requires the action on the resource that a message names in
    ``field``. A missing resource is treated as one without a grant."""

    def policy(access: Access, message: Any) -> bool:
        return access.allows(Requirement(resource_type, subject(message, field), action))

    return policy


def on_secret(action: str) -> Policy:
    return _on_resource(GATEWAY_SECRET, "secret_id", action)


def on_model_definition(action: str) -> Policy:
    return _on_resource(GATEWAY_MODEL_DEFINITION, "model_definition_id", action)


def on_endpoint(action: str) -> Policy:
    return _on_resource(GATEWAY_ENDPOINT, "endpoint_id", action)


read_secret = on_secret("read")
update_secret = on_secret("update")
delete_secret = on_secret("delete")
read_model_definition = on_model_definition("read")
delete_model_definition = on_model_definition("delete")
change_endpoint = on_endpoint("update")
delete_endpoint = on_endpoint("delete")
read_guardrails = on_endpoint("read")


def may_update_secret(access: Access, secret_id: str) -> bool:
    return access.allows(Requirement(GATEWAY_SECRET, secret_id, "update"))


def create_secret(access: Access, message: Any) -> bool:
    return access.may_create() and _may_create_type(access, GATEWAY_SECRET)


def create_model_definition(access: Access, message: Any) -> bool:
    return _may_create_type(access, GATEWAY_MODEL_DEFINITION) and _uses_secret(access, message)


def update_model_definition(access: Access, message: Any) -> bool:
    return on_model_definition("update")(access, message) and _uses_secret(access, message)


def list_model_definitions(access: Access, message: Any) -> bool:
    """Allows listing model definitions. A list for one secret is refused if that secret is
    denied."""
    return not message.secret_id or access.allows(
        Requirement(GATEWAY_SECRET, message.secret_id, NOT_DENIED)
    )


def create_endpoint(access: Access, message: Any) -> bool:
    """Requires USE on the endpoint's models or, without models, the right to create resources in
    the workspace. DENY on all endpoints refuses the request, as does DENY on the experiment that it
    names or, if it names none and the calls are tracked, on all experiments."""
    has_models = any(config.model_definition_id for config in message.model_configs)
    if not (_uses_models(access, message.model_configs) if has_models else access.may_create()):
        return False
    is_tracked = message.usage_tracking if message.has("usage_tracking") else True
    return _may_create_type(access, GATEWAY_ENDPOINT) and (
        not (message.experiment_id or is_tracked) or _may_trace_in(access, message.experiment_id)
    )


def read_endpoint(access: Access, message: Any) -> bool:
    """Requires the right to read the gateway endpoint that the request names by id or by name.
    Raises ResourceDoesNotExist if no endpoint has the name."""
    endpoint_id = message.endpoint_id
    if not endpoint_id and message.name:
        endpoint_id = (
            configuration.read(access.workspace).existing_endpoint(message.name).endpoint_id
        )
    return access.allows(Requirement(GATEWAY_ENDPOINT, endpoint_id, "read"))


def update_endpoint(access: Access, message: Any) -> bool:
    if not change_endpoint(access, message) or not _uses_models(access, message.model_configs):
        return False
    if message.experiment_id:
        return _may_trace_in(access, message.experiment_id)
    if not message.usage_tracking:
        return True
    endpoint = configuration.read(access.workspace).endpoints.get(message.endpoint_id)
    return (endpoint is not None and endpoint.experiment_id is not None) or _may_trace_in(
        access, ""
    )


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
    """Allows reading the bindings of one gateway endpoint (to its scorers) to those who may read
    the endpoint; all bindings only for administrators."""
    return bool(message.endpoint_id) and access.allows(
        Requirement(GATEWAY_ENDPOINT, message.endpoint_id, "read")
    )


def use_guardrail(access: Access, message: Any) -> bool:
    """For a request that adds a guardrail to a gateway endpoint, or changes it there: requires the
    right to update the endpoint. DENY on the guardrail's scorer, which the answer shows, refuses
    the request; so does a missing guardrail."""
    if not change_endpoint(access, message):
        return False
    guardrail = configuration.read(access.workspace).guardrails.get(message.guardrail_id)
    if guardrail is None:
        return False
    pattern = scorer_pattern(guardrail.scorer.experiment_id, guardrail.scorer.name)
    parent = InheritedFrom(SCORER, pattern, NOT_DENIED)
    return access.allows(
        Requirement(SCORER, pattern, NOT_DENIED),
        Requirement(SCORER_VERSION, ANY, NOT_DENIED, (parent,)),
    )


def hide_in_model_definitions(access: Access, definitions: Iterable[Json]) -> None:
    """Removes the secret's id and name from each model definition whose secret the caller is
    denied."""
    for definition in definitions:
        secret_id = definition.get("secret_id")
        if secret_id and not access.allows(Requirement(GATEWAY_SECRET, secret_id, NOT_DENIED)):
            del definition["secret_id"], definition["secret_name"]


def hide_in_mappings(access: Access, mappings: Iterable[Json]) -> None:
    """Removes what the caller is denied from a response's mappings of gateway endpoints to models:
    model definitions, and secrets of the remaining definitions."""
    for mapping in mappings:
        not_denied = Requirement(
            GATEWAY_MODEL_DEFINITION, mapping["model_definition_id"], NOT_DENIED
        )
        if not access.allows(not_denied):
            del mapping["model_definition_id"]
            mapping.pop("model_definition", None)
        elif "model_definition" in mapping:
            hide_in_model_definitions(access, [mapping["model_definition"]])


def hide_in_endpoints(access: Access, endpoints: Iterable[Json]) -> None:
    for endpoint in endpoints:
        hide_in_mappings(access, endpoint.get("model_mappings", ()))


def hide_passphrase(access: Access, message: Any, body: Json) -> None:
    """Removes from the answer whether the gateway's secrets use the default passphrase."""
    body.pop("using_default_passphrase", None)


def _may_create_type(access: Access, resource_type: str) -> bool:
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


def _may_trace_in(access: Access, experiment_id: str) -> bool:
    return access.allows(Requirement(EXPERIMENT, experiment_id or ANY, NOT_DENIED))
