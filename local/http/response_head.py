"""Writes the status line and the headers of an HTTP response."""

from __future__ import annotations

import time
from email.utils import formatdate
from http import HTTPStatus
from typing import Final

from local.http.lambda_event import HttpResponse
from local.http.request_parser import RequestHead

WITHOUT_BODY: Final = frozenset({204, 304})
"""Statuses of answers that have no body (RFC 9112, section 6.3)."""

_STATUS_LINES: Final = {
    status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode() for status in HTTPStatus
}


def response_head(
    response: HttpResponse, request: RequestHead, *, keep_alive: bool
) -> bytes | None:
    """Returns the status line and headers of a response as bytes. Returns None if a header contains
    a line break, because a client would read the rest of that header as another header or answer.
    """
    status = response.status
    lines = [_STATUS_LINES.get(status) or b"HTTP/1.1 %d \r\n" % status, _date_line()]
    lines += [b"%b: %b\r\n" % header for header in response.headers]
    if response.parts is not None:
        if request.version == "1.1" and status not in WITHOUT_BODY:
            lines.append(b"transfer-encoding: chunked\r\n")
    elif request.method == "HEAD" and not response.body:
        # Functions answer HEAD without the body.
        if response.named_length is not None:
            lines.append(b"content-length: %d\r\n" % response.named_length)
    elif response.file is None and status not in WITHOUT_BODY:
        lines.append(b"content-length: %d\r\n" % len(response.body))
    if not keep_alive:
        lines.append(b"connection: close\r\n")
    elif request.version == "1.0":
        lines.append(b"connection: keep-alive\r\n")
    lines.append(b"\r\n")
    text = b"".join(lines)
    # Each line has exactly one line break.
    is_safe = text.count(b"\n") == len(lines) == text.count(b"\r")
    return text if is_safe else None


def last_answer(response: HttpResponse) -> bytes:
    """Returns the bytes of a whole HTTP response, with a header that makes the client close the
    connection."""
    lines = [_STATUS_LINES[response.status], _date_line()]
    lines += [b"%b: %b\r\n" % header for header in response.headers]
    lines += [b"content-length: %d\r\nconnection: close\r\n\r\n" % len(response.body)]
    return b"".join([*lines, response.body])


_date: tuple[int, bytes] = (0, b"")


def _date_line() -> bytes:
    global _date  # noqa: PLW0603 - made once a second
    now = int(time.time())
    second, line = _date
    if second != now:
        line = f"date: {formatdate(now, usegmt=True)}\r\n".encode()
        _date = now, line
    return line
