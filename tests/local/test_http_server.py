"""The HTTP server over sockets: framing, slow and hostile clients, limits, and its end."""

from __future__ import annotations

import select
import socket
import struct
import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import local.http.application
from local.http import body_budget, connection
from local.http.body_budget import BodyBudget
from local.http.connection import Connection
from local.http.lambda_event import MAXIMUM_PAYLOAD_BYTES
from local.http.server import listen
from tests.local.conftest import eventually
from tests.local.http_server import (
    PATIENT_SECONDS,
    SMALL_TIMEOUT,
    Running,
    answers,
    application,
    echoed,
    gate,
    one_answer,
    received,
    request,
    running,
    served,
)

CHUNKED = "Transfer-Encoding: chunked"
ECHO = "/gate/echo"


@pytest.fixture(scope="module")
def server() -> Any:
    with running() as started:
        yield started


def test_requests_on_one_connection_in_their_order(server: Running) -> None:
    """Pipelined, with and without bodies, and the answers to HEAD without one."""
    sent = [
        request("POST", f"{ECHO}?a=%20b", "X-A: 1", "X-A: 2", body=b"one"),
        request("HEAD", ECHO),
        request("OPTIONS", ECHO),
        request("PUT", ECHO, CHUNKED) + b"2\r\ntw\r\n1;x=y\r\no\r\n0\r\nX-Late: 1\r\n\r\n",
        request("GET", "/absent"),
        request("GET", ECHO, "Connection: close"),
        request("GET", ECHO),
    ]
    got = answers(server.ask(b"".join(sent)), "POST HEAD OPTIONS PUT GET GET")
    assert [answer[0] for answer in got] == [200, 200, 200, 200, 404, 200]
    first, _, options, put, _, last = got
    assert echoed(first)["query"] == "a=%20b"
    assert echoed(first)["headers"]["x-a"] == "1,2"
    assert echoed(first)["base64"]
    assert echoed(put)["body"] == "dHdv"
    assert "x-late" not in echoed(put)["headers"]
    assert echoed(options)["method"] == "OPTIONS"
    assert last[1]["connection"] == "close"
    assert "date" in first[1]
    assert got[1][2] == b""
    assert "content-length" in got[1][1]


def test_http_1_0(server: Running) -> None:
    """It keeps a connection only if asked to, and gets no chunks."""
    kept = request("GET", ECHO, "Connection: keep-alive", version="1.0")
    got = answers(server.ask(kept + request("GET", ECHO, version="1.0") + kept))
    assert [answer[1]["connection"] for answer in got] == ["keep-alive", "close"]
    whole = server.ask(request("GET", "/gate/parts", "Connection: keep-alive", version="1.0"))
    head, _, body = whole.partition(b"\r\n\r\n")
    assert body == b"onetwo"
    assert b"connection: close" in head
    assert b"transfer-encoding" not in head


def test_an_address_that_ends_with_a_slash(server: Running) -> None:
    """Clients join it and a path that begins with one."""
    got = answers(server.ask(request("GET", "/" + ECHO) + request("POST", "//" + ECHO)))
    assert [status for status, _, _ in got] == [200, 200]
    assert [echoed(answer)["path"] for answer in got] == [ECHO.partition("?")[0]] * 2


def test_streams(server: Running) -> None:
    whole = server.ask(request("GET", "/gate/parts") + request("GET", ECHO))
    head, _, body = whole.partition(b"\r\n\r\n")
    assert b"transfer-encoding: chunked" in head
    assert body.startswith(b"3\r\none\r\n3\r\ntwo\r\n0\r\n\r\nHTTP/1.1 200")
    # One that fails ends without its last chunk, so that nobody takes it for whole.
    cut = server.ask(request("GET", "/gate/cut") + request("GET", ECHO))
    assert cut.endswith(b"\r\n\r\n0\r\n\r\n") is False
    assert cut.count(b"HTTP/1.1") == 1


def test_a_client_that_leaves_ends_the_stream(server: Running) -> None:
    gate().ended.clear()
    with server.connect() as client:
        client.sendall(request("GET", "/gate/stream"))
        assert client.recv(10)
    assert gate().ended.wait(PATIENT_SECONDS)


def test_an_answer_cannot_add_headers_of_others(server: Running) -> None:
    whole = server.ask(request("GET", "/gate/split") + request("GET", ECHO))
    assert [answer[0] for answer in answers(whole)] == [500]
    assert b"x-other" not in whole


def test_expect_continue(server: Running) -> None:
    with server.connect() as client:
        client.sendall(request("POST", ECHO, "Expect: 100-continue", "Content-Length: 3"))
        assert one_answer(client)[0] == 100
        client.sendall(b"abc")
        assert echoed(one_answer(client))["body"] == "YWJj"
        client.sendall(request("POST", ECHO, "Expect: 100-continue", body=b"abc"))
        assert one_answer(client)[0] == 200  # the body came unasked


