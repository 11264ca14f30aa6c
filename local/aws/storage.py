"""Serves the signed URLs of the folder that stands in for the bucket, bit by bit; decides
nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from email.utils import formatdate
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from local.http.event import HttpResponse
from mlcore.artifacts.folder import Folder, Incoming
from mlcore.artifacts.signing import PREFIX
from mlcore.errors import MlflowError

CHUNK_BYTES: Final = 1 << 20

Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]


class Body:
    """A request's body as it comes in, or one that has come already."""

    def __init__(self, receive: Receive, whole: bytes | None = None) -> None:
        self._receive = receive
        self._whole = whole
        self.ended = False
        self.broken = False
        """The client went away before the end."""

    async def next(self) -> bytes:
        if self._whole is not None:
            self.ended = True
            return self._whole
        message = await self._receive()
        self.broken = message["type"] == "http.disconnect"
        self.ended = not message.get("more_body")
        data: bytes = message.get("body", b"")
        return data

    async def drain(self) -> None:
        """Reads and forgets what is left, so that the connection can be used again."""
        while not self.ended:
            await self.next()


class Storage:
    """The part that S3 has in AWS."""

    def __init__(self, folder: Path) -> None:
        self._folder = Folder(folder)

    def drop_abandoned(self) -> int:
        """Removes uploads that nobody finished."""
        return self._folder.drop_abandoned()

    def owns(self, url: str) -> bool:
        """Whether a path, or an absolute URL that a function answered, is served here."""
        return urlsplit(url).path.startswith(PREFIX)

    async def respond(
        self,
        method: str,
        url: str,
        headers: list[tuple[bytes, bytes]],
        receive: Receive,
        send: Send,
    ) -> int:
        """Answers a request; returns its status."""
        if method == "PUT":
            body = Body(receive)
            response = await self.take(url, body)
            await body.drain()
        elif method in {"GET", "HEAD"}:
            parts = urlsplit(url)
            signed = self._folder.signer.check(method, parts.path, parts.query)
            path = self._folder.find(signed[0]) if signed else None
            if signed and path:
                return await _send_file(path, signed[1], dict(headers), send, method == "HEAD")
            response = _text(404, "Not Found") if signed else _refusal()
        else:
            response = _text(405, "Method Not Allowed")
        await send_response(response, send)
        return response.status

    async def take(self, url: str, body: Body) -> HttpResponse:
        """Writes a body to where a signed URL says."""
        parts = urlsplit(url)
        signed = self._folder.signer.check("PUT", parts.path, parts.query)
        if signed is None:
            return _refusal()
        key, arguments = signed
        try:
            incoming = self._incoming(key, arguments)
        except MlflowError as error:
            return _text(error.status, error.message)
        try:
            await _copy(body, incoming)
            etag = "" if body.broken else await _run(incoming.commit)
        except MlflowError as error:
            return _text(error.status, error.message)
        finally:
            incoming.discard()
        if body.broken:
            return _text(400, "The connection ended before the file did.")
        return HttpResponse(200, [(b"etag", etag.encode())], b"")

    def _incoming(self, key: str, arguments: dict[str, str]) -> Incoming:
        if "upload" in arguments:
            return self._folder.receive_part(key, arguments["upload"], int(arguments["part"]))
        return self._folder.receive(key)


async def _run(function: Callable[..., Any], *arguments: Any) -> Any:
    """What waits for a disk runs beside the loop."""
    return await asyncio.get_running_loop().run_in_executor(None, function, *arguments)


async def send_response(response: HttpResponse, send: Send) -> None:
    """Sends a whole response."""
    headers = [*response.headers, (b"content-length", b"%d" % len(response.body))]
    await send({"type": "http.response.start", "status": response.status, "headers": headers})
    await send({"type": "http.response.body", "body": response.body})


async def _copy(body: Body, incoming: Incoming) -> None:
    """Writes what comes; at most one chunk waits in memory."""
    waiting = bytearray()
    while not body.ended:
        waiting += await body.next()
        if body.ended or len(waiting) >= CHUNK_BYTES:
            await _run(incoming.write, bytes(waiting))
            waiting.clear()


async def _send_file(
    path: Path, arguments: dict[str, str], headers: dict[bytes, bytes], send: Send, head: bool
) -> int:
    about = path.stat()
    answer = [
        (b"content-type", arguments.get("type", "application/octet-stream").encode()),
        (b"content-disposition", arguments.get("disposition", "attachment").encode()),
        (b"x-content-type-options", b"nosniff"),
        (b"accept-ranges", b"bytes"),
        (b"etag", b'"%x-%x"' % (about.st_mtime_ns, about.st_size)),
        (b"last-modified", formatdate(about.st_mtime, usegmt=True).encode()),
    ]
    status, first, after = 200, 0, about.st_size
    wanted = headers.get(b"range", b"").decode("latin-1")
    if wanted:
        span = _range(wanted, about.st_size)
        if span is None:
            unsatisfied = (b"content-range", b"bytes */%d" % about.st_size)
            await send_response(HttpResponse(416, [unsatisfied], b""), send)
            return 416
        if span != (0, -1):
            status, (first, after) = 206, span
            shown = b"bytes %d-%d/%d" % (first, after - 1, about.st_size)
            answer.append((b"content-range", shown))
    answer.append((b"content-length", b"%d" % (after - first)))
    await send({"type": "http.response.start", "status": status, "headers": answer})
    if not head:
        with path.open("rb") as file:
            file.seek(first)
            while first < after:
                data = await _run(file.read, min(CHUNK_BYTES, after - first))
                if not data:
                    break
                first += len(data)
                await send({"type": "http.response.body", "body": data, "more_body": True})
    await send({"type": "http.response.body", "body": b""})
    return status


def _range(header: str, size: int) -> tuple[int, int] | None:
    """(first, after the last) byte; (0, −1) for a header that is to be ignored, None for one that
    cannot be satisfied."""
    unit, _, spans = header.partition("=")
    low, dash, high = spans.strip().partition("-")
    if unit.strip() != "bytes" or not dash or not (low + high).isdigit():
        return 0, -1
    if not low:
        first, after = max(0, size - int(high)), size
    else:
        first, after = int(low), min(size, int(high) + 1) if high else size
    return (first, after) if first < after else None


def _refusal() -> HttpResponse:
    return _text(403, "The URL has expired, or its signature is not one of this server.")


def _text(status: int, text: str) -> HttpResponse:
    return HttpResponse(status, [(b"content-type", b"text/plain; charset=utf-8")], text.encode())
