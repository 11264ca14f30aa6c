"""Calls of an endpoint whose provider is busy, and the time that circuit breakers go by."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from mlcore.errors import GatewayCallFailed
from mlcore.gateway import chats, guarded_calls, retries
from mlcore.gateway.caller import Caller
from mlcore.gateway.chat_schemas import validated_chat
from mlcore.gateway.circuit_breakers import CircuitBreakers
from tests.contract.gateway_world import endpoint, model
from tests.doubles.providers import Asked, Provider, Told, failing, serving

Json = dict[str, Any]

CHAT: Json = {"messages": [{"role": "user", "content": "hello"}]}


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def own_circuits(patch: pytest.MonkeyPatch) -> Clock:
    """Gives a test circuits of its own; returns the time that they go by."""
    clock = Clock()
    patch.setattr(retries, "CIRCUITS", CircuitBreakers(clock))
    return clock


def noted_pauses(patch: pytest.MonkeyPatch) -> list[float]:
    """Returns the pauses between retries, for which a test does not wait."""
    pauses: list[float] = []
    waiting = SimpleNamespace(pause=pauses.append)
    longest = SimpleNamespace(uniform=lambda _, longest: longest)
    for name, stub in (("abandonment", waiting), ("random", longest)):
        patch.setattr(retries, name, stub)
    return pauses


def in_turn(*answers: Callable[[Asked], Told]) -> Callable[[Asked], Told]:
    """A provider that answers one after the other, and then as the last."""
    rest = list(answers)

    def answer(request: Asked) -> Told:
        current = rest.pop(0) if len(rest) > 1 else rest[0]
        return current(request)

    return answer


def busy(status: int, **headers: str) -> Callable[[Asked], Told]:
    return lambda request: failing(status)(request)._replace(headers=headers)


@contextmanager
def asking(answer: Callable[[Asked], Told], *fallbacks: Provider) -> Iterator[Provider]:
    """A provider behind the endpoint ``chat``, which tracks its usage."""
    with serving(answer) as provider:
        models = [model(f"m{n}", "openai", p.url) for n, p in enumerate((provider, *fallbacks))]
        endpoint("chat", models[:1], models[1:], usage_tracking=True)
        yield provider


def ask() -> Json:
    """Asks as a user does."""
    return chats.complete(guarded_calls.begin("default", "chat", Caller()), validated_chat(CHAT))


def refused() -> GatewayCallFailed:
    with pytest.raises(GatewayCallFailed) as failure:
        ask()
    return failure.value
