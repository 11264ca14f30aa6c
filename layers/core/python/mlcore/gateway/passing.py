"""Requests in a provider's own form: another's are refused in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from mlcore.gateway.invocation import Invocation
from mlcore.providers import transport
from mlcore.providers.provider import Provider

Json = dict[str, Any]


def answer(call: Invocation, action: str, body: Json, headers: Mapping[str, str]) -> Json:
    """The provider's answer as it is. Raises GatewayCallFailed."""
    return call.whole(
        lambda provider: provider.pass_on(action, dict(body), headers),
        lambda provider, answer: provider.usage(answer),
    )


def stream(
    call: Invocation, action: str, body: Json, headers: Mapping[str, str]
) -> Iterator[bytes]:
    """The lines of the provider's events as they are."""
    return call.parts(
        lambda provider: provider.pass_on_stream(action, dict(body), headers), _usage_in
    )


def _usage_in(provider: Provider, line: bytes) -> dict[str, int]:
    found: dict[str, int] = {}
    for event in transport.events(iter([line])):
        found |= provider.usage(event)
    return found
