"""Connections that break, answers that are no answers, and what is repeated."""

from __future__ import annotations

import json
import threading
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

from mlcore.db.signature import Keys, Signer
from mlcore.db.transport import Transport
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
