"""Calls that a provider was too busy for are repeated, and nothing is executed twice."""

from __future__ import annotations

import json
import socket
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from mlcore.db import deadline
from mlcore.repos.gateway import configuration
from tests.contract.busy_providers import (
    CHAT,
    Clock,
    ask,
    asking,
    busy,
    in_turn,
    noted_pauses,
    own_circuits,
    refused,
)
from tests.contract.conftest import Store
from tests.contract.gateway_requests import events_of, post
from tests.contract.gateway_world import KEY, allow_local, endpoint, model
from tests.contract.sealing import seal_here
from tests.contract.trace_calls import infos
from tests.doubles.providers import Asked, Told, failing, openai, serving

Json = dict[str, Any]


@pytest.fixture(autouse=True)
def local_providers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    seal_here(monkeypatch, tmp_path)
    allow_local(monkeypatch)
    monkeypatch.setenv("ARTIFACT_FOLDER", str(tmp_path / "files"))


@pytest.fixture(autouse=True)
def circuits(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return own_circuits(monkeypatch)


@pytest.fixture(autouse=True)
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    return noted_pauses(monkeypatch)


@pytest.mark.parametrize("status", [429, 503, 529])
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


@pytest.mark.parametrize("status", [400, 401, 404, 408, 422, 500, 501, 502, 504])
def test_what_another_try_does_not_mend_is_asked_once(store: Store, status: int) -> None:
    """At 408, 500, 502 and 504 something may have worked on the request, which may be paid for."""
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


def test_a_key_in_a_failure_is_redacted_in_every_attempt(store: Store) -> None:
    with asking(failing(503, f"the key {KEY} is busy")):
        assert KEY not in json.dumps(refused().detail)
    (tracked,) = configuration.read("default").endpoints.values()
    assert KEY not in json.dumps(infos(str(tracked.experiment_id)))


@pytest.mark.parametrize("status", [429, 503, 529])
@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("openai/v1/responses", {"model": "chat", "input": "x"}),
        ("openai/v1/responses", {"model": "chat", "input": "x", "stream": True}),
        ("openai/v1/responses/compact", {"model": "chat", "input": "x"}),
        ("proxy/chat/v1/batches", {"input": "x"}),
    ],
)
def test_what_a_provider_may_store_is_sent_once(
    store: Store, pauses: list[float], status: int, path: str, body: Json
) -> None:
    with asking(busy(status)) as provider:
        post(path, body)
        assert len(provider.asked) == 1
    post(path, body)
    assert len(pauses) == 2, "a refused connection has received nothing"


def test_a_provider_forbids_another_request(store: Store) -> None:
    with asking(busy(429, **{"X-Should-Retry": "false"})) as provider:
        assert (refused().status, len(provider.asked)) == (429, 1)
        provider.answer = busy(429, **{"X-Should-Retry": "true"})
        refused()
        assert len(provider.asked) == 4
