"""Connections that break, answers that are no answers, and what is repeated."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import threading
import time
import zlib
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

import pytest
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectionClosedError,
    EndpointConnectionError,
    ReadTimeoutError,
)

from mlcore import errors
from mlcore.db import deadline, failures
from mlcore.db.failures import NotSent
from mlcore.db.signature import Credentials, Signer
from mlcore.db.transport import IDLE_SECONDS, Protocol, Transport
from tests.doubles.nat import Nat

FINE = (200, {"Item": {"PK": {"S": "é"}}})
THROTTLED = (400, {"__type": "x#ThrottlingException", "message": "slow down"})
PATIENT_SECONDS = 60.0
"""Of a timeout that is not what is tested."""
REFUSED = (400, {"__type": "x#ConditionalCheckFailedException", "Item": {"a": {"S": "1"}}})


class _Engine(BaseHTTPRequestHandler):
    """Answers with the next of ``answers``: (status, body), or a word for what goes wrong."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    answers: ClassVar[list[Any]]
    seen: ClassVar[list[tuple[str, bytes]]]
    requests: ClassVar[list[tuple[str, str]]]
    connections: ClassVar[set[Any]]
    port: ClassVar[int]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.seen.append((self.headers["x-amz-target"], body))
        self.requests.append((self.path, self.headers["content-type"]))
        self.connections.add(self.client_address)
        answer = self.answers.pop(0) if self.answers else FINE
        if answer == "hang up":
            self.close_connection = True
            return
        if answer == "silence":
            self.rfile.read(1)  # until the caller gives up
            self.close_connection = True
            return
        status, reply = (200, FINE[1]) if isinstance(answer, str) else answer
        content = json.dumps(reply).encode()
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
    class Engine(_Engine):
        """One of this test alone: a thread of another's may still be at work."""

        answers: ClassVar[list[Any]] = []
        seen: ClassVar[list[tuple[str, bytes]]] = []
        requests: ClassVar[list[tuple[str, str]]] = []
        connections: ClassVar[set[Any]] = set()

    server = ThreadingHTTPServer(("127.0.0.1", 0), Engine)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    Engine.port = server.server_address[1]
    try:
        yield Engine
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def transport(port: int, path: str = "", **more: Any) -> Transport:
    return Transport(
        f"http://127.0.0.1:{port}{path}",
        Signer("dynamodb", "us-east-1"),
        lambda: Credentials("a", "b", None),
        **{
            "connect_timeout": PATIENT_SECONDS,
            "read_timeout": PATIENT_SECONDS,
            "attempts": 3,
            "connections": 4,
            "user_agent": "test",
            **more,
        },
    )


def ask(engine: Any, *answers: Any, **more: Any) -> dict[str, Any]:
    engine.answers[:] = answers
    made = transport(engine.port, **more)
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


def test_another_service_at_a_path(engine: Any) -> None:
    protocol = Protocol("TrentService.", "1.1")
    made = transport(engine.port, "/behind/a-path", protocol=protocol)
    made.call("Encrypt", {})
    made.close()
    assert engine.seen == [("TrentService.Encrypt", b"{}")]
    assert engine.requests == [("/behind/a-path", "application/x-amz-json-1.1")]


@pytest.mark.parametrize(
    "wrong",
    ["hang up", "silence", "garbled", THROTTLED, (500, {}), (503, {"__type": "x#Unavailable"})],
    ids=str,
)
def test_what_passes_is_tried_again(engine: Any, wrong: Any) -> None:
    # The third answer must come within the timeout, too, on a machine that may just pause.
    more = {"read_timeout": 1.0} if wrong == "silence" else {}
    assert ask(engine, wrong, wrong, **more) == FINE[1]
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
        ask(engine, *[wrong] * 6, **({"read_timeout": 0.3} if wrong == "silence" else {}))


