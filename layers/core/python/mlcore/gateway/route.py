"""The way of a call: the models of an endpoint in the order in which they are asked."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple, TypeVar

from mlcore.entities.gateway import FALLBACK, PRIMARY, Configuration, Endpoint, Mapping
from mlcore.errors import AllModelsFailed, GatewayCallFailed, MlflowError, ResourceDoesNotExist
from mlcore.gateway.sealing import opened
from mlcore.providers.directory import provider_of
from mlcore.providers.model import Model
from mlcore.providers.provider import Provider
from mlcore.repos.gateway import configuration

T = TypeVar("T")

SPLIT: Final = "REQUEST_BASED_TRAFFIC_SPLIT"


class Route(NamedTuple):
    endpoint: Endpoint
    stops: tuple[Mapping, ...]
    """The model that is asked first, then those that are asked when it fails."""
    falls_back: bool
    """Whether failures are told as those of all attempts."""
    known: Configuration

    def ask(self, call: Callable[[Provider], T]) -> T:
        """What the first model gives that does not fail.

        Raises:
            GatewayCallFailed: none is left; with the status of the last one.
        """
        for stop in self.stops[:-1]:
            try:
                return call(self._provider(stop))
            except MlflowError:
                continue
        try:
            return call(self._provider(self.stops[-1]))
        except MlflowError as error:
            raise self._failed(error) from None

    def stream(self, call: Callable[[Provider], Iterator[T]]) -> Iterator[T]:
        """As :meth:`ask`: once something of a stream has come, no other model is asked."""
        for stop in self.stops[:-1]:
            begun = False
            try:
                for part in call(self._provider(stop)):
                    begun = True
                    yield part
            except MlflowError:
                if begun:
                    raise
            else:
                return
        begun = False
        try:
            for part in call(self._provider(self.stops[-1])):
                begun = True
                yield part
        except MlflowError as error:
            raise error if begun else self._failed(error) from None

    def _provider(self, stop: Mapping) -> Provider:
        definition = self.known.model_definitions[stop.model_definition_id]
        secret = self.known.secrets[definition.secret_id]
        return provider_of(
            Model(definition.provider, definition.model_name, opened(secret), secret.auth_config)
        )

    def _failed(self, error: MlflowError) -> MlflowError:
        if not self.falls_back:
            return error
        status, said = 500, error.message
        if isinstance(error, GatewayCallFailed):
            status, said = error.status, f"{error.status}: {error.message}"
        return AllModelsFailed(
            status, f"All {len(self.stops)} fallback attempts failed. Last error: {said}"
        )


def find(workspace: str, endpoint_name: str, known: Configuration | None = None) -> Route:
    """The way of one call; where traffic is split, another each time. One consistent Query, unless
    the configuration is known.

    Raises:
        ResourceDoesNotExist: no endpoint has the name, or it has no model with a secret.
    """
    known = known or configuration.read(workspace)
    endpoint = known.endpoint_named(endpoint_name)
    if endpoint is None:
        raise ResourceDoesNotExist(f"GatewayEndpoint not found (name='{endpoint_name}')")
    return _route(known, endpoint)


def _route(known: Configuration, endpoint: Endpoint) -> Route:
    usable = [one for one in endpoint.mappings if _is_usable(known, one)]
    primary = [one for one in usable if one.linkage_type == PRIMARY]
    if not primary:
        raise ResourceDoesNotExist(f"Endpoint '{endpoint.name}' has no PRIMARY models configured")
    first = _split(primary) if endpoint.routing_strategy == SPLIT else primary[0]
    others = sorted(
        (one for one in usable if one.linkage_type == FALLBACK),
        key=lambda one: math.inf if one.fallback_order is None else one.fallback_order,
    )
    if endpoint.fallback is None or not others:
        return Route(endpoint, (first,), False, known)
    most = endpoint.fallback.max_attempts or len(others)
    return Route(endpoint, (first, *others[:most]), True, known)


def _split(primary: Sequence[Mapping]) -> Mapping:
    """By weight; where nobody has one, each as often as the others."""
    weights = [max(one.weight, 0.0) for one in primary]
    return random.choices(primary, weights if any(weights) else None)[0]  # noqa: S311 -- no secret


def _is_usable(known: Configuration, mapping: Mapping) -> bool:
    definition = known.model_definitions.get(mapping.model_definition_id)
    return definition is not None and definition.secret_id in known.secrets
