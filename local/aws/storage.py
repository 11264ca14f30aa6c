"""Serves the signed URLs of the artifact folder, which stands in for an S3 bucket."""

from __future__ import annotations

import os
from collections.abc import Iterator
from email.utils import formatdate
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from local.http.connection import Disconnected
from local.http.lambda_event import FileContent, HttpResponse
from mlcore.artifacts.folder_urls import PREFIX
from mlcore.artifacts.local_folder_store import Folder, Incoming
from mlcore.errors import MlflowError

CHUNK_BYTES: Final = 1 << 20

Headers = list[tuple[bytes, bytes]]


class Storage:
    """Stands in for S3: answers downloads from and uploads to the artifact folder by signed
    URLs."""

    def __init__(self, folder: Path) -> None:
        self._folder = Folder(folder)

    def drop_abandoned(self) -> int:
        """Removes multipart uploads (completed ones, too) and unfinished artifact files that were
        not changed for seven days; returns how many."""
        return self._folder.drop_abandoned()

    def owns(self, url: str) -> bool:
        """Whether a URL or path leads into the artifact folder, which this object serves in place
        of S3."""
        return urlsplit(url).path.startswith(PREFIX)

    def respond(
        self, method: str, url: str, headers: Headers, body: Iterator[bytes]
    ) -> HttpResponse:
        """Returns the response to a GET, HEAD or PUT of the signed URL of an artifact file; an
        error response if the URL is not valid.
        """
        if method == "PUT":
            return self.take(url, body)
        if method not in {"GET", "HEAD"}:
            return _text(405, "Method Not Allowed")
        parts = urlsplit(url)
        signed = self._folder.signer.check(method, parts.path, parts.query)
        if signed is None:
            return _refusal()
        path = self._folder.find(signed[0])
        return _file(path, signed[1], dict(headers)) if path else _text(404, "Not Found")

    def take(self, url: str, body: Iterator[bytes]) -> HttpResponse:
        """Executes an upload: writes ``body`` to the object that the signed URL names, and returns
        the response."""
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
            _copy(body, incoming)
            etag = incoming.commit()
        except Disconnected:
            return _text(400, "The connection ended before the file did.")
        except MlflowError as error:
            return _text(error.status, error.message)
        finally:
            incoming.discard()
        return HttpResponse(200, [(b"etag", etag.encode())], b"")

    def _incoming(self, key: str, arguments: dict[str, str]) -> Incoming:
        if "upload" in arguments:
            return self._folder.open_part_for_writing(
                key, arguments["upload"], int(arguments["part"])
            )
        return self._folder.open_for_writing(key)


def _copy(body: Iterator[bytes], incoming: Incoming) -> None:
    """Writes a body to a file, in chunks of at least :data:`CHUNK_BYTES` except for the last."""
    waiting = bytearray()
    for part in body:
        waiting += part
        if len(waiting) >= CHUNK_BYTES:
            incoming.write(bytes(waiting))
            waiting.clear()
    incoming.write(bytes(waiting))


def _file(path: Path, arguments: dict[str, str], headers: dict[bytes, bytes]) -> HttpResponse:
    try:
        content = path.open("rb")
    except OSError:  # removed meanwhile
        return _text(404, "Not Found")
    about = os.fstat(content.fileno())
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
            content.close()
            return HttpResponse(416, [(b"content-range", b"bytes */%d" % about.st_size)], b"")
        if span != (0, -1):
            status, (first, after) = 206, span
            shown = b"bytes %d-%d/%d" % (first, after - 1, about.st_size)
            answer.append((b"content-range", shown))
    answer.append((b"content-length", b"%d" % (after - first)))
    return HttpResponse(status, answer, b"", file=FileContent(content, first, after - first))


def _range(header: str, size: int) -> tuple[int, int] | None:
    """Returns (first, end) of the requested bytes; (0, −1) for a header to be ignored, None for a
    range that cannot be satisfied."""
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
