"""Parses the bytes of a connection into HTTP requests, by llhttp (the parser of Node.js).

llhttp refuses malformed requests, two different Content-Lengths, and a Content-Length together with
Transfer-Encoding. This module also refuses requests without a Host (HTTP/1.1) or with several, and
with a Transfer-Encoding other than ``chunked`` or in HTTP/1.0 (RFC 9112). It does not check the
value of Host.
"""

from __future__ import annotations

from collections import deque
from typing import Any, Final, NamedTuple

from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser, parse_url

MAXIMUM_HEAD_BYTES: Final = 65_536
"""How many bytes may arrive before a head or a part of a body is complete."""

_CHUNKED: Final = b"chunked"
_BLANKS: Final = b" \t"


class RequestHead(NamedTuple):
    """The request line and the headers of a request. Header names are lower-case."""

    method: str
    path: str
    """The path as the client sent it, percent-encoded."""
    query: str
    headers: list[tuple[bytes, bytes]]
    version: str
    """The version of HTTP: ``1.1`` or ``1.0``."""
    keep_alive: bool
    """Whether the connection can be used again after the answer."""
    length: int
    """The value of Content-Length; 0 without this header."""
    expects_continue: bool
    """Whether the client waits for ``100 Continue`` before it sends the body."""


class MalformedRequest(NamedTuple):
    """The event of the parser for bytes that are not a valid request. ``status`` is the HTTP status
    of the answer. Later bytes of the connection cannot be parsed.
    """

    status: int


Event = RequestHead | bytes | MalformedRequest | None
"""A head, a part of the body, None at the end of the body, or an error that ends the connection."""


class RequestParser:
    """Turns the bytes of one HTTP connection into events: a request's head, parts of its body, and
    None at the body's end. If a client sends a request without waiting for the answer to the one
    before (pipelining), ``events`` holds the events of both requests in order.
    """

    __slots__ = (
        "_body",
        "_headers",
        "_in_body",
        "_is_head_known",
        "_parser",
        "_silent_bytes",
        "_target",
        "events",
    )

    def __init__(self) -> None:
        self.events: deque[Event] = deque()
        self._silent_bytes = 0
        self._target = b""
        self._headers: list[tuple[bytes, bytes]] = []
        self._in_body = False
        self._is_head_known = False
        self._body: list[bytes] = []
        self._parser: Any = HttpRequestParser(self)

    def feed(self, data: bytes) -> None:
        """Parses the next bytes of the connection and appends what they contain to ``events``."""
        before, size = len(self.events), len(data)
        try:
            while data:
                data = self._parse(data)
        except HttpParserError:
            self._end_part()
            self.events.append(MalformedRequest(400))
        self._end_part()
        if len(self.events) > before:
            self._silent_bytes = 0
            return
        # Headers, trailers, or chunk sizes without an end.
        self._silent_bytes += size
        if self._silent_bytes > MAXIMUM_HEAD_BYTES:
            self.events.append(MalformedRequest(431))

    def _parse(self, data: bytes) -> bytes:
        """Gives bytes to llhttp and returns those that it did not consume. An offer to switch
        protocols (Upgrade), which Java's HTTP client sends with each request, is ignored, as RFC
        9110 allows. llhttp stops after the headers of such a request and would parse its body as
        the next request, so a new parser continues.
        """
        try:
            self._parser.feed_data(data)
        except HttpParserUpgrade as offer:
            head = self.events[-2] if len(self.events) > 1 else None
            self._parser = HttpRequestParser(self)
            if isinstance(head, RequestHead):
                self._read_body_of(head)
            return data[offer.args[0] :]
        return b""

    def _read_body_of(self, head: RequestHead) -> None:
        """Makes a new parser expect the body of a request whose headers another parser has read."""
        is_chunked = any(name == b"transfer-encoding" for name, _ in head.headers)
        if not head.length and not is_chunked:
            return
        self.events.pop()  # the end of the request, which is yet to come
        frame = b"transfer-encoding: chunked" if is_chunked else b"content-length: %d" % head.length
        self._is_head_known = True
        self._parser.feed_data(b"POST / HTTP/1.1\r\n%b\r\n\r\n" % frame)

    def close(self) -> None:
        """Drops the llhttp parser. Parser and this object refer to each other; without this call
        only the garbage collector would free them.
        """
        self._parser = None

    # -- called by httptools --

    def on_message_begin(self) -> None:
        """Called by llhttp at the beginning of a request: clears the state of the request
        before."""
        self._target, self._headers, self._in_body = b"", [], False

    def on_url(self, url: bytes) -> None:
        """Called by llhttp with a part of the request target (the URL in the request line), which
        is appended to the parts before."""
        self._target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """Called by llhttp with a header, which is kept. Headers after the body (trailers) are
        dropped.
        """
        if not self._in_body:
            self._headers.append((name.lower(), value.rstrip(_BLANKS)))

    def on_headers_complete(self) -> None:
        """Called by llhttp after the last header: checks the request and appends its head to
        ``events``.
        """
        self._in_body = True
        if self._is_head_known:
            self._is_head_known = False
            return
        parser = self._parser
        fields = dict(self._headers)
        version: str = parser.get_http_version()
        target = self._target if self._target.startswith(b"/") else _origin_form(self._target)
        if target is None or _is_ambiguous(fields, self._headers, version):
            self.events.append(MalformedRequest(400))
            return
        path, _, query = target.partition(b"#")[0].decode("latin-1").partition("?")
        length = fields.get(b"content-length", b"")
        self.events.append(
            RequestHead(
                parser.get_method().decode("latin-1"),
                path,
                query,
                self._headers,
                version,
                parser.should_keep_alive(),
                int(length) if length else 0,
                version == "1.1" and fields.get(b"expect", b"").lower() == b"100-continue",
            )
        )

    def on_body(self, part: bytes) -> None:
        """Called by llhttp with a part of the body, which becomes an event. Chunks that arrived
        together are joined to one part.
        """
        self._body.append(part)

    def on_message_complete(self) -> None:
        """Called by llhttp at the end of a request: appends to ``events`` the last part of the
        body, and then None, which marks the end."""
        self._end_part()
        self.events.append(None)

    def _end_part(self) -> None:
        if self._body:
            self.events.append(b"".join(self._body))
            self._body.clear()


def _origin_form(target: bytes) -> bytes | None:
    """Returns the path and query of a request target. If the target is an absolute URL, which
    clients send to proxies, its host is dropped; ``*`` is returned unchanged. Returns None for any
    other target.
    """
    if target == b"*":
        return target
    if not target.lower().startswith((b"http://", b"https://")):
        return None
    try:
        url = parse_url(target)
    except HttpParserError:
        return None
    path: bytes = url.path or b"/"
    return path + b"?" + url.query if url.query else path


def _is_ambiguous(
    fields: dict[bytes, bytes], headers: list[tuple[bytes, bytes]], version: str
) -> bool:
    """Returns whether two servers could interpret the request differently: they disagree about its
    host (RFC 9112, section 3.2) or about the end of its body (section 6.1).
    """
    if version not in {"1.1", "1.0"}:
        return True
    names = [name for name, _ in headers]
    hosts = names.count(b"host")
    if hosts > 1 or (hosts == 0 and version == "1.1"):
        return True
    if b"transfer-encoding" not in fields:
        return names.count(b"content-length") > 1
    return (
        version == "1.0"
        or b"content-length" in fields
        or names.count(b"transfer-encoding") > 1
        or fields[b"transfer-encoding"].lower() != _CHUNKED
    )
