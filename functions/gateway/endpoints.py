"""Creates, updates, lists and deletes gateway endpoints, which clients call by name, with their
models, tags and bindings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from uuid import uuid4

from gateway import messages as m
from gateway import trace_experiments
from gateway.configuration_updates import not_found, require_endpoint, update_configuration
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
    ModelMapping,
)
from mlcore.http import Request
from mlcore.limits import gateway as limits
from mlcore.repos.gateway import configuration
from mlcore.responses import gateway as responses

_LINKAGES = (PRIMARY, FALLBACK)


def create_endpoint(message: m.CreateGatewayEndpoint, request: Request) -> dict[str, Any]:
    """Creates a gateway endpoint. Unless usage tracking is off, its calls are traced: in the
    experiment that the request names, else in one named ``gateway/<endpoint name>``, which is
    created if it is missing."""
    limits.check_endpoint_name(message.name)
    _check_linkages(message.model_configs)
    if not message.model_configs:
        raise errors.InvalidParameterValue("Endpoint must have at least one model configuration")
    endpoint_id, now = f"e-{uuid4().hex}", ids.now_ms()
    creator = message.created_by or None
    mappings = _mappings(message.model_configs, now, creator)
    tracked = message.usage_tracking if message.has("usage_tracking") else True

    def change(current: Configuration) -> dict[str, Any]:
        lacking = {mapping.model_definition_id for mapping in mappings}
        lacking -= current.model_definitions.keys()
        if lacking:
            raise errors.ResourceDoesNotExist(
                f"Model definitions not found: {', '.join(sorted(lacking))}"
            )
        _check_name(current, message.name, endpoint_id)
        endpoint = Endpoint(
            endpoint_id=endpoint_id,
            name=message.name,
            mappings=mappings,
            tags={},
            bindings=(),
            guardrails=(),
            routing_strategy=_routing_strategy(message),
            fallback=_fallback(message, has_fallbacks=_has_fallbacks(mappings)),
            experiment_id=_check_experiment(message, request),
            usage_tracking=tracked,
            created_by=creator,
            last_updated_by=creator,
            created_at=now,
            last_updated_at=now,
        )
        if tracked and endpoint.experiment_id is None:
            endpoint = endpoint._replace(
                experiment_id=trace_experiments.get_or_create(endpoint, request.workspace)
            )
        granted = request.granting(GATEWAY_ENDPOINT, endpoint_id)
        configuration.write(current, puts=[endpoint], also=granted)
        return {"endpoint": responses.endpoint(endpoint, current)}

    return update_configuration(request, change)


def get_endpoint(message: m.GetGatewayEndpoint, request: Request) -> dict[str, Any]:
    if bool(message.endpoint_id) == bool(message.name):
        raise errors.InvalidParameterValue("Exactly one of endpoint_id or name must be provided")
    current = configuration.read(request.workspace)
    if message.endpoint_id:
        endpoint = require_endpoint(current, message.endpoint_id)
    else:
        named = current.endpoint_named(message.name)
        if named is None:
            raise not_found("GatewayEndpoint", name=message.name)
        endpoint = named
    return {"endpoint": responses.endpoint(endpoint, current)}


def update_endpoint(message: m.UpdateGatewayEndpoint, request: Request) -> dict[str, Any]:
    """Changes the fields of a gateway endpoint that the request has; an empty name or list is
    ignored. If the request has models, they replace all models of the endpoint, and its fallback
    configuration is replaced or reset."""
    limits.check_endpoint_name(message.name)
    _check_linkages(message.model_configs)
    now = ids.now_ms()
    mappings = _mappings(message.model_configs, now, message.updated_by or None)

    def change(current: Configuration) -> dict[str, Any]:
        before = require_endpoint(current, message.endpoint_id)
        after = before._replace(
            name=message.name or before.name,
            routing_strategy=_routing_strategy(message) or before.routing_strategy,
            experiment_id=_check_experiment(message, request) or before.experiment_id,
            last_updated_at=now,
            last_updated_by=message.updated_by or before.last_updated_by,
        )
        if message.has("usage_tracking"):
            after = after._replace(usage_tracking=message.usage_tracking)
        if mappings:
            _check_definitions_exist(current, mappings)
            after = after._replace(
                mappings=mappings, fallback=_fallback(message, has_fallbacks=True)
            )
        elif message.has("fallback_config"):
            after = after._replace(fallback=_fallback(message, has_fallbacks=True))
        _check_name(current, after.name, after.endpoint_id)
        if message.usage_tracking and after.experiment_id is None:
            after = after._replace(
                experiment_id=trace_experiments.get_or_create(after, request.workspace)
            )
        configuration.write(current, puts=[after])
        return {"endpoint": responses.endpoint(after, current)}

    return update_configuration(request, change)


def delete_endpoint(message: m.DeleteGatewayEndpoint, request: Request) -> dict[str, Any]:
    def change(current: Configuration) -> dict[str, Any]:
        endpoint = require_endpoint(current, message.endpoint_id)
        grants = request.leaving_grants(GATEWAY_ENDPOINT, endpoint.endpoint_id)
        configuration.write(current, deletes=[endpoint], also=grants)
        return {}

    return update_configuration(request, change)


def list_endpoints(message: m.ListGatewayEndpoints, request: Request) -> dict[str, Any]:
    """Returns the gateway endpoints that the caller may read and that have a model (of the
    requested provider, if the request names one). As on MLflow's server, endpoints without a model
    are left out."""
    readable = request.may_read(GATEWAY_ENDPOINT)
    current = configuration.read(request.workspace)
    shown = [
        responses.endpoint(endpoint, current)
        for endpoint in current.endpoints.values()
        if readable(endpoint.endpoint_id)
        and any(
            message.provider
            in ("", current.model_definitions[mapping.model_definition_id].provider)
            for mapping in endpoint.mappings
        )
    ]
    return {"endpoints": shown} if shown else {}


def attach_model(message: m.AttachModelToGatewayEndpoint, request: Request) -> dict[str, Any]:
    config: m.GatewayEndpointModelConfig = message.model_config
    _check_linkage(config, "model_config")
    now = ids.now_ms()
    (mapping,) = _mappings([config], now, message.created_by or None)

    def change(current: Configuration) -> dict[str, Any]:
        before = require_endpoint(current, message.endpoint_id)
        _check_definitions_exist(current, [mapping])
        if any(_linkage(other) == _linkage(mapping) for other in before.mappings):
            raise errors.ResourceAlreadyExists(
                f"Model definition '{mapping.model_definition_id}' is already attached to "
                f"endpoint '{before.endpoint_id}'"
            )
        after = before._replace(
            mappings=(*before.mappings, mapping),
            last_updated_at=now,
            last_updated_by=message.created_by or before.last_updated_by,
        )
        configuration.write(current, puts=[after])
        return {"mapping": responses.mapping(after.endpoint_id, mapping, current)}

    return update_configuration(request, change)


def detach_model(message: m.DetachModelFromGatewayEndpoint, request: Request) -> dict[str, Any]:
    """Detaches a model from a gateway endpoint. If it is attached both as primary and as fallback,
    only the fallback is detached."""

    def change(current: Configuration) -> dict[str, Any]:
        before = require_endpoint(current, message.endpoint_id)
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
        detached = min(attached, key=lambda mapping: mapping.linkage_type)
        kept = tuple(mapping for mapping in before.mappings if mapping is not detached)
        configuration.write(current, puts=[before._replace(mappings=kept)])
        return {}

    return update_configuration(request, change)


def create_binding(message: m.CreateGatewayEndpointBinding, request: Request) -> dict[str, Any]:
    if message.resource_type != SCORER_RESOURCE:
        raise errors.InvalidParameterValue(
            f"Invalid resource_type '{message.resource_type}'. Must be '{SCORER_RESOURCE}'."
        )
    binding = Binding(
        message.resource_type, message.resource_id, ids.now_ms(), message.created_by or None, None
    )

    def change(current: Configuration) -> dict[str, Any]:
        before = require_endpoint(current, message.endpoint_id)
        if any(other[:2] == binding[:2] for other in before.bindings):
            raise errors.BadRequest(
                f"Endpoint '{before.endpoint_id}' is already bound to {binding.resource_type} "
                f"'{binding.resource_id}'"
            )
        configuration.write(current, puts=[before._replace(bindings=(*before.bindings, binding))])
        return {"binding": responses.binding(before.endpoint_id, binding)}

    return update_configuration(request, change)


def delete_binding(message: m.DeleteGatewayEndpointBinding, request: Request) -> dict[str, Any]:
    resource = (message.resource_type, message.resource_id)

    def change(current: Configuration) -> dict[str, Any]:
        before = current.endpoints.get(message.endpoint_id)
        kept = [binding for binding in before.bindings if binding[:2] != resource] if before else []
        if before is None or len(kept) == len(before.bindings):
            raise not_found(
                "GatewayEndpointBinding",
                endpoint_id=message.endpoint_id,
                resource_type=message.resource_type,
                resource_id=message.resource_id,
            )
        configuration.write(current, puts=[before._replace(bindings=tuple(kept))])
        return {}

    return update_configuration(request, change)


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
    return _change_tags(
        message.endpoint_id, request, lambda tags: {**tags, message.key: message.value}
    )


def delete_tag(message: m.DeleteGatewayEndpointTag, request: Request) -> dict[str, Any]:
    """Deletes a tag of a gateway endpoint. A missing tag is not an error."""
    return _change_tags(
        message.endpoint_id,
        request,
        lambda tags: {key: value for key, value in tags.items() if key != message.key},
    )


def _change_tags(
    endpoint_id: str, request: Request, change_tags: Callable[[dict[str, str]], dict[str, str]]
) -> dict[str, Any]:
    def change(current: Configuration) -> dict[str, Any]:
        before = require_endpoint(current, endpoint_id)
        tags = change_tags(before.tags)
        if tags != before.tags:
            configuration.write(current, puts=[before._replace(tags=tags)])
        return {}

    return update_configuration(request, change)


def _check_name(current: Configuration, name: str, endpoint_id: str) -> None:
    holder = current.endpoint_named(name)
    if holder is not None and holder.endpoint_id != endpoint_id:
        raise errors.BadRequest(f"Endpoint with name '{name}' already exists")


def _check_linkages(configs: Sequence[m.GatewayEndpointModelConfig]) -> None:
    for index, config in enumerate(configs):
        _check_linkage(config, f"model_configs[{index}]")
    linkages = [(config.model_definition_id, config.linkage_type) for config in configs]
    if len(set(linkages)) < len(linkages):
        raise errors.BadRequest("Each model may be in model_configs once for each linkage_type.")


def _check_linkage(config: m.GatewayEndpointModelConfig, field: str) -> None:
    if config.linkage_type not in _LINKAGES:
        raise errors.InvalidParameterValue(
            f"Invalid or missing value for required parameter 'linkage_type' in {field}. "
            f"Must be one of: {', '.join(_LINKAGES)}."
        )


def _check_definitions_exist(current: Configuration, mappings: Sequence[ModelMapping]) -> None:
    for mapping in mappings:
        if mapping.model_definition_id not in current.model_definitions:
            raise not_found(
                "GatewayModelDefinition", model_definition_id=mapping.model_definition_id
            )


def _mappings(
    configs: Sequence[m.GatewayEndpointModelConfig], now: int, creator: str | None
) -> tuple[ModelMapping, ...]:
    return tuple(
        ModelMapping(
            mapping_id=f"m-{uuid4().hex}",
            model_definition_id=config.model_definition_id,
            weight=limits.stored_weight(config.weight) if config.has("weight") else 1.0,
            linkage_type=config.linkage_type or "",
            fallback_order=config.fallback_order if config.has("fallback_order") else None,
            created_at=now,
            created_by=creator,
        )
        for config in configs
    )


def _linkage(mapping: ModelMapping) -> tuple[str, str]:
    return mapping.model_definition_id, mapping.linkage_type


def _has_fallbacks(mappings: Sequence[ModelMapping]) -> bool:
    return any(mapping.linkage_type == FALLBACK for mapping in mappings)


def _routing_strategy(message: m.CreateGatewayEndpoint | m.UpdateGatewayEndpoint) -> str | None:
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


def _check_experiment(
    message: m.CreateGatewayEndpoint | m.UpdateGatewayEndpoint, request: Request
) -> str | None:
    if not message.has("experiment_id"):
        return None
    return trace_experiments.check_id(message.experiment_id, request.workspace)
