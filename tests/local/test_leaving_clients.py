"""A client that leaves while a model answers is noticed; one that stays is not taken for it."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator

import pytest

from local.http.server import LAST_CALL_SECONDS, STOP_SECONDS
from tests.local.http_server import PATIENT_SECONDS, gate, one_answer, received, request, running

NOTICED_SECONDS = 1.0
"""In which a provider's work must end."""


@pytest.fixture(autouse=True)
def closed_gate() -> Iterator[None]:
    gate().gate.clear()
    gate().ended.clear()
    yield
    gate().gate.set()


def arrive(client: socket.socket, data: bytes) -> None:
    client.sendall(data)
    assert gate().arrived.acquire(timeout=PATIENT_SECONDS)


def is_noticed() -> bool:
    return bool(gate().ended.wait(NOTICED_SECONDS))


@pytest.mark.parametrize("action", ["leave", "silent"])
@pytest.mark.parametrize("is_half", [False, True])
def test_a_client_that_leaves_is_noticed(action: str, is_half: bool) -> None:
    """Whether the function works or a stream is silent. Who only ends its own sending has left, as
    with MLflow's server."""
    with running() as server, server.connect() as client:
        arrive(client, request("POST", f"/models/{action}"))
        if is_half:
            client.shutdown(socket.SHUT_WR)
        else:
            client.close()
        assert is_noticed()
        with server.connect() as other:  # in the thread of the first one
            other.sendall(request("POST", "/models/echo"))
            assert one_answer(other)[0] == 200


def test_a_client_that_stays_is_not_taken_for_one_that_leaves() -> None:
    """Not even if its next request has arrived already."""
    with running() as server, server.connect() as client:
        arrive(client, request("POST", "/models/leave") + request("POST", "/models/echo"))
        assert not is_noticed()
        gate().gate.set()
        assert [one_answer(client)[0] for _ in range(2)] == [200, 200]


def test_between_two_calls_nobody_is_watched() -> None:
    with running() as server, server.connect() as client:
        for _ in range(2):
            client.sendall(request("POST", "/models/echo"))
            assert one_answer(client)[0] == 200
            time.sleep(0.3)
        arrive(client, request("POST", "/gate/leave"))
        client.shutdown(socket.SHUT_WR)
        assert not is_noticed()
        gate().gate.set()
        assert received(client).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize("action", ["leave", "silent"])
def test_a_call_of_a_model_does_not_delay_the_end(action: str) -> None:
    """It ends and is answered, while a request that calls no model may go on."""
    with running() as server, server.connect() as client, server.connect() as other:
        arrive(client, request("POST", f"/models/{action}"))
        arrive(other, request("POST", "/gate/leave"))
        began = time.monotonic()
        server.server.stop()
        assert received(client).startswith(b"HTTP/1.1 200")
        assert gate().ended.is_set()
        assert time.monotonic() - began < STOP_SECONDS / 2
        assert server.thread.is_alive()
        gate().gate.set()
        assert received(other).startswith(b"HTTP/1.1 200")


def test_a_call_that_does_not_notice_does_not_delay_the_end() -> None:
    """As one whose provider's address does not answer: its client gets nothing."""
    with running() as server, server.connect() as client:
        arrive(client, request("POST", "/models/wait"))
        began = time.monotonic()
        server.server.stop()
        server.thread.join(STOP_SECONDS / 2)
        assert not server.thread.is_alive()
        assert time.monotonic() - began < STOP_SECONDS / 2
        gate().gate.set()


def test_an_answer_that_the_provider_has_given_is_not_cut_off() -> None:
    """Neither while its trace is written, nor while a slow client reads it."""
    with running() as server, server.connect() as writing, server.connect() as reading:
        reading.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 17)
        arrive(writing, request("POST", "/models/write"))
        arrive(reading, request("POST", "/models/large"))
        server.server.stop()
        server.thread.join(LAST_CALL_SECONDS + 0.3)
        assert server.thread.is_alive()
        gate().gate.set()
        assert received(writing).startswith(b"HTTP/1.1 200")
        assert len(received(reading)) > gate().LARGE_BYTES
