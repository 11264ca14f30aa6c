"""The rules of endpoints: names under which models are called, their tags and bindings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from uuid import uuid4

from gateway import experiments
from gateway import messages as m
from gateway.parts import endpoint as there
from gateway.parts import missing, settled
from mlcore import errors, ids
from mlcore.auth.permissions import GATEWAY_ENDPOINT
from mlcore.entities.gateway import (
    FALLBACK,
    PRIMARY,
    SCORER_RESOURCE,
    Binding,
    Configuration,
    Endpoint,
    FallbackConfig,
    Mapping,
)
from mlcore.http import Request
from mlcore.limits import gateway as limits
from mlcore.repos.gateway import configuration
from mlcore.responses import gateway as responses

_LINKAGES = (PRIMARY, FALLBACK)


def create_endpoint(message: m.CreateGatewayEndpoint, request: Request) -> dict[str, Any]:
    """With an experiment for its traces: the one that is named or, unless nothing is to be traced,
    one of its own."""
    limits.check_endpoint_name(message.name)
    _check_linkages(message.model_configs)
    if not message.model_configs:
        raise errors.InvalidParameterValue("Endpoint must have at least one model configuration")
    endpoint_id, now = f"e-{uuid4().hex}", ids.now_ms()
    creator = message.created_by or None
    mappings = _mappings(message.model_configs, now, creator)
    tracked = message.usage_tracking if message.has("usage_tracking") else True

    def change(known: Configuration) -> dict[str, Any]:
        lacking = {mapping.model_definition_id for mapping in mappings}
        lacking -= known.model_definitions.keys()
        if lacking:
            raise errors.ResourceDoesNotExist(
                f"Model definitions not found: {', '.join(sorted(lacking))}"
            )
        _check_name(known, message.name, endpoint_id)
        made = Endpoint(
            endpoint_id=endpoint_id,
            name=message.name,
            mappings=mappings,
            tags={},
            bindings=(),
            guardrails=(),
            routing_strategy=_routing(message),
            fallback=_fallback(message, has_fallbacks=_has_fallbacks(mappings)),
            experiment_id=_experiment(message, request),
            usage_tracking=tracked,
            created_by=creator,
            last_updated_by=creator,
            created_at=now,
            last_updated_at=now,
        )
        if tracked and made.experiment_id is None:
            made = made._replace(experiment_id=experiments.of_endpoint(made, request.workspace))
        granted = request.granting(GATEWAY_ENDPOINT, endpoint_id)
        configuration.write(known, puts=[made], also=granted)
        return {"endpoint": responses.endpoint(made, known)}

    return settled(request, change)


def get_endpoint(message: m.GetGatewayEndpoint, request: Request) -> dict[str, Any]:
    if bool(message.endpoint_id) == bool(message.name):
        raise errors.InvalidParameterValue("Exactly one of endpoint_id or name must be provided")
    known = configuration.read(request.workspace)
    if message.endpoint_id:
        found = there(known, message.endpoint_id)
    else:
        named = known.endpoint_named(message.name)
        if named is None:
            raise missing("GatewayEndpoint", name=message.name)
        found = named
    return {"endpoint": responses.endpoint(found, known)}


def update_endpoint(message: m.UpdateGatewayEndpoint, request: Request) -> dict[str, Any]:
    """What is empty stays as it is; models are replaced all together."""
    limits.check_endpoint_name(message.name)
    _check_linkages(message.model_configs)
    now = ids.now_ms()
    mappings = _mappings(message.model_configs, now, message.updated_by or None)

    def change(known: Configuration) -> dict[str, Any]:
        before = there(known, message.endpoint_id)
        after = before._replace(
            name=message.name or before.name,
            routing_strategy=_routing(message) or before.routing_strategy,
            experiment_id=_experiment(message, request) or before.experiment_id,
            last_updated_at=now,
            last_updated_by=message.updated_by or before.last_updated_by,
        )
        if message.has("usage_tracking"):
            after = after._replace(usage_tracking=message.usage_tracking)
        if mappings:
            _check_known(known, mappings)
            after = after._replace(
                mappings=mappings, fallback=_fallback(message, has_fallbacks=True)
            )
        elif message.has("fallback_config"):
            after = after._replace(fallback=_fallback(message, has_fallbacks=True))
        _check_name(known, after.name, after.endpoint_id)
        if message.usage_tracking and after.experiment_id is None:
            after = after._replace(experiment_id=experiments.of_endpoint(after, request.workspace))
        configuration.write(known, puts=[after])
        return {"endpoint": responses.endpoint(after, known)}

    return settled(request, change)


def delete_endpoint(message: m.DeleteGatewayEndpoint, request: Request) -> dict[str, Any]:
    def change(known: Configuration) -> dict[str, Any]:
        gone = there(known, message.endpoint_id)
        grants = request.leaving_grants(GATEWAY_ENDPOINT, gone.endpoint_id)
        configuration.write(known, deletes=[gone], also=grants)
        return {}

    return settled(request, change)


def list_endpoints(message: m.ListGatewayEndpoints, request: Request) -> dict[str, Any]:
    """Those that have a model, as MLflow's server lists them."""
    readable = request.may_read(GATEWAY_ENDPOINT)
    known = configuration.read(request.workspace)
    shown = [
        responses.endpoint(endpoint, known)
        for endpoint in known.endpoints.values()
        if readable(endpoint.endpoint_id)
        and any(
            message.provider in ("", known.model_definitions[mapping.model_definition_id].provider)
            for mapping in endpoint.mappings
        )
    ]
    return {"endpoints": shown} if shown else {}