def test_bodies_above_the_limit_are_refused_and_the_connection_stays(server: Running) -> None:
    size = MAXIMUM_PAYLOAD_BYTES + 1
    chunk = b"%x\r\n%b\r\n" % (100_000, bytes(100_000))
    with server.connect() as client:
        for sent in (
            request("POST", ECHO, body=bytes(size)),
            request("POST", ECHO, CHUNKED) + chunk * (size // 100_000 + 1) + b"0\r\n\r\n",
        ):
            client.sendall(sent)
            assert one_answer(client)[0] == 413
            client.sendall(request("GET", ECHO))
            assert one_answer(client)[0] == 200


def test_bodies_of_all_connections_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(body_budget.BodyBudget.__init__, "__defaults__", (1_000_000,))
    with running() as server, server.connect() as client:
        for _ in range(3):
            client.sendall(request("POST", ECHO, body=bytes(900_000)))
            assert one_answer(client)[0] == 200
            client.sendall(request("POST", ECHO, body=bytes(1_100_000)))
            status, headers, _ = one_answer(client)
            assert (status, headers["retry-after"]) == (429, "1")


def test_heads_above_the_limit(server: Running) -> None:
    for size, status in ((11_000, 200), (65_000, 200), (66_000, 431)):
        long = request("GET", ECHO, "X: " + "x" * size)
        got = answers(server.ask(long + request("GET", ECHO)))
        assert [answer[0] for answer in got] == [status, 200], size
    longer = request("GET", ECHO, "X: " + "x" * 200_000)
    got = answers(server.ask(longer + request("GET", ECHO)))
    assert [(answer[0], answer[1]["connection"]) for answer in got] == [(431, "close")]


def test_half_a_body(server: Running) -> None:
    """The client has said that no more comes: nothing is done."""
    log = server.ask(request("POST", "/gate/wait", "Content-Length: 10") + b"abc")
    assert log == b""


def test_a_reset_within_a_body_is_no_failure(capsys: Any) -> None:
    """The client has left, and no function is called: nothing is logged."""
    with listen("127.0.0.1", 0) as listener:
        listener.listen()
        client = socket.create_connection(listener.getsockname())
        theirs, _ = listener.accept()
    serving = threading.Thread(
        target=Connection(theirs, "127.0.0.1", "localhost", application(), BodyBudget()).serve
    )
    serving.start()
    client.sendall(request("POST", ECHO, "Content-Length: 10", "Expect: 100-continue"))
    assert client.recv(1 << 16).startswith(b"HTTP/1.1 100 ")  # it waits for the body
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()
    serving.join()
    assert "".join(capsys.readouterr()) == ""


@given(st.binary(max_size=200), st.sampled_from([b"", b"GET ", b"POST / HTTP/1.1\r\nHost: a\r\n"]))
def test_any_bytes_get_a_refusal_or_an_answer(tail: bytes, start: bytes) -> None:
    for status, headers, _ in answers(served(application(), start + tail)):
        assert status in {400, 404, 431}, (status, start + tail)
        assert status != 400 or headers["connection"] == "close"


def test_what_follows_a_malformed_request_is_not_served(server: Running) -> None:
    smuggled = request("GET", "/gate/smuggled")
    for headers in (
        ("Content-Length: 3", CHUNKED),
        ("Transfer-Encoding: identity",),
        ("Content-Length: 3", "Content-Length: 4"),
        ("Host: other",),
    ):
        whole = server.ask(request("POST", ECHO, *headers) + b"0\r\n\r\n" + smuggled)
        assert [answer[0] for answer in answers(whole)] == [400], headers


def test_byte_by_byte(server: Running) -> None:
    with server.connect() as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in request("POST", ECHO, body=b"slow"):
            client.sendall(bytes([byte]))
        assert echoed(one_answer(client))["body"] == "c2xvdw=="


def test_slow_clients_are_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "KEEP_ALIVE_SECONDS", 0.1)
    monkeypatch.setattr(connection, "PROGRESS_SECONDS", 0.1)
    with running() as server:
        for sent in (
            b"",
            b"GET / HTTP/1.1\r\nHost",
            request("POST", ECHO, "Content-Length: 3") + b"a",
            request("GET", ECHO),
        ):
            with server.connect() as client:
                client.sendall(sent)
                received(client)
        # One that does not read what it asked for.
        gate().ended.clear()
        with server.connect() as client:
            client.sendall(request("GET", "/gate/stream"))
            assert gate().ended.wait(PATIENT_SECONDS)


