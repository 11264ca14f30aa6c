"""Creates, updates, lists and deletes model definitions. A definition names a provider's model and
the secret with which the model is called."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from gateway import messages as m
from gateway.configuration_updates import require_part, update_configuration
from mlcore import errors, ids
from mlcore.auth.permissions import GATEWAY_MODEL_DEFINITION
from mlcore.entities.gateway import Configuration, ModelDefinition
from mlcore.http import Request
from mlcore.limits import gateway as limits
from mlcore.repos.gateway import configuration
from mlcore.responses import gateway as responses


def create_model_definition(
    message: m.CreateGatewayModelDefinition, request: Request
) -> dict[str, Any]:
    limits.check_names(name=message.name, provider=message.provider, model_name=message.model_name)
    now = ids.now_ms()
    definition = ModelDefinition(
        model_definition_id=f"d-{uuid4().hex}",
        name=message.name,
        secret_id=message.secret_id,
        provider=message.provider,
        model_name=message.model_name,
        created_by=message.created_by or None,
        last_updated_by=message.created_by or None,
        created_at=now,
        last_updated_at=now,
    )

    def change(current: Configuration) -> dict[str, Any]:
        require_part(current.secrets, definition.secret_id, "GatewaySecret", "secret_id")
        _check_provider(current, definition, request)
        _check_name(current, definition)
        granted = request.granting(GATEWAY_MODEL_DEFINITION, definition.model_definition_id)
        configuration.write(current, puts=[definition], also=granted)
        return {"model_definition": responses.model_definition(definition, current)}

    return update_configuration(request, change)


def get_model_definition(message: m.GetGatewayModelDefinition, request: Request) -> dict[str, Any]:
    current = configuration.read(request.workspace)
    definition = _get_definition(current, message.model_definition_id)
    return {"model_definition": responses.model_definition(definition, current)}


def list_model_definitions(
    message: m.ListGatewayModelDefinitions, request: Request
) -> dict[str, Any]:
    readable = request.may_read(GATEWAY_MODEL_DEFINITION)
    current = configuration.read(request.workspace)
    shown = [
        responses.model_definition(definition, current)
        for definition in current.model_definitions.values()
        if readable(definition.model_definition_id)
        and message.provider in ("", definition.provider)
        and (not message.secret_id or _uses_secret(definition, message.secret_id, current))
    ]
    return {"model_definitions": shown} if shown else {}


def update_model_definition(
    message: m.UpdateGatewayModelDefinition, request: Request
) -> dict[str, Any]:
    """Changes the fields of a model definition that the request has. An empty field counts as
    omitted."""
    limits.check_names(name=message.name, provider=message.provider, model_name=message.model_name)

    def change(current: Configuration) -> dict[str, Any]:
        before = _get_definition(current, message.model_definition_id)
        if message.secret_id:
            require_part(current.secrets, message.secret_id, "GatewaySecret", "secret_id")
        after = before._replace(
            name=message.name or before.name,
            secret_id=message.secret_id or before.secret_id,
            model_name=message.model_name or before.model_name,
            provider=message.provider or before.provider,
            last_updated_at=ids.now_ms(),
            last_updated_by=message.updated_by or before.last_updated_by,
        )
        if (after.secret_id, after.provider) != (before.secret_id, before.provider):
            _check_provider(current, after, request)
        _check_name(current, after)
        configuration.write(current, puts=[after])
        return {"model_definition": responses.model_definition(after, current)}

    return update_configuration(request, change)


def delete_model_definition(
    message: m.DeleteGatewayModelDefinition, request: Request
) -> dict[str, Any]:
    """Deletes a model definition. Raises InvalidState if an endpoint uses it."""

    def change(current: Configuration) -> dict[str, Any]:
        definition = _get_definition(current, message.model_definition_id)
        if any(
            mapping.model_definition_id == definition.model_definition_id
            for endpoint in current.endpoints.values()
            for mapping in endpoint.mappings
        ):
            raise errors.InvalidState(
                "Cannot delete model definition that is currently in use by endpoints. "
                "Detach it from all endpoints first."
            )
        grants = request.leaving_grants(GATEWAY_MODEL_DEFINITION, definition.model_definition_id)
        configuration.write(current, deletes=[definition], also=grants)
        return {}

    return update_configuration(request, change)


def _get_definition(current: Configuration, model_definition_id: str) -> ModelDefinition:
    return require_part(
        current.model_definitions,
        model_definition_id,
        "GatewayModelDefinition",
        "model_definition_id",
    )


def _uses_secret(definition: ModelDefinition, secret_id: str, current: Configuration) -> bool:
    return definition.secret_id == secret_id and secret_id in current.secrets


def _check_provider(current: Configuration, definition: ModelDefinition, request: Request) -> None:
    """Checks that a caller who may only use a secret does not send it to another provider than its
    own. A caller who may update the secret can choose its destination anyway. Raises
    InvalidParameterValue."""
    secret = current.secrets.get(definition.secret_id)
    if secret is None or secret.is_of(definition.provider) or request.access is None:
        return
    from mlcore.policies.gateway import may_update_secret  # noqa: PLC0415 -- only with logins

    if not may_update_secret(request.access, secret.secret_id):
        raise errors.InvalidParameterValue(
            f"The secret '{secret.secret_name}' is for the provider '{secret.provider}'. Only "
            f"callers who may update it can use it for models of '{definition.provider}'."
        )


def _check_name(current: Configuration, definition: ModelDefinition) -> None:
    for other in current.model_definitions.values():
        if (
            other.name == definition.name
            and other.model_definition_id != definition.model_definition_id
        ):
            raise errors.ResourceAlreadyExists(
                f"Model definition with name '{definition.name}' already exists"
            )
