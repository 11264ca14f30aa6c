from __future__ import annotations

import http.client
import socket
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mlcore.db import http_exchange
from tests.examples import number_of

HEADERS = {"Host": "localhost", "X-Amz-Target": "DynamoDB_20120810.GetItem"}
BODY = b'{"Key":{}}'

contents = st.binary(max_size=300)
pieces = st.lists(st.integers(1, 400), max_size=8)
extra = st.sampled_from(["", "x-amz-crc32: 77\r\n", "Connection: close\r\n", "Server:x\r\n"])


def _lengthy(content: bytes) -> bytes:
    return b"Content-Length: %d\r\n\r\n" % len(content) + content


def _chunked(content: bytes, size: int) -> bytes:
    parts = [content[at : at + size] for at in range(0, len(content), size)]
    text = b"".join(b"%x;a=b\r\n%s\r\n" % (len(part), part) for part in parts)
    return b"Transfer-Encoding: chunked\r\n\r\n" + text + b"0\r\nx-trailer: 1\r\n\r\n"


bodies = st.one_of(
    contents.map(_lengthy),
    st.builds(_chunked, contents, st.integers(1, 100)),
    contents.map(lambda content: b"\r\n" + content),
)


def answered(answer: bytes, cuts: Sequence[int]) -> tuple[http_exchange.HttpReply, bytes]:
    """What is read of an answer that comes in pieces, and what was sent for it."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.settimeout(5)
        at = 0
        for size in cuts:
            theirs.sendall(answer[at : at + size])
            at += size
        theirs.sendall(answer[at:])
        theirs.shutdown(socket.SHUT_WR)
        reply = http_exchange.post(ours, HEADERS, BODY)
        return reply, theirs.recv(65536)


def read_by_python(answer: bytes) -> http.client.HTTPResponse:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(answer)
        theirs.shutdown(socket.SHUT_WR)
        response = http.client.HTTPResponse(ours, method="POST")
        response.begin()
        response.content = response.read()  # type: ignore[attr-defined]
        return response


@given(st.sampled_from([200, 400, 500]), extra, bodies, pieces, st.booleans())
@settings(max_examples=number_of(150), deadline=None, database=None)
def test_answers_are_read_as_python_reads_them(
    status: int, more: str, body: bytes, cuts: list[int], announced: bool
) -> None:
    answer = f"HTTP/1.1 {status} Some Reason\r\n{more}".encode() + body
    if announced:
        answer = b"HTTP/1.1 100 Continue\r\n\r\n" + answer
    reply, sent = answered(answer, cuts)
    expected = read_by_python(answer)
    assert reply.status == expected.status
    assert reply.content == expected.content  # type: ignore[attr-defined]
    assert reply.will_close == expected.will_close
    assert reply.headers.get(b"x-amz-crc32", b"").decode() == expected.headers.get(
        "x-amz-crc32", ""
    )
    head, _, sent_body = sent.partition(b"\r\n\r\n")
    lines = head.decode().split("\r\n")
    assert lines[0] == "POST / HTTP/1.1"
    assert lines[1:] == [
        *(f"{name}: {value}" for name, value in HEADERS.items()),
        "Accept-Encoding: identity",
        f"Content-Length: {len(BODY)}",
    ]
    assert sent_body == BODY


@given(bodies, st.data())
@settings(max_examples=number_of(100), deadline=None, database=None)
def test_an_answer_that_ends_too_early_is_none(body: bytes, data: st.DataObject) -> None:
    answer = b"HTTP/1.1 200 OK\r\n" + body
    head = answer.index(b"\r\n\r\n") + 4
    whole = b"Content-Length" in answer[:head] or b"chunked" in answer[:head]
    end = data.draw(st.integers(0, len(answer) - 1 if whole else head - 1))
    with pytest.raises((http.client.HTTPException, OSError)):
        answered(answer[:end], ())


@pytest.mark.parametrize(
    "answer",
    [
        b"SSH-2.0-OpenSSH\r\n\r\n",
        b"HTTP/1.1 two\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -3\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 20_000,
    ],
)
def test_what_is_no_http(answer: bytes) -> None:
    with pytest.raises(http.client.HTTPException):
        answered(answer, ())


def test_a_connection_with_bytes_that_nobody_asked_for_is_not_used_again() -> None:
    reply, _ = answered(
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}HTTP/1.1 400 No\r\n\r\n", ()
    )
    assert reply.content == b"{}"
    assert reply.will_close


def test_large_bodies_arrive_whole() -> None:
    body = b"x" * 100_000
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        for end in (ours, theirs):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 400_000)
        http_exchange.post(ours, HEADERS, body)
        sent = b""
        while len(sent) < 100_000 or not sent.endswith(body):
            sent += theirs.recv(65536)
    assert sent.count(b"x" * 100_000) == 1


@pytest.mark.parametrize("value", ["a\r\nX-Other: b", "a\n", "a\rb"])
def test_a_header_stays_in_its_line(value: str) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs, pytest.raises(ValueError, match="Invalid header value"):
        http_exchange.post(ours, {**HEADERS, "X-Amz-Security-Token": value}, BODY)
