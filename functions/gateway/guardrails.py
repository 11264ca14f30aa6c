"""The rules of guardrails: scorers that look at what an endpoint is asked and answers."""

from __future__ import annotations

import json
from typing import Any, Final
from uuid import uuid4

from gateway import messages as m
from gateway.pages import page
from gateway.parts import endpoint as endpoint_there
from gateway.parts import missing, settled, there
from mlcore import errors, ids
from mlcore.entities.evaluation.scorers import ScorerVersion
from mlcore.entities.gateway import Configuration, Endpoint, Guardrail, GuardrailUse
from mlcore.http import Request
from mlcore.repos.evaluation import scorers
from mlcore.repos.gateway import configuration
from mlcore.responses import gateway as responses

_CUSTOM: Final = (
    "Gateway guardrails do not support custom scorers defined with the @scorer decorator. Use a "
    "built-in scorer or a judge created with make_judge."
)


def create_guardrail(message: m.CreateGatewayGuardrail, request: Request) -> dict[str, Any]:
    stage, action = message.stage or "", message.action or ""
    for name, value in (("stage", stage), ("action", action)):
        if not value or value.endswith("UNSPECIFIED"):
            raise errors.InvalidParameterValue(f"Invalid {name}: 0")
    scorer = _scorer(message.scorer_id, message.scorer_version, request)
    now, creator = ids.now_ms(), request.username()
    made = Guardrail(
        guardrail_id=f"gr-{uuid4().hex}",
        name=message.name,
        scorer=scorer,
        stage=stage,
        action=action,
        action_endpoint_id=message.action_endpoint_id or None,
        created_by=creator,
        last_updated_by=creator,
        created_at=now,
        last_updated_at=now,
    )

    def change(known: Configuration) -> dict[str, Any]:
        if made.action_endpoint_id and made.action_endpoint_id not in known.endpoints:
            raise errors.BadRequest(
                f"GatewayEndpoint not found (endpoint_id='{made.action_endpoint_id}')"
            )
        configuration.write(known, puts=[made])
        return {"guardrail": responses.guardrail(made, known)}

    return settled(request, change)


def get_guardrail(message: m.GetGatewayGuardrail, request: Request) -> dict[str, Any]:
    known = configuration.read(request.workspace)
    return {"guardrail": responses.guardrail(_there(known, message.guardrail_id), known)}


def delete_guardrail(message: m.DeleteGatewayGuardrail, request: Request) -> dict[str, Any]:
    """Endpoints lose it at once: what they name and is not there counts for nothing."""

    def change(known: Configuration) -> dict[str, Any]:
        configuration.write(known, deletes=[_there(known, message.guardrail_id)])
        return {}

    return settled(request, change)


def list_guardrails(message: m.ListGatewayGuardrails, request: Request) -> dict[str, Any]:
    """By id."""
    known = configuration.read(request.workspace)
    return page(
        "guardrails",
        sorted(known.guardrails.values(), key=lambda guardrail: guardrail.guardrail_id),
        lambda guardrail: guardrail.guardrail_id,
        lambda guardrail: responses.guardrail(guardrail, known),
        message,
    )


def add_to_endpoint(message: m.AddGuardrailToEndpoint, request: Request) -> dict[str, Any]:
    order = message.execution_order if message.has("execution_order") else None
    made = GuardrailUse(message.guardrail_id, order, ids.now_ms(), request.username())

    def change(known: Configuration) -> dict[str, Any]:
        endpoint = endpoint_there(known, message.endpoint_id, "Endpoint")
        _there(known, made.guardrail_id)
        if any(use.guardrail_id == made.guardrail_id for use in endpoint.guardrails):
            raise errors.ResourceAlreadyExists(
                f"Guardrail '{made.guardrail_id}' is already added to endpoint "
                f"'{endpoint.endpoint_id}'"
            )
        # Room is made by those that are gone.
        kept = [use for use in endpoint.guardrails if use.guardrail_id in known.guardrails]
        configuration.write(known, puts=[endpoint._replace(guardrails=(*kept, made))])
        return {"config": responses.guardrail_config(endpoint.endpoint_id, made, known)}

    return settled(request, change)


def remove_from_endpoint(
    message: m.RemoveGuardrailFromEndpoint, request: Request
) -> dict[str, Any]:
    def change(known: Configuration) -> dict[str, Any]:
        endpoint, use = _used(known, message.endpoint_id, message.guardrail_id)
        kept = tuple(one for one in endpoint.guardrails if one is not use)
        configuration.write(known, puts=[endpoint._replace(guardrails=kept)])
        return {}

    return settled(request, change)


def update_config(message: m.UpdateEndpointGuardrailConfig, request: Request) -> dict[str, Any]:
    """Without an order there is none from then on."""
    order = message.execution_order if message.has("execution_order") else None

    def change(known: Configuration) -> dict[str, Any]:
        endpoint, use = _used(known, message.endpoint_id, message.guardrail_id)
        after = use._replace(execution_order=order)
        uses = tuple(after if one is use else one for one in endpoint.guardrails)
        configuration.write(known, puts=[endpoint._replace(guardrails=uses)])
        return {"config": responses.guardrail_config(endpoint.endpoint_id, after, known)}

    return settled(request, change)


def list_of_endpoint(message: m.ListEndpointGuardrailConfigs, request: Request) -> dict[str, Any]:
    """In the order in which they are asked; those without one at last."""
    known = configuration.read(request.workspace)
    endpoint = endpoint_there(known, message.endpoint_id, "Endpoint")
    shown = [
        responses.guardrail_config(endpoint.endpoint_id, use, known)
        for use in known.guardrails_of(endpoint)
    ]
    return {"configs": shown} if shown else {}


def _there(known: Configuration, guardrail_id: str) -> Guardrail:
    return there(known.guardrails, guardrail_id, "Guardrail", "guardrail_id")


def _used(
    known: Configuration, endpoint_id: str, guardrail_id: str
) -> tuple[Endpoint, GuardrailUse]:
    """Raises ResourceDoesNotExist: the endpoint does not have the guardrail."""
    endpoint = known.endpoints.get(endpoint_id)
    if endpoint is not None and guardrail_id in known.guardrails:
        for use in endpoint.guardrails:
            if use.guardrail_id == guardrail_id:
                return endpoint, use
    raise missing("GuardrailConfig", endpoint_id=endpoint_id, guardrail_id=guardrail_id)


def _scorer(scorer_id: str, version: int, request: Request) -> ScorerVersion:
    """Raises ResourceDoesNotExist, InvalidParameterValue: it runs code of its own."""
    versions = scorers.with_id(scorer_id, request.workspace)
    if not versions:
        raise errors.ResourceDoesNotExist(f"Scorer with ID '{scorer_id}' not found.")
    for found in versions:
        if found.version == version:
            if _is_code(found.serialized_scorer):
                raise errors.InvalidParameterValue(_CUSTOM)
            return found
    raise errors.ResourceDoesNotExist(
        f"Scorer with ID '{scorer_id}' and version {version} not found."
    )


def _is_code(serialized_scorer: str) -> bool:
    """Whether a scorer, or one that is in it, has the source of a function."""
    pending = [json.loads(serialized_scorer)]
    while pending:
        part = pending.pop()
        if isinstance(part, dict):
            if part.get("call_source") is not None:
                return True
            pending += part.values()
        elif isinstance(part, list):
            pending += part
    return False
