"""Calls that a provider was too busy for are repeated, models whose provider cannot work are left
alone for a while, and nothing is paid for twice."""

from __future__ import annotations

import json
import random
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from mlcore.db import deadline
from mlcore.errors import GatewayCallFailed
from mlcore.gateway import circuit_breakers, guarded_calls, retries
from mlcore.gateway.circuit_breakers import FAILURES, CircuitBreakers
from mlcore.repos.gateway import configuration
from tests.contract.conftest import Store
from tests.contract.gateway_requests import events_of, post
from tests.contract.gateway_world import KEY, allow_local, configure, endpoint, model
from tests.contract.sealing import seal_here
from tests.contract.trace_calls import infos
from tests.doubles.providers import Asked, Provider, Told, failing, openai, serving

Json = dict[str, Any]

CHAT: Json = {"messages": [{"role": "user", "content": "hello"}]}


@pytest.fixture(autouse=True)
def local_providers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    seal_here(monkeypatch, tmp_path)
    allow_local(monkeypatch)
    monkeypatch.setenv("ARTIFACT_FOLDER", str(tmp_path / "files"))


@pytest.fixture(autouse=True)
def circuits(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The time that circuit breakers go by."""
    clock = Clock()
    monkeypatch.setattr(retries, "CIRCUITS", CircuitBreakers(clock))
    return clock


@pytest.fixture(autouse=True)
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses between retries, which tests do not wait for."""
    made: list[float] = []
    monkeypatch.setattr(time, "sleep", made.append)
    monkeypatch.setattr(random, "uniform", lambda _, longest: longest)
    return made


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


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
    return guarded_calls.complete_chat("default", "chat", CHAT)


def refused() -> GatewayCallFailed:
    with pytest.raises(GatewayCallFailed) as failure:
        ask()
    return failure.value


@pytest.mark.parametrize("status", [429, 500, 502, 503, 529])
def test_a_busy_provider_is_asked_again(store: Store, status: int, pauses: list[float]) -> None:
    with asking(in_turn(busy(status), busy(status), openai)) as provider:
        assert ask()["provider"] == "openai"
        assert len(provider.asked) == 3
    assert pauses == [0.5, 1.0]
    (tracked,) = configuration.read("default").endpoints.values()
    assert [info["state"] for info in infos(str(tracked.experiment_id))] == ["OK"]


def test_it_is_asked_thrice_at_most(store: Store) -> None:
    with asking(busy(503)) as provider:
        failure = refused()
        assert (failure.status, len(provider.asked)) == (503, 3)
    assert "overloaded" in failure.message


@pytest.mark.parametrize("status", [400, 401, 404, 408, 422, 501, 504])
def test_what_another_try_does_not_mend_is_asked_once(store: Store, status: int) -> None:
    """At 408 and 504 something may have worked on the request, which may have to be paid for."""
    with asking(busy(status)) as provider:
        assert (refused().status, len(provider.asked)) == (status, 1)


def test_a_stream_is_repeated_before_its_first_part_alone(store: Store) -> None:
    def broken(request: Asked) -> Told:
        told = openai(request)
        return told._replace(parts=(*told.parts[:2], 'data: {"error": {"message": "busy"}}\n\n'))

    body = {"model": "chat", **CHAT, "stream": True}
    with asking(in_turn(busy(503), openai, broken)) as provider:
        for expected in (2, 3):
            status, _, text = post("mlflow/v1/chat/completions", body)
            assert (status, len(provider.asked)) == (200, expected)
        assert "error" in events_of(text)[-1]


def test_a_request_that_was_sent_is_not_sent_again(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not when its answer is late, and not when the connection ends without one."""
    monkeypatch.setenv("MLFLOW_GATEWAY_ROUTE_TIMEOUT_SECONDS", "1")
    received: list[bytes] = []
    ended = threading.Event()
    with closing(socket.create_server(("127.0.0.1", 0))) as server:

        def serve() -> None:
            for is_last in (False, True):
                connection, _ = server.accept()
                received.append(connection.recv(65_536))
                if not is_last:
                    ended.wait(10)
                connection.close()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        endpoint("chat", [model("m", "openai", url)])
        assert refused().status == 504
        ended.set()
        assert refused().status == 502
        thread.join(10)
    assert len(received) == 2


def test_a_refused_connection_is_tried_again(store: Store, pauses: list[float]) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
    endpoint("chat", [model("m", "openai", url)])
    assert refused().status == 502
    assert len(pauses) == 2


@pytest.mark.parametrize(
    ("retry_after", "expected"),
    [("1", [1.5, 2.0]), ("0", [0.5, 1.0]), ("3", []), ("-1", []), ("Fri, 31 Dec 1999", [])],
)
def test_a_provider_says_when_to_ask_again(
    store: Store, pauses: list[float], retry_after: str, expected: list[float]
) -> None:
    """A time beyond what a call should wait, or one that is no number, is the caller's affair."""
    with asking(busy(429, **{"Retry-After": retry_after})):
        assert refused().retry_after == retry_after
    assert pauses == expected


def test_the_fallback_is_sooner(store: Store, pauses: list[float]) -> None:
    with serving(openai) as other, asking(busy(503), other) as provider:
        ask()
        assert (len(provider.asked), len(other.asked)) == (2, 1)
        provider.answer = busy(429, **{"Retry-After": "1"})
        ask()
        assert (len(provider.asked), len(other.asked)) == (3, 2)
    assert pauses == [0.25]


def test_no_retry_begins_that_cannot_end(store: Store, pauses: list[float]) -> None:
    with asking(busy(503)) as provider, deadline.within(None, most=1.2):
        assert (refused().status, len(provider.asked)) == (503, 1)
    assert not pauses


def open_circuit(provider: Provider) -> None:
    while len(provider.asked) < FAILURES:
        refused()


@pytest.mark.parametrize("status", [429, 503, 529])
def test_an_open_circuit_spares_the_provider(store: Store, circuits: Clock, status: int) -> None:
    with asking(busy(status)) as provider:
        open_circuit(provider)
        failure = refused()
        assert len(provider.asked) == FAILURES
        assert failure.status == (429 if status == 429 else 503)
        assert failure.retry_after == "5"
        assert "overloaded" not in failure.message  # that belongs to another call
        circuits.now += circuit_breakers.OPEN_SECONDS
        provider.answer = openai
        ask()
        provider.answer = busy(status)
        refused()  # the circuit is closed: several failures are needed again
        assert len(provider.asked) == FAILURES + 4


def test_one_call_probes(store: Store, circuits: Clock) -> None:
    with asking(busy(503)) as provider:
        open_circuit(provider)
        circuits.now += circuit_breakers.OPEN_SECONDS
        for _ in range(3):
            refused()
        assert len(provider.asked) == FAILURES + 1


def test_an_open_circuit_leads_to_the_fallback_at_once(store: Store, pauses: list[float]) -> None:
    with serving(openai) as other, asking(busy(503), other) as provider:
        for _ in range(5):
            ask()
        assert (len(provider.asked), len(other.asked)) == (FAILURES, 5)


def test_a_provider_says_how_long_it_cannot_work(store: Store, circuits: Clock) -> None:
    with asking(busy(429, **{"Retry-After": "12"})) as provider:
        open_circuit(provider)
        assert refused().retry_after == "12"
        provider.answer = busy(429, **{"Retry-After": "99999"})
        circuits.now += 12
        refused()
        assert refused().retry_after == "30"


@pytest.mark.parametrize("status", [400, 401, 500, 504])
def test_no_request_can_open_a_circuit(store: Store, status: int) -> None:
    """Otherwise somebody could end the calls of all others with requests that fail."""
    with asking(busy(status)) as provider:
        for _ in range(FAILURES + 1):
            assert refused().status == status
        provider.answer = openai
        ask()


def test_a_request_that_is_refused_closes_the_circuit(store: Store) -> None:
    with asking(in_turn(*(busy(503),) * (FAILURES - 1), busy(400), busy(503))) as provider:
        while len(provider.asked) < 2 * FAILURES - 1:
            assert refused().status in (400, 503)


def test_another_model_and_a_changed_one_are_called(store: Store) -> None:
    with asking(busy(503)) as provider, serving(openai) as other:
        endpoint("other", [model("other", "openai", other.url)])
        open_circuit(provider)
        guarded_calls.complete_chat("default", "other", CHAT)
        (definition,) = [
            known
            for known in configuration.read("default").model_definitions.values()
            if known.name == "m0"
        ]
        configure(
            "model-definitions/update",
            {"model_definition_id": definition.model_definition_id, "model_name": "m-new"},
        )
        provider.answer = openai
        assert ask()["model"] == "m-new"


def test_the_kept_circuits_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(circuit_breakers, "MAX_CIRCUITS", 3)
    breakers = CircuitBreakers()
    failure = GatewayCallFailed(503, "busy", is_unavailable=True)
    for number in range(10):
        for _ in range(FAILURES):
            breakers.add_failure(number, failure)
    refusing = 0
    for number in range(10):
        try:
            breakers.check(number)
        except GatewayCallFailed:
            refusing += 1
    assert refusing == 3


def test_a_key_in_a_failure_is_redacted_in_every_attempt(store: Store) -> None:
    with asking(failing(503, f"the key {KEY} is busy")):
        assert KEY not in json.dumps(refused().detail)
    (tracked,) = configuration.read("default").endpoints.values()
    assert KEY not in json.dumps(infos(str(tracked.experiment_id)))