def attach_model(message: m.AttachModelToGatewayEndpoint, request: Request) -> dict[str, Any]:
    config: m.GatewayEndpointModelConfig = message.model_config
    _check_linkage(config, "model_config")
    now = ids.now_ms()
    (made,) = _mappings([config], now, message.created_by or None)

    def change(known: Configuration) -> dict[str, Any]:
        before = there(known, message.endpoint_id)
        _check_known(known, [made])
        if any(_linkage(mapping) == _linkage(made) for mapping in before.mappings):
            raise errors.ResourceAlreadyExists(
                f"Model definition '{made.model_definition_id}' is already attached to "
                f"endpoint '{before.endpoint_id}'"
            )
        after = before._replace(
            mappings=(*before.mappings, made),
            last_updated_at=now,
            last_updated_by=message.created_by or before.last_updated_by,
        )
        configuration.write(known, puts=[after])
        return {"mapping": responses.mapping(after.endpoint_id, made, known)}

    return settled(request, change)


def detach_model(message: m.DetachModelFromGatewayEndpoint, request: Request) -> dict[str, Any]:
    """Of a model that is there twice, the fallback goes first."""

    def change(known: Configuration) -> dict[str, Any]:
        before = there(known, message.endpoint_id)
        attached = [
            mapping
            for mapping in before.mappings
            if mapping.model_definition_id == message.model_definition_id
        ]
        if not attached:
            raise errors.ResourceDoesNotExist(
                f"Model definition '{message.model_definition_id}' is not attached to "
                f"endpoint '{before.endpoint_id}'"
            )
        gone = min(attached, key=lambda mapping: mapping.linkage_type)
        kept = tuple(mapping for mapping in before.mappings if mapping is not gone)
        configuration.write(known, puts=[before._replace(mappings=kept)])
        return {}

    return settled(request, change)


def create_binding(message: m.CreateGatewayEndpointBinding, request: Request) -> dict[str, Any]:
    if message.resource_type != SCORER_RESOURCE:
        raise errors.InvalidParameterValue(
            f"Invalid resource_type '{message.resource_type}'. Must be '{SCORER_RESOURCE}'."
        )
    made = Binding(
        message.resource_type, message.resource_id, ids.now_ms(), message.created_by or None, None
    )

    def change(known: Configuration) -> dict[str, Any]:
        before = there(known, message.endpoint_id)
        if any(binding[:2] == made[:2] for binding in before.bindings):
            raise errors.BadRequest(
                f"Endpoint '{before.endpoint_id}' is already bound to {made.resource_type} "
                f"'{made.resource_id}'"
            )
        configuration.write(known, puts=[before._replace(bindings=(*before.bindings, made))])
        return {"binding": responses.binding(before.endpoint_id, made)}

    return settled(request, change)


def delete_binding(message: m.DeleteGatewayEndpointBinding, request: Request) -> dict[str, Any]:
    bound = (message.resource_type, message.resource_id)

    def change(known: Configuration) -> dict[str, Any]:
        before = known.endpoints.get(message.endpoint_id)
        kept = [one for one in before.bindings if one[:2] != bound] if before else []
        if before is None or len(kept) == len(before.bindings):
            raise missing(
                "GatewayEndpointBinding",
                endpoint_id=message.endpoint_id,
                resource_type=message.resource_type,
                resource_id=message.resource_id,
            )
        configuration.write(known, puts=[before._replace(bindings=tuple(kept))])
        return {}

    return settled(request, change)


