"""Bytes become requests, or are refused, as another parser reads them."""

from __future__ import annotations

import contextlib
from typing import Any

import h11
import pytest
from hypothesis import given
from hypothesis import strategies as st

from local.http.request_parser import (
    MAXIMUM_HEAD_BYTES,
    MalformedRequest,
    RequestHead,
    RequestParser,
)

TOKEN = st.text("abcXYZ019-_", min_size=1, max_size=12)
VALUE = st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=20)
OWN = ("host", "content-length", "transfer-encoding", "connection", "upgrade", "expect")


def parsed(*parts: bytes) -> list[Any]:
    """The events of these bytes: heads, whole bodies, and what is malformed."""
    parser = RequestParser()
    for part in parts:
        parser.feed(part)
    results: list[Any] = []
    body: list[bytes] = []
    for event in parser.events:
        if isinstance(event, bytes):
            body.append(event)
            continue
        if event is None:
            results.append(b"".join(body))
            body = []
            continue
        results.append(event)
        if isinstance(event, MalformedRequest):
            break
    return results


def read_by_h11(data: bytes) -> list[tuple[bytes, bytes, list[tuple[bytes, bytes]], bytes]]:
    """The whole requests that h11 reads before it finds an error or the end."""
    connection = h11.Connection(h11.SERVER)
    connection.receive_data(data)
    results = []
    with contextlib.suppress(h11.RemoteProtocolError, h11.LocalProtocolError):
        while True:
            event = connection.next_event()
            if not isinstance(event, h11.Request):
                return results
            body = b""
            while isinstance(part := connection.next_event(), h11.Data):
                body += part.data
            if not isinstance(part, h11.EndOfMessage):
                return results
            results.append((event.method, event.target, list(event.headers), body))
            connection.send(h11.Response(status_code=200, headers=[("content-length", "0")]))
            connection.send(h11.EndOfMessage())
            if connection.our_state is not h11.DONE or connection.their_state is not h11.DONE:
                return results
            connection.start_next_cycle()
    return results


@st.composite
def requests(draw: st.DrawFn) -> bytes:
    """One request that keeps the rules."""
    method = draw(st.sampled_from(["GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH"]))
    target = "/" + draw(st.text("abc/%2=&?.~", max_size=20))
    named = draw(st.lists(st.tuples(TOKEN.filter(lambda name: name.lower() not in OWN), VALUE)))
    lines = [f"{method} {target} HTTP/1.1", "Host: localhost"]
    lines += [f"{name}: {value}" for name, value in named]
    body = draw(st.binary(max_size=60))
    if draw(st.booleans()):
        sizes = draw(st.lists(st.integers(1, 20), max_size=5))
        lines.append("Transfer-Encoding: chunked")
        content, at = b"", 0
        for size in sizes:
            chunk = body[at : at + size]
            at += size
            if chunk:
                content += b"%x\r\n%b\r\n" % (len(chunk), chunk)
        body = content + b"0\r\n\r\n"
    elif body:
        lines.append(f"Content-Length: {len(body)}")
    if draw(st.integers(0, 5)) == 0:
        lines += ["Connection: Upgrade", "Upgrade: h2c"]
    return "\r\n".join([*lines, "", ""]).encode() + body


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """Requests one after the other, with some bytes changed, left out or put in."""
    data = bytearray(b"".join(draw(st.lists(requests(), min_size=1, max_size=3))))
    pieces = st.sampled_from(
        [b"\r", b"\n", b"\r\n", b" ", b"\t", b":", b"\0", b"\x0b", b"\x80", b"0", b"-1", b"+3",
         b"Content-Length: 3\r\n", b"Content-Length: 3, 3\r\n", b"Transfer-Encoding: chunked\r\n",
         b"Transfer-Encoding: gzip, chunked\r\n", b"Transfer-Encoding: xchunked\r\n",
         b"Transfer-Encoding:\x0bchunked\r\n", b"Content-Length : 3\r\n", b"Host: other\r\n",
         b" folded\r\n", b"0\r\n\r\n", b";ext", b"HTTP/1.0", b"HTTP/2.0", b"http://other/x"]
    )  # fmt: skip
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(data)))
        data[at : at + draw(st.integers(0, 2))] = draw(pieces)
    return bytes(data)


def plain(events: list[Any]) -> list[tuple[Any, ...]]:
    """Whole requests, in h11's terms."""
    results = []
    for head, body in zip(events[::2], events[1::2], strict=False):
        if isinstance(head, RequestHead) and isinstance(body, bytes):
            target = f"{head.path}?{head.query}" if head.query else head.path
            results.append((head.method.encode(), target.encode("latin-1"), head.headers, body))
    return results


def without_empty_query(request: tuple[Any, ...]) -> tuple[Any, ...]:
    method, target, headers, body = request
    path, _, query = target.partition(b"#")[0].partition(b"?")
    return method, path + b"?" + query if query else path, headers, body


