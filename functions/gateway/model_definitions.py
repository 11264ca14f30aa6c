"""The rules of model definitions: models of providers, and the secrets to call them with."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from gateway import messages as m
from gateway.parts import settled, there
from mlcore import errors, ids
from mlcore.auth.permissions import GATEWAY_MODEL_DEFINITION
from mlcore.entities.gateway import Configuration, ModelDefinition
from mlcore.http import Request
from mlcore.repos.gateway import configuration
from mlcore.responses import gateway as responses


def create_model_definition(
    message: m.CreateGatewayModelDefinition, request: Request
) -> dict[str, Any]:
    now = ids.now_ms()
    made = ModelDefinition(
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

    def change(known: Configuration) -> dict[str, Any]:
        there(known.secrets, made.secret_id, "GatewaySecret", "secret_id")
        _check_name(known, made)
        granted = request.granting(GATEWAY_MODEL_DEFINITION, made.model_definition_id)
        configuration.write(known, puts=[made], also=granted)
        return {"model_definition": responses.model_definition(made, known)}

    return settled(request, change)


def get_model_definition(message: m.GetGatewayModelDefinition, request: Request) -> dict[str, Any]:
    known = configuration.read(request.workspace)
    found = _there(known, message.model_definition_id)
    return {"model_definition": responses.model_definition(found, known)}


def list_model_definitions(
    message: m.ListGatewayModelDefinitions, request: Request
) -> dict[str, Any]:
    readable = request.may_read(GATEWAY_MODEL_DEFINITION)
    known = configuration.read(request.workspace)
    shown = [
        responses.model_definition(definition, known)
        for definition in known.model_definitions.values()
        if readable(definition.model_definition_id)
        and message.provider in ("", definition.provider)
        and (not message.secret_id or _has(definition, message.secret_id, known))
    ]
    return {"model_definitions": shown} if shown else {}


def update_model_definition(
    message: m.UpdateGatewayModelDefinition, request: Request
) -> dict[str, Any]:
    """An empty field stays as it is."""

    def change(known: Configuration) -> dict[str, Any]:
        before = _there(known, message.model_definition_id)
        if message.secret_id:
            there(known.secrets, message.secret_id, "GatewaySecret", "secret_id")
        after = before._replace(
            name=message.name or before.name,
            secret_id=message.secret_id or before.secret_id,
            model_name=message.model_name or before.model_name,
            provider=message.provider or before.provider,
            last_updated_at=ids.now_ms(),
            last_updated_by=message.updated_by or before.last_updated_by,
        )
        _check_name(known, after)
        configuration.write(known, puts=[after])
        return {"model_definition": responses.model_definition(after, known)}

    return settled(request, change)


def delete_model_definition(
    message: m.DeleteGatewayModelDefinition, request: Request
) -> dict[str, Any]:
    """Raises InvalidState: an endpoint has it."""

    def change(known: Configuration) -> dict[str, Any]:
        definition = _there(known, message.model_definition_id)
        if any(
            mapping.model_definition_id == definition.model_definition_id
            for endpoint in known.endpoints.values()
            for mapping in endpoint.mappings
        ):
            raise errors.InvalidState(
                "Cannot delete model definition that is currently in use by endpoints. "
                "Detach it from all endpoints first."
            )
        gone = request.leaving_grants(GATEWAY_MODEL_DEFINITION, definition.model_definition_id)
        configuration.write(known, deletes=[definition], also=gone)
        return {}

    return settled(request, change)


def _there(known: Configuration, model_definition_id: str) -> ModelDefinition:
    return there(
        known.model_definitions,
        model_definition_id,
        "GatewayModelDefinition",
        "model_definition_id",
    )


def _has(definition: ModelDefinition, secret_id: str, known: Configuration) -> bool:
    return definition.secret_id == secret_id and secret_id in known.secrets


def _check_name(known: Configuration, made: ModelDefinition) -> None:
    for other in known.model_definitions.values():
        if other.name == made.name and other.model_definition_id != made.model_definition_id:
            raise errors.ResourceAlreadyExists(
                f"Model definition with name '{made.name}' already exists"
            )