def list_bindings(message: m.ListGatewayEndpointBindings, request: Request) -> dict[str, Any]:
    shown = [
        responses.binding(endpoint.endpoint_id, binding)
        for endpoint in configuration.read(request.workspace).endpoints.values()
        if message.endpoint_id in ("", endpoint.endpoint_id)
        for binding in endpoint.bindings
        if message.resource_type in ("", binding.resource_type)
        and message.resource_id in ("", binding.resource_id)
    ]
    return {"bindings": shown} if shown else {}


def set_tag(message: m.SetGatewayEndpointTag, request: Request) -> dict[str, Any]:
    return _retagged(
        message.endpoint_id, request, lambda tags: {**tags, message.key: message.value}
    )


def delete_tag(message: m.DeleteGatewayEndpointTag, request: Request) -> dict[str, Any]:
    """One that is not there is no mistake."""
    return _retagged(
        message.endpoint_id,
        request,
        lambda tags: {key: value for key, value in tags.items() if key != message.key},
    )


def _retagged(
    endpoint_id: str, request: Request, change_tags: Callable[[dict[str, str]], dict[str, str]]
) -> dict[str, Any]:
    def change(known: Configuration) -> dict[str, Any]:
        before = there(known, endpoint_id)
        tags = change_tags(before.tags)
        if tags != before.tags:
            configuration.write(known, puts=[before._replace(tags=tags)])
        return {}

    return settled(request, change)


def _check_name(known: Configuration, name: str, endpoint_id: str) -> None:
    holder = known.endpoint_named(name)
    if holder is not None and holder.endpoint_id != endpoint_id:
        raise errors.BadRequest(f"Endpoint with name '{name}' already exists")


def _check_linkages(configs: Sequence[m.GatewayEndpointModelConfig]) -> None:
    for index, config in enumerate(configs):
        _check_linkage(config, f"model_configs[{index}]")
    linkages = [(config.model_definition_id, config.linkage_type) for config in configs]
    if len(set(linkages)) < len(linkages):
        raise errors.BadRequest("Each model may be in model_configs once for each linkage_type.")


def _check_linkage(config: m.GatewayEndpointModelConfig, place: str) -> None:
    if config.linkage_type not in _LINKAGES:
        raise errors.InvalidParameterValue(
            f"Invalid or missing value for required parameter 'linkage_type' in {place}. "
            f"Must be one of: {', '.join(_LINKAGES)}."
        )


def _check_known(known: Configuration, mappings: Sequence[Mapping]) -> None:
    for mapping in mappings:
        if mapping.model_definition_id not in known.model_definitions:
            raise missing("GatewayModelDefinition", model_definition_id=mapping.model_definition_id)


def _mappings(
    configs: Sequence[m.GatewayEndpointModelConfig], now: int, creator: str | None
) -> tuple[Mapping, ...]:
    return tuple(
        Mapping(
            mapping_id=f"m-{uuid4().hex}",
            model_definition_id=config.model_definition_id,
            weight=limits.weight(config.weight) if config.has("weight") else 1.0,
            linkage_type=config.linkage_type or "",
            fallback_order=config.fallback_order if config.has("fallback_order") else None,
            created_at=now,
            created_by=creator,
        )
        for config in configs
    )


def _linkage(mapping: Mapping) -> tuple[str, str]:
    return mapping.model_definition_id, mapping.linkage_type


def _has_fallbacks(mappings: Sequence[Mapping]) -> bool:
    return any(mapping.linkage_type == FALLBACK for mapping in mappings)


def _routing(message: m.CreateGatewayEndpoint | m.UpdateGatewayEndpoint) -> str | None:
    strategy: str | None = message.routing_strategy
    return None if strategy is None or strategy.endswith("UNSPECIFIED") else strategy


def _fallback(
    message: m.CreateGatewayEndpoint | m.UpdateGatewayEndpoint, *, has_fallbacks: bool
) -> FallbackConfig | None:
    config: m.FallbackConfig | None = message.fallback_config
    if config is None:
        return FallbackConfig(None, None) if has_fallbacks else None
    strategy = config.strategy
    return FallbackConfig(
        None if strategy is None or strategy.endswith("UNSPECIFIED") else strategy,
        config.max_attempts if config.has("max_attempts") else None,
    )


def _experiment(
    message: m.CreateGatewayEndpoint | m.UpdateGatewayEndpoint, request: Request
) -> str | None:
    if not message.has("experiment_id"):
        return None
    return experiments.checked(message.experiment_id, request.workspace)
