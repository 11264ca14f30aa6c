"""The models of a gateway endpoint in the order in which a call tries them: a primary model, then
fallbacks."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from itertools import islice
from typing import Any, Final, NamedTuple, TypeVar

from mlcore.entities.gateway import FALLBACK, PRIMARY, Configuration, Endpoint, ModelMapping
from mlcore.errors import (
    AllModelsFailed,
    CallerLeft,
    GatewayCallFailed,
    MlflowError,
    ResourceDoesNotExist,
)
from mlcore.gateway import retries
from mlcore.gateway.retries import Handling
from mlcore.gateway.secret_values import open_values
from mlcore.providers.known_providers import provider_of
from mlcore.providers.model import Model
from mlcore.providers.provider import Provider
from mlcore.repos.gateway import configuration

T = TypeVar("T")

SPLIT: Final = "REQUEST_BASED_TRAFFIC_SPLIT"


class Route(NamedTuple):
    endpoint: Endpoint
    mappings: tuple[ModelMapping, ...]
    """The primary model of this call, then the fallbacks in order."""
    falls_back: bool
    """Whether the endpoint has fallbacks; a failure is then reported as that of all attempts."""
    known: Configuration

    @property
    def may_ask_bedrock(self) -> bool:
        """Whether one of the models that this gateway call may use is at Amazon Bedrock."""
        definitions = self.known.model_definitions
        return any(
            definitions[mapping.model_definition_id].is_at_bedrock for mapping in self.mappings
        )

    @property
    def model_names(self) -> frozenset[str]:
        """The names that the models of the gateway endpoint have at their providers. For a model at
        Azure also the name of its deployment."""
        names: set[str] = set()
        for mapping in self.endpoint.mappings:
            definition = self.known.model_definitions.get(mapping.model_definition_id)
            if definition is not None:
                names.add(definition.model_name)
                secret = self.known.secrets.get(definition.secret_id)
                names.add("" if secret is None else secret.auth_config.get("deployment_name", ""))
        return frozenset(names - {""})

    def ask(self, call: Callable[[Provider], T], handling: Handling) -> T:
        """Calls the endpoint's models in order. Returns the answer of the first that does not fail.

        Args:
            handling: whether a call is repeated, and whether circuit breakers apply to it.

        Raises:
            GatewayCallFailed: every model failed; with the status of the last failure, or 500 if
                the last model's secret could not be decrypted.
            TemporarilyUnavailable, InternalError: the only model's secret could not be decrypted.
        """
        for mapping in self.mappings[:-1]:
            try:
                return self._repeated(mapping, call, handling, has_fallback=True)
            except CallerLeft:
                raise
            except MlflowError:
                continue
        try:
            return self._repeated(self.mappings[-1], call, handling, has_fallback=False)
        except MlflowError as error:
            raise self._failure(error) from None

    def stream(self, call: Callable[[Provider], Generator[T]], handling: Handling) -> Iterator[T]:
        """Yields the parts of the streamed answer of the first of this route's models that does not
        fail. After its first part no other model is asked: a later failure ends the stream. The
        arguments are those of :meth:`ask`."""

        def begin(provider: Provider) -> tuple[list[T], Generator[T]]:
            parts = call(provider)
            return list(islice(parts, 1)), parts

        first, rest = self.ask(begin, handling)
        with closing(rest):
            yield from first
            yield from rest

    def _repeated(
        self,
        mapping: ModelMapping,
        call: Callable[[Provider], T],
        handling: Handling,
        *,
        has_fallback: bool,
    ) -> T:
        definition = self.known.model_definitions[mapping.model_definition_id]
        secret = self.known.secrets[definition.secret_id]
        # A changed definition or secret may lead to another provider, which has not failed.
        model = (
            *(definition.model_definition_id, definition.last_updated_at),
            *(secret.secret_id, secret.last_updated_at),
        )
        return retries.repeated(
            lambda: call(self._provider(mapping)), model, handling, has_fallback=has_fallback
        )

    def _provider(self, mapping: ModelMapping) -> Provider:
        definition = self.known.model_definitions[mapping.model_definition_id]
        secret = self.known.secrets[definition.secret_id]
        return provider_of(
            Model(
                definition.provider, definition.model_name, open_values(secret), secret.auth_config
            )
        )

    def _failure(self, error: MlflowError) -> MlflowError:
        if not self.falls_back or isinstance(error, CallerLeft):
            return error
        status, last_error, retry_after = 500, error.message, None
        provider_fields: Mapping[str, Any] = {}
        if isinstance(error, GatewayCallFailed):
            status, last_error = error.status, f"{error.status}: {error.message}"
            retry_after, provider_fields = error.retry_after, error.provider_fields
        return AllModelsFailed(
            status,
            f"All {len(self.mappings)} fallback attempts failed. Last error: {last_error}",
            retry_after,
            provider_fields=provider_fields,
        )


def find(workspace: str, endpoint_name: str, known: Configuration | None = None) -> Route:
    """Chooses the models of one call, in the order in which they are tried. If the endpoint splits
    traffic, each call chooses again, at random. One consistent Query, unless the configuration is
    given.

    Args:
        known: the gateway's configuration, if it was already read for this request.

    Raises:
        ResourceDoesNotExist: no endpoint has the name, or it has no primary model with a secret.
    """
    known = known or configuration.read(workspace)
    return _build_route(known, known.existing_endpoint(endpoint_name))


def _build_route(known: Configuration, endpoint: Endpoint) -> Route:
    usable = [mapping for mapping in endpoint.mappings if _is_usable(known, mapping)]
    primary = [mapping for mapping in usable if mapping.linkage_type == PRIMARY]
    if not primary:
        raise ResourceDoesNotExist(f"Endpoint '{endpoint.name}' has no PRIMARY models configured")
    first = _pick_by_weight(primary) if endpoint.routing_strategy == SPLIT else primary[0]
    fallbacks = sorted(
        (mapping for mapping in usable if mapping.linkage_type == FALLBACK),
        key=lambda mapping: math.inf if mapping.fallback_order is None else mapping.fallback_order,
    )
    if endpoint.fallback is None or not fallbacks:
        return Route(endpoint, (first,), False, known)
    max_fallbacks = endpoint.fallback.max_attempts or len(fallbacks)
    return Route(endpoint, (first, *fallbacks[:max_fallbacks]), True, known)


def _pick_by_weight(primary: Sequence[ModelMapping]) -> ModelMapping:
    """Picks a model at random by weight; all are equally likely if every weight is 0."""
    weights = [max(mapping.weight, 0.0) for mapping in primary]
    return random.choices(primary, weights if any(weights) else None)[0]  # noqa: S311 -- no secret


def _is_usable(known: Configuration, mapping: ModelMapping) -> bool:
    definition = known.model_definitions.get(mapping.model_definition_id)
    return definition is not None and definition.secret_id in known.secrets