@given(st.lists(requests(), min_size=1, max_size=4), st.data())
def test_requests_are_read_as_h11_reads_them_however_they_are_split(
    sent: list[bytes], data: st.DataObject
) -> None:
    content = b"".join(sent)
    expected = [without_empty_query(request) for request in read_by_h11(content)]
    assert len(expected) == len(sent)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(content)), max_size=6)))
    parts = [content[a:b] for a, b in zip([0, *cuts], [*cuts, len(content)], strict=True)]
    assert plain(parsed(*parts)) == expected


@given(damaged())
def test_no_request_is_read_that_h11_reads_otherwise(content: bytes) -> None:
    """Two servers that find different requests in the same bytes can be played off against each
    other (request smuggling). One may refuse what the other reads: llhttp skips line breaks before
    a request and takes two spaces in its first line, h11 takes an empty Host."""
    ours = plain(parsed(content))
    theirs = [without_empty_query(request) for request in read_by_h11(content)]
    if not any(request[1].startswith(b"http") for request in theirs):
        both = min(len(ours), len(theirs))
        assert ours[:both] == theirs[:both]


@given(st.binary(max_size=300), st.integers(1, 50))
def test_any_bytes_are_read_or_refused(content: bytes, step: int) -> None:
    parts = [content[at : at + step] for at in range(0, len(content), step)]
    assert plain(parsed(*parts)) == plain(parsed(content))


@pytest.mark.parametrize(
    "lines",
    [
        "GET / HTTP/1.1|Host: a|Content-Length: 3|Content-Length: 3",
        "GET / HTTP/1.1|Host: a|Content-Length: 3, 3",
        "GET / HTTP/1.1|Host: a|Content-Length: 3|Transfer-Encoding: chunked",
        "GET / HTTP/1.1|Host: a|Transfer-Encoding: chunked|Content-Length: 3",
        "GET / HTTP/1.1|Host: a|Transfer-Encoding: chunked|Transfer-Encoding: chunked",
        "GET / HTTP/1.1|Host: a|Transfer-Encoding: gzip, chunked",
        "GET / HTTP/1.1|Host: a|Transfer-Encoding: xchunked",
        "GET / HTTP/1.1|Host: a|Transfer-Encoding: chunked, identity",
        "GET / HTTP/1.0|Host: a|Transfer-Encoding: chunked",
        "GET / HTTP/1.1|Host: a|Content-Length : 3",
        "GET / HTTP/1.1|Host: a|Content-Length: +3",
        "GET / HTTP/1.1|Host: a|Content-Length: -3",
        "GET / HTTP/1.1|Host: a|Content-Length: 0x3",
        "GET / HTTP/1.1|Host: a|Content-Length: 99999999999999999999999",
        "GET / HTTP/1.1|Host: a|Host: b",
        "GET / HTTP/1.1|X: a",
        "GET / HTTP/1.1|Host: a| folded: b",
        "GET / HTTP/2.0|Host: a",
        "GET / HTTP/0.9|Host: a",
        "GET / HTTP/1.1x|Host: a",
        "GET /a b HTTP/1.1|Host: a",
        "GET a HTTP/1.1|Host: a",
        "G@T / HTTP/1.1|Host: a",
        "CONNECT a:1 HTTP/1.1|Host: a",
        "GET / HTTP/1.1|Host: a|X: \0",
        "GET / HTTP/1.1|Host: a|X Y: b",
        "GET /|",
    ],
)
def test_what_is_refused(lines: str) -> None:
    content = lines.replace("|", "\r\n").encode() + b"\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
    assert [type(event) for event in parsed(content)] in ([MalformedRequest], [])
    assert plain(parsed(content)) == []


def test_an_upgrade_is_ignored() -> None:
    first = (
        b"POST /a HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: h2c\r\nContent-Length: 3"
    )
    second = b"GET /b HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
    third = b"GET /c HTTP/1.1\r\nHost: a\r\n\r\n"
    events = parsed(first + b"\r\n\r\nabc" + second + third)
    assert [(request[1], request[3]) for request in plain(events)] == [
        (b"/a", b"abc"),
        (b"/b", b""),
        (b"/c", b""),
    ]


def test_absolute_targets() -> None:
    for target, path, query in (
        ("http://a:1/x?y=1", "/x", "y=1"),
        ("HTTPS://a", "/", ""),
        ("/x?y=1#z", "/x", "y=1"),
    ):
        (head, _) = parsed(f"GET {target} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
        assert (head.path, head.query) == (path, query)


@pytest.mark.parametrize(
    "start",
    [
        b"GET /",
        b"GET / HTTP/1.1\r\nHost: a\r\nX: ",
        b"GET / HTTP/1.1\r\nHost: a\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1;",
        b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: ",
        b"",
    ],
)
def test_what_has_no_end_is_refused(start: bytes) -> None:
    more = b"\r\n" if not start else b"a" if not start.endswith(b"\n") else b"a: b\r\n"
    parser = RequestParser()
    parser.feed(start)
    for _ in range(MAXIMUM_HEAD_BYTES // 1000 + 3):
        parser.feed(more * (1000 // len(more)))
    assert isinstance(parser.events[-1], MalformedRequest)
