"""Connections that break, answers that are no answers, and what is repeated."""

from __future__ import annotations

import http.client
import json
import threading
import time
import zlib
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

import pytest
from botocore.exceptions import (
    ClientError,
    ConnectionClosedError,
    EndpointConnectionError,
    ReadTimeoutError,
)

from mlcore.db import deadline
from mlcore.db.signature import Keys, Signer
from mlcore.db.transport import IDLE_SECONDS, Transport
from tests.doubles.nat import Nat
from tests.engines import free_port

FINE = (200, {"Item": {"PK": {"S": "é"}}})
THROTTLED = (400, {"__type": "x#ThrottlingException", "message": "slow down"})
REFUSED = (400, {"__type": "x#ConditionalCheckFailedException", "Item": {"a": {"S": "1"}}})


class _Engine(BaseHTTPRequestHandler):
    """Answers with the next of ``answers``: (status, body), or a word for what goes wrong."""

    protocol_version = "HTTP/1.1"
    answers: ClassVar[list[Any]] = []
    seen: ClassVar[list[tuple[str, bytes]]] = []
    connections: ClassVar[set[Any]] = set()

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.seen.append((self.headers["x-amz-target"], body))
        self.connections.add(self.client_address)
        answer = self.answers.pop(0) if self.answers else FINE
        if answer == "hang up":
            self.close_connection = True
            return
        if answer == "silence":
            threading.Event().wait(1.0)
            self.close_connection = True
            return
        status, said = (200, FINE[1]) if isinstance(answer, str) else answer
        content = json.dumps(said).encode()
        checksum = zlib.crc32(content) + (answer == "garbled")
        self.send_response(status)
        self.send_header("x-amz-crc32", str(checksum))
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
        # Without a word of it: as a server that tidies up idle connections.
        self.close_connection = answer == "and hang up"

    def log_message(self, *args: Any) -> None: ...


@pytest.fixture
def engine() -> Iterator[type[_Engine]]:
    _Engine.answers, _Engine.seen, _Engine.connections = [], [], set()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Engine)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    _Engine.port = server.server_address[1]  # type: ignore[attr-defined]
    try:
        yield _Engine
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def transport(port: int, **more: Any) -> Transport:
    return Transport(
        f"http://127.0.0.1:{port}",
        Signer("dynamodb", "us-east-1"),
        lambda: Keys("a", "b", None),
        **{
            "connect_timeout": 1,
            "read_timeout": 0.3,
            "attempts": 3,
            "connections": 4,
            "user_agent": "test",
            **more,
        },
    )


def ask(engine: Any, *answers: Any) -> dict[str, Any]:
    engine.answers[:] = answers
    made = transport(engine.port)
    try:
        return made.call("GetItem", {"Key": {"PK": {"S": "p"}}})
    finally:
        made.close()


def test_one_connection_serves_many_calls(engine: Any) -> None:
    made = transport(engine.port)
    for _ in range(5):
        assert made.call("GetItem", {"B": {"B": b"\x00\xff"}}) == FINE[1]
    made.close()
    assert len(engine.connections) == 1
    assert engine.seen[0] == ("DynamoDB_20120810.GetItem", b'{"B":{"B":"AP8="}}')


@pytest.mark.parametrize(
    "wrong",
    ["hang up", "silence", "garbled", THROTTLED, (500, {}), (503, {"__type": "x#Unavailable"})],
    ids=str,
)
def test_what_passes_is_tried_again(engine: Any, wrong: Any) -> None:
    assert ask(engine, wrong, wrong) == FINE[1]
    assert len(engine.seen) == 3


def test_a_connection_closed_while_idle_costs_no_attempt(engine: Any) -> None:
    made = transport(engine.port, attempts=1)
    engine.answers[:] = ["and hang up", FINE]
    assert made.call("GetItem", {}) == FINE[1]
    threading.Event().wait(0.05)
    assert made.call("GetItem", {}) == FINE[1]
    made.close()