@contextlib.contextmanager
def closed_port() -> Iterator[int]:
    """One that refuses connections, and that nobody else gets meanwhile."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


def test_nobody_listens() -> None:
    with closed_port() as port, pytest.raises(EndpointConnectionError):
        transport(port).call("GetItem", {})


@pytest.mark.parametrize(
    ("answers", "is_open"),
    [
        ([THROTTLED] * 3, False),
        (["hang up", THROTTLED, THROTTLED], True),
        ([(500, {}), THROTTLED, THROTTLED], True),
        ([THROTTLED, THROTTLED, (500, {})], True),
        (["garbled"] * 3, True),
        ([THROTTLED, THROTTLED, "garbled"], True),
        ([THROTTLED, REFUSED], False),
        (["hang up", REFUSED], True),
    ],
)
def test_a_lost_attempt_is_not_forgotten(engine: Any, answers: list[Any], is_open: bool) -> None:
    """A later refusal because of the load does not say that nothing was written."""
    with pytest.raises((BotoCoreError, ClientError)) as caught:
        ask(engine, *answers)
    error = caught.value
    assert isinstance(error, BotoCoreError | ClientError)
    assert failures.may_have_written(error) is is_open
    refused = isinstance(error, ClientError) and failures.code(error)
    assert (refused == "ThrottlingException") is (not is_open and REFUSED not in answers)


@pytest.mark.parametrize("wrong", ["garbled", (500, {}), (503, {})], ids=str)
def test_whoever_calls_is_told_to_come_back(engine: Any, wrong: Any) -> None:
    with pytest.raises(ClientError) as caught:
        ask(engine, *[wrong] * 3)
    assert isinstance(failures.translate(caught.value), errors.TemporarilyUnavailable)


def test_what_was_never_sent_was_not_executed(engine: Any) -> None:
    with closed_port() as port, pytest.raises(NotSent):
        transport(port).call("PutItem", {})
    made = transport(engine.port)
    with deadline.within(_Invocation(0.0)), pytest.raises(NotSent):
        made.call("PutItem", {})
    assert engine.seen == []
    made.close()


@pytest.mark.parametrize(
    ("answer", "code", "times"),
    [
        (REFUSED, "ConditionalCheckFailedException", 1),
        (THROTTLED, "ThrottlingException", 3),
        ((500, {}), "InternalServerError", 3),
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
    kept = [made._connected(PATIENT_SECONDS) for _ in range(count)]

    def use(connection: http.client.HTTPConnection) -> None:
        together.wait(PATIENT_SECONDS)
        ends = time.monotonic() + PATIENT_SECONDS
        made._answer(connection, {"X-Amz-Target": "none"}, b"{}", ends)

    threads = [threading.Thread(target=use, args=(connection,)) for connection in kept]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made._idle) == count
    return made


def test_a_black_hole_costs_one_attempt(engine: Any, nat: Nat) -> None:
    made = filled(nat, 8, read_timeout=1.0, attempts=2)
    nat.forget_connections()
    for _ in range(4):
        assert made.call("GetItem", {}) == FINE[1]
    assert nat.swallowed == 1
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
    nat = Nat(engine.port, refuses=True)
    opening = threading.Timer(1.0, nat.open)
    opening.start()
    made = transport(nat.port, patience=PATIENT_SECONDS, longest=PATIENT_SECONDS)
    assert made.call("GetItem", {}) == FINE[1]
    opening.join()
    made.close()
    nat.close()


class _Invocation:
    def __init__(self, seconds: float) -> None:
        self._ends = time.monotonic() + seconds

    def get_remaining_time_in_millis(self) -> int:
        return max(0, int((self._ends - time.monotonic()) * 1000))


@pytest.mark.parametrize("endpoint", ["silent", "closed"])
def test_a_call_ends_before_its_request_must(engine: Any, endpoint: str) -> None:
    engine.answers[:] = ["silence"] * 50
    with closed_port() as closed:
        port = engine.port if endpoint == "silent" else closed
        made = transport(port, attempts=50, read_timeout=0.3, patience=60)
        invocation = _Invocation(deadline.ANSWER_SECONDS + 0.5)
        with deadline.within(invocation):
            for _ in range(3):  # the deadline is that of all calls together
                with pytest.raises((ReadTimeoutError, EndpointConnectionError)):
                    deadline.with_current_deadline(lambda: made.call("GetItem", {}))()
    assert invocation.get_remaining_time_in_millis() > 0
    assert deadline.current() == float("inf")
    made.close()


def test_a_call_without_a_deadline_ends_as_well(engine: Any) -> None:
    engine.answers[:] = ["silence"] * 50
    made = transport(engine.port, attempts=50, read_timeout=0.1, longest=0.5)
    with pytest.raises(ReadTimeoutError):
        made.call("GetItem", {})
    assert len(engine.seen) <= 5, "each of them takes a tenth of a second"
    made.close()
