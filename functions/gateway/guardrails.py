"""Creates and deletes guardrails, and assigns them to gateway endpoints. A guardrail is a scorer
that checks an endpoint's requests or responses."""

from __future__ import annotations

import json
from typing import Any, Final
from uuid import uuid4

from gateway import messages as m
from gateway.configuration_updates import (
    not_found,
    require_endpoint,
    require_part,
    update_configuration,
)
from gateway.pages_by_id import page
from mlcore import errors, ids
from mlcore.entities.evaluation.scorers import ScorerVersion
from mlcore.entities.gateway import Configuration, Endpoint, Guardrail, GuardrailUse
from mlcore.http import Request
from mlcore.repos.evaluation import scorers
from mlcore.repos.gateway import configuration
from mlcore.responses import gateway as responses

_CUSTOM_SCORER: Final = (
    "Gateway guardrails do not support custom scorers defined with the @scorer decorator. Use a "
    "built-in scorer or a judge created with make_judge."
)


def create_guardrail(message: m.CreateGatewayGuardrail, request: Request) -> dict[str, Any]:
    stage, action = message.stage or "", message.action or ""
    for name, value in (("stage", stage), ("action", action)):
        if not value or value.endswith("UNSPECIFIED"):
            raise errors.InvalidParameterValue(f"Invalid {name}: 0")
    scorer = _get_scorer(message.scorer_id, message.scorer_version, request)
    now, creator = ids.now_ms(), request.username()
    guardrail = Guardrail(
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

    def change(current: Configuration) -> dict[str, Any]:
        if guardrail.action_endpoint_id and guardrail.action_endpoint_id not in current.endpoints:
            raise errors.BadRequest(
                f"GatewayEndpoint not found (endpoint_id='{guardrail.action_endpoint_id}')"
            )
        configuration.write(current, puts=[guardrail])
        return {"guardrail": responses.guardrail(guardrail, current)}

    return update_configuration(request, change)


def get_guardrail(message: m.GetGatewayGuardrail, request: Request) -> dict[str, Any]:
    current = configuration.read(request.workspace)
    return {
        "guardrail": responses.guardrail(_get_guardrail(current, message.guardrail_id), current)
    }


def delete_guardrail(message: m.DeleteGatewayGuardrail, request: Request) -> dict[str, Any]:
    """Deletes a guardrail. Endpoints need no change: they ignore guardrails that do not exist."""

    def change(current: Configuration) -> dict[str, Any]:
        configuration.write(current, deletes=[_get_guardrail(current, message.guardrail_id)])
        return {}

    return update_configuration(request, change)


def list_guardrails(message: m.ListGatewayGuardrails, request: Request) -> dict[str, Any]:
    """Returns a page of the workspace's guardrails, ordered by id."""
    current = configuration.read(request.workspace)
    return page(
        "guardrails",
        sorted(current.guardrails.values(), key=lambda guardrail: guardrail.guardrail_id),
        lambda guardrail: guardrail.guardrail_id,
        lambda guardrail: responses.guardrail(guardrail, current),
        message,
    )


def add_to_endpoint(message: m.AddGuardrailToEndpoint, request: Request) -> dict[str, Any]:
    order = message.execution_order if message.has("execution_order") else None
    use = GuardrailUse(message.guardrail_id, order, ids.now_ms(), request.username())

    def change(current: Configuration) -> dict[str, Any]:
        endpoint = require_endpoint(current, message.endpoint_id, "Endpoint")
        _get_guardrail(current, use.guardrail_id)
        if any(guardrail.guardrail_id == use.guardrail_id for guardrail in endpoint.guardrails):
            raise errors.ResourceAlreadyExists(
                f"Guardrail '{use.guardrail_id}' is already added to endpoint "
                f"'{endpoint.endpoint_id}'"
            )
        # Uses of deleted guardrails are dropped, so that the item does not grow.
        kept = [
            guardrail
            for guardrail in endpoint.guardrails
            if guardrail.guardrail_id in current.guardrails
        ]
        configuration.write(current, puts=[endpoint._replace(guardrails=(*kept, use))])
        return {"config": responses.guardrail_config(endpoint.endpoint_id, use, current)}

    return update_configuration(request, change)


def remove_from_endpoint(
    message: m.RemoveGuardrailFromEndpoint, request: Request
) -> dict[str, Any]:
    def change(current: Configuration) -> dict[str, Any]:
        endpoint, use = _get_use(current, message.endpoint_id, message.guardrail_id)
        kept = tuple(guardrail for guardrail in endpoint.guardrails if guardrail is not use)
        configuration.write(current, puts=[endpoint._replace(guardrails=kept)])
        return {}

    return update_configuration(request, change)


def update_config(message: m.UpdateEndpointGuardrailConfig, request: Request) -> dict[str, Any]:
    """Sets the execution order of a guardrail at a gateway endpoint; a request without an order
    removes the order."""
    order = message.execution_order if message.has("execution_order") else None

    def change(current: Configuration) -> dict[str, Any]:
        endpoint, use = _get_use(current, message.endpoint_id, message.guardrail_id)
        after = use._replace(execution_order=order)
        uses = tuple(after if guardrail is use else guardrail for guardrail in endpoint.guardrails)
        configuration.write(current, puts=[endpoint._replace(guardrails=uses)])
        return {"config": responses.guardrail_config(endpoint.endpoint_id, after, current)}

    return update_configuration(request, change)


def list_of_endpoint(message: m.ListEndpointGuardrailConfigs, request: Request) -> dict[str, Any]:
    """Returns a gateway endpoint's guardrails in execution order; those without one come last."""
    current = configuration.read(request.workspace)
    endpoint = require_endpoint(current, message.endpoint_id, "Endpoint")
    shown = [
        responses.guardrail_config(endpoint.endpoint_id, use, current)
        for use in current.guardrails_of(endpoint)
    ]
    return {"configs": shown} if shown else {}


def _get_guardrail(current: Configuration, guardrail_id: str) -> Guardrail:
    return require_part(current.guardrails, guardrail_id, "Guardrail", "guardrail_id")


def _get_use(
    current: Configuration, endpoint_id: str, guardrail_id: str
) -> tuple[Endpoint, GuardrailUse]:
    """Returns the endpoint and its use of the guardrail. Raises ResourceDoesNotExist if the
    endpoint does not have the guardrail."""
    endpoint = current.endpoints.get(endpoint_id)
    if endpoint is not None and guardrail_id in current.guardrails:
        for use in endpoint.guardrails:
            if use.guardrail_id == guardrail_id:
                return endpoint, use
    raise not_found("GuardrailConfig", endpoint_id=endpoint_id, guardrail_id=guardrail_id)


def _get_scorer(scorer_id: str, version: int, request: Request) -> ScorerVersion:
    """Returns the scorer version that a guardrail uses.

    Raises:
        ResourceDoesNotExist: the scorer or the version does not exist.
        InvalidParameterValue: the scorer contains the source code of a function.
    """
    versions = scorers.with_id(scorer_id, request.workspace)
    if not versions:
        raise errors.ResourceDoesNotExist(f"Scorer with ID '{scorer_id}' not found.")
    for scorer in versions:
        if scorer.version == version:
            if _is_code(scorer.serialized_scorer):
                raise errors.InvalidParameterValue(_CUSTOM_SCORER)
            return scorer
    raise errors.ResourceDoesNotExist(
        f"Scorer with ID '{scorer_id}' and version {version} not found."
    )


def _is_code(serialized_scorer: str) -> bool:
    """Whether the scorer, or a scorer nested in it, contains the source code of a function."""
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