@pytest.mark.parametrize(
    ("wrong", "error"),
    [("hang up", ConnectionClosedError), ("silence", ReadTimeoutError)],
)
def test_no_answer_in_the_end(engine: Any, wrong: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        ask(engine, *[wrong] * 6)


def test_nobody_listens() -> None:
    with pytest.raises(EndpointConnectionError):
        transport(free_port()).call("GetItem", {})


@pytest.mark.parametrize(
    ("answer", "code", "times"),
    [
        (REFUSED, "ConditionalCheckFailedException", 1),
        (THROTTLED, "ThrottlingException", 3),
        ((500, {}), "500", 3),
    ],
)
def test_a_refusal_says_what_dynamodb_said(engine: Any, answer: Any, code: str, times: int) -> None:
    with pytest.raises(ClientError) as refused:
        ask(engine, *[answer] * times)
    assert refused.value.response["Error"]["Code"] == code
    assert len(engine.seen) == times
    if code == "ConditionalCheckFailedException":
        assert refused.value.response["Item"] == {"a": {"S": "1"}}  # type: ignore[typeddict-item]


@pytest.fixture
def nat(engine: Any) -> Iterator[Nat]:
    made = Nat(engine.port)
    try:
        yield made
    finally:
        made.close()


def filled(nat: Nat, count: int, **more: Any) -> Transport:
    """A transport with so many idle connections."""
    made = transport(nat.port, connections=count, **more)
    together = threading.Barrier(count)
    kept = [made._connected(1.0) for _ in range(count)]

    def use(connection: http.client.HTTPConnection) -> None:
        together.wait(5)
        made._answer(connection, {"X-Amz-Target": "none"}, b"{}", time.monotonic() + 5)

    threads = [threading.Thread(target=use, args=(connection,)) for connection in kept]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made._idle) == count
    return made


def test_a_black_hole_costs_one_attempt(engine: Any, nat: Nat) -> None:
    made = filled(nat, 8, read_timeout=0.4, attempts=2)
    nat.forget_connections()
    started = time.monotonic()
    for _ in range(4):
        assert made.call("GetItem", {}) == FINE[1]
    assert nat.swallowed == 1
    assert time.monotonic() - started < 0.4 + 0.4
    made.close()


@pytest.mark.parametrize("clock", ["time", "monotonic"])
def test_a_connection_that_was_idle_for_long_is_not_used(
    engine: Any, nat: Nat, clock: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Either clock may stand still while a function is frozen."""
    made = filled(nat, 8, attempts=1)
    nat.forget_connections()
    later = getattr(time, clock)() + IDLE_SECONDS + 0.1
    with monkeypatch.context() as patch:
        patch.setattr(time, clock, lambda: later)
        assert made.call("GetItem", {}) == FINE[1]
        assert len(made._idle) == 1
    assert nat.swallowed == 0
    made.close()


def test_a_clock_that_was_set_back(engine: Any, nat: Nat, monkeypatch: pytest.MonkeyPatch) -> None:
    made = transport(nat.port, attempts=1)
    made.call("GetItem", {})
    nat.forget_connections()
    before = time.time() - 3600
    monkeypatch.setattr(time, "time", lambda: before)
    assert made.call("GetItem", {}) == FINE[1]
    made.close()


def test_an_endpoint_that_refuses_for_a_second(engine: Any) -> None:
    """The attempts of a call would be used up in a moment."""
    port = free_port()
    nats: list[Nat] = []

    def open_later() -> None:
        time.sleep(1.0)
        nats.append(Nat(engine.port, port))

    opening = threading.Thread(target=open_later)
    opening.start()
    made = transport(port, patience=10)
    assert made.call("GetItem", {}) == FINE[1]
    opening.join()
    made.close()
    nats[0].close()


class _Invocation:
    def __init__(self, seconds: float) -> None:
        self._ends = time.monotonic() + seconds

    def get_remaining_time_in_millis(self) -> int:
        return max(0, int((self._ends - time.monotonic()) * 1000))


@pytest.mark.parametrize("endpoint", ["silent", "closed"])
def test_a_call_ends_before_its_request_must(engine: Any, endpoint: str) -> None:
    engine.answers[:] = ["silence"] * 50
    port = engine.port if endpoint == "silent" else free_port()
    made = transport(port, attempts=50, read_timeout=0.3, patience=60)
    started = time.monotonic()
    with deadline.within(_Invocation(deadline.ANSWER_SECONDS + 0.5)):
        for _ in range(3):  # the deadline is that of all calls together
            with pytest.raises((ReadTimeoutError, EndpointConnectionError)):
                deadline.carried(lambda: made.call("GetItem", {}))()
    assert time.monotonic() - started < 0.5 + 0.5
    assert deadline.current() == float("inf")
    made.close()


def test_a_call_without_a_deadline_ends_as_well(engine: Any) -> None:
    engine.answers[:] = ["silence"] * 50
    made = transport(engine.port, attempts=50, read_timeout=0.1, longest=0.5)
    started = time.monotonic()
    with pytest.raises(ReadTimeoutError):
        made.call("GetItem", {})
    assert time.monotonic() - started < 1.5
    made.close()
