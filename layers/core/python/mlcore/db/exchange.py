"""One HTTP/1.1 request and its answer over a connected socket; opens and keeps no connection.

:mod:`http.client` does the same for every kind of server, with a mail parser for the headers and a
system call more for the body: two thirds of what a request to DynamoDB takes in the processor.
"""

from __future__ import annotations

import http.client
import socket
from collections.abc import Mapping
from typing import Final, NamedTuple

_AT_ONCE: Final = 65_536
_MOST_HEAD_BYTES: Final = 65_536
_SMALL_BODY_BYTES: Final = 65_536
_END: Final = b"\r\n\r\n"


class Reply(NamedTuple):
    status: int
    headers: dict[bytes, bytes]
    """Names in lower case; of a header that is repeated, the last."""
    content: bytes
    will_close: bool
    """The connection serves no further request."""


def post(
    connection: socket.socket, headers: Mapping[str, str], body: bytes, path: str = "/"
) -> Reply:
    """Sends a POST and waits for the whole answer.

    Raises:
        ValueError: a header would end the line that it is in.
        http.client.HTTPException: what came is no HTTP, or ends too early.
        OSError: the connection broke (also where the other end closed it without a word), or, as
            TimeoutError, the socket's timeout passed without a byte.
    """
    lines = "\r\n".join([f"{name}: {value}" for name, value in headers.items()])
    if lines.count("\r") != len(headers) - 1 or lines.count("\n") != len(headers) - 1:
        raise ValueError("Invalid header value")
    head = (
        f"POST {path} HTTP/1.1\r\n{lines}\r\n"
        f"Accept-Encoding: identity\r\nContent-Length: {len(body)}\r\n\r\n"
    ).encode("latin-1")
    if len(body) <= _SMALL_BODY_BYTES:
        connection.sendall(head + body)
    else:
        connection.sendall(head)
        connection.sendall(body)
    return _Reader(connection).reply()


class _Reader:
    """Reads one answer; what a server sends beyond it belongs to nobody."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._known = b""

    def reply(self) -> Reply:
        while True:
            status, version, headers = self._head()
            if status >= 200:  # others announce an answer
                break
        said = headers.get(b"connection", b"").lower()
        will_close = said == b"close" or (version != b"HTTP/1.1" and said != b"keep-alive")
        if status in (204, 304):
            return Reply(status, headers, b"", will_close)
        if headers.get(b"transfer-encoding", b"").lower() == b"chunked":
            content = self._chunks()
        elif b"content-length" in headers:
            content = self._exactly(_number(headers[b"content-length"], 10))
        else:
            content, will_close = self._rest(), True
        return Reply(status, headers, content, will_close or bool(self._known))

    def _head(self) -> tuple[int, bytes, dict[bytes, bytes]]:
        text = self._until(_END)
        first, *lines = text.split(b"\r\n")
        version, _, rest = first.partition(b" ")
        if not version.startswith(b"HTTP/1."):
            raise http.client.BadStatusLine(first.decode("latin-1"))
        headers = {}
        for line in lines:
            name, _, value = line.partition(b":")
            headers[name.lower()] = value.strip()
        return _number(rest[:3], 10), version, headers

    def _until(self, end: bytes) -> bytes:
        """What comes before ``end``."""
        at = self._known.find(end)
        while at < 0:
            if len(self._known) > _MOST_HEAD_BYTES:
                raise http.client.LineTooLong("header line")
            self._known += self._more(started=bool(self._known))
            at = self._known.find(end)
        text, self._known = self._known[:at], self._known[at + len(end) :]
        return text

    def _exactly(self, size: int) -> bytes:
        missing = size - len(self._known)
        if missing <= 0:
            whole, self._known = self._known[:size], self._known[size:]
            return whole
        content = bytearray(size)
        content[: len(self._known)] = self._known
        with memoryview(content) as view:
            while missing:
                count = self._connection.recv_into(view[size - missing :])
                if not count:
                    raise http.client.IncompleteRead(bytes(view[: size - missing]), missing)
                missing -= count
        self._known = b""
        return bytes(content)

    def _chunks(self) -> bytes:
        found = []
        while True:
            size = _number(self._until(b"\r\n").partition(b";")[0].strip(), 16)
            if not size:
                break
            found.append(self._exactly(size))
            self._exactly(2)
        while self._until(b"\r\n"):  # trailers
            pass
        return b"".join(found)

    def _rest(self) -> bytes:
        found = [self._known]
        self._known = b""
        while part := self._connection.recv(_AT_ONCE):
            found.append(part)
        return b"".join(found)

    def _more(self, *, started: bool) -> bytes:
        part = self._connection.recv(_AT_ONCE)
        if not part:
            if started:
                raise http.client.IncompleteRead(self._known)
            raise http.client.RemoteDisconnected("the other end closed the connection")
        return part


def _number(text: bytes, base: int) -> int:
    try:
        number = int(text, base)
    except ValueError:
        number = -1
    if number < 0:
        raise http.client.BadStatusLine(text.decode("latin-1"))
    return number