def test_many_slow_functions_do_not_hold_up_others(server: Running) -> None:
    """More callers than any pool has threads wait for a slow model; others are served."""
    module = gate()
    module.gate.clear()
    waiting = [server.connect() for _ in range(250)]
    try:
        for client in waiting:
            client.sendall(request("POST", "/gate/wait"))
        for _ in waiting:
            assert module.arrived.acquire(timeout=PATIENT_SECONDS)
        for _ in range(20):
            assert answers(server.ask(request("GET", ECHO)))[0][0] == 200
    finally:
        module.gate.set()
    for client in waiting:
        with client:
            assert one_answer(client)[0] == 200


def test_a_function_that_takes_too_long(server: Running, capsys: Any) -> None:
    """The client gets the answer while the function still runs, and one answer only."""
    module = gate()
    module.gate.clear()
    try:
        whole = server.ask(request("POST", "/hasty/wait") + request("GET", ECHO))
        assert [(answer[0], answer[1]["connection"]) for answer in answers(whole)] == [
            (500, "close")
        ]
        assert module.arrived.acquire(timeout=PATIENT_SECONDS)
    finally:
        module.gate.set()
    printed: list[str] = []

    def is_said(text: str) -> bool:
        printed.extend(capsys.readouterr())
        return text in "".join(printed)

    eventually(lambda: is_said("Hasty: timed out after 1 s"))
    eventually(lambda: is_said("POST /hasty/wait 500"))


def test_calls_of_models_outlast_the_integration(
    server: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model may think longer than API Gateway waits."""
    monkeypatch.setattr(local.http.application, "INTEGRATION_TIMEOUT_SECONDS", SMALL_TIMEOUT)
    module = gate()
    module.gate.clear()
    try:
        with server.connect() as client:
            client.sendall(request("POST", "/models/wait"))
            assert module.arrived.acquire(timeout=PATIENT_SECONDS)
            assert answers(server.ask(request("POST", "/gate/wait")))[0][0] == 503
            module.gate.set()
            assert one_answer(client)[0] == 200
    finally:
        module.gate.set()
    assert module.arrived.acquire(timeout=PATIENT_SECONDS)


def test_connections_have_a_limit() -> None:
    with running(maximum_connections=3) as server:
        idle = [server.connect() for _ in range(3)]
        for client in idle:
            client.sendall(request("GET", ECHO))
            assert one_answer(client)[0] == 200
        # An idle one makes room.
        assert answers(server.ask(request("GET", ECHO)))[0][0] == 200
        (ended,), _, _ = select.select(idle, [], [], PATIENT_SECONDS)
        assert received(ended) == b""
        idle.remove(ended)
        module = gate()
        module.gate.clear()
        for client in idle:
            client.sendall(request("GET", "/gate/wait"))
            assert module.arrived.acquire(timeout=PATIENT_SECONDS)
        idle.append(server.connect())
        idle[-1].sendall(request("GET", "/gate/wait"))
        assert module.arrived.acquire(timeout=PATIENT_SECONDS)
        with server.connect() as late:
            # All are busy: the next one waits for its turn, and is served then.
            late.sendall(request("GET", ECHO))
            late.settimeout(0.5)
            with pytest.raises(TimeoutError):
                late.recv(1)
            module.gate.set()
            late.settimeout(PATIENT_SECONDS)
            assert one_answer(late)[0] == 200
        for client in (*idle, ended):
            client.close()


def test_the_end() -> None:
    """Idle connections end at once; a request that runs is answered first."""
    module = gate()
    module.gate.clear()
    with running() as server:
        with server.connect() as idle, server.connect() as busy:
            idle.sendall(request("GET", ECHO))
            assert one_answer(idle)[0] == 200
            busy.sendall(request("GET", "/gate/wait") + request("GET", ECHO))
            assert module.arrived.acquire(timeout=PATIENT_SECONDS)
            server.server.stop()
            assert received(idle) == b""
            eventually(lambda: all(connection._ending for connection in server.server._connections))
            assert server.thread.is_alive()
            module.gate.set()
            got = answers(received(busy))
            assert got[0][0] == 200
            assert got[0][1]["connection"] == "close"
        server.thread.join(PATIENT_SECONDS)
        assert not server.thread.is_alive()
        with pytest.raises(ConnectionRefusedError):
            server.connect()


def test_threads_are_used_again(server: Running) -> None:
    """A client without a kept connection costs no thread each."""

    def names() -> int:
        return sum(thread.name == "request" for thread in threading.enumerate())

    for _ in range(50):
        server.ask(request("GET", ECHO))
    eventually(lambda: not server.server._connections)
    before = names()
    for _ in range(50):
        server.ask(request("GET", ECHO))
        eventually(lambda: not server.server._connections)
    assert names() <= before + 1
