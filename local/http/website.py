"""The files of MLflow's web UI, straight from a folder; knows nothing of the API.

On AWS a bucket behind CloudFront has this part: the page at ``/``, everything else below
``/static-files/``, and the same below ``/build/``, where MLflow's server has it too; and the pages
of the dashboards at ``/dashboards`` and ``/dashboards/readers``.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

FOLDER: Final = Path(__file__).resolve().parents[2] / ".tools/ui"
"""Where ``make local`` and ``make setup`` put the files of the mlflow package."""

DASHBOARDS: Final = Path(__file__).resolve().parents[2] / "dashboards"
"""The files of the dashboards, which are the product's own."""

CHARTS: Final = Path(__file__).resolve().parents[2] / ".tools/charts"
"""Where the same commands put the library that draws their charts, and its licence."""

CHART_LIBRARY: Final = "static-files/dashboards/echarts.js"
"""Where a browser finds that library."""

CHUNK_BYTES: Final = 256 * 1024
HASHED: Final = re.compile(r"\.[0-9a-f]{8,20}\.")
FOR_A_YEAR: Final = "public, max-age=31536000, immutable"
ASK_EACH_TIME: Final = "no-cache"

MISSING: Final = (
    b"The files of MLflow's web UI are not installed.\n\n"
    b"The API works without them. `make setup` or `make local` installs them.\n"
)
_TYPES: Final = {
    ".cjs": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".eot": "application/vnd.ms-fontobject",
    ".html": "text/html; charset=utf-8",
    ".ico": "image/x-icon",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".map": "application/json",
    ".mjs": "text/javascript; charset=utf-8",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".ttf": "font/ttf",
    ".txt": "text/plain; charset=utf-8",
    ".wasm": "application/wasm",
    ".woff": "font/woff",
    ".woff2": "font/woff2",
}
_SNIFFING: Final = (b"x-content-type-options", b"nosniff")
_FRAMING: Final = (b"x-frame-options", b"SAMEORIGIN")
_FILES: Final = "/static-files/"
_BUILD: Final = "/build/"
_DASHBOARDS: Final = {
    "index.html": ("dashboards", "dashboards/"),
    "readers.html": ("dashboards/readers",),
}
DASHBOARD_PAGES: Final = tuple(path for paths in _DASHBOARDS.values() for path in paths)
PAGES: Final = ("/", *(f"/{path}" for path in DASHBOARD_PAGES))
"""What a browser shows in a window: with these it asks for a login, where there is one."""
FRAMED: Final = f"{_FILES}lib/notebook-trace-renderer/"
"""Pages that notebooks show in a frame."""

Headers = list[tuple[bytes, bytes]]
Send = Callable[[dict[str, Any]], Awaitable[None]]


class File(NamedTuple):
    """One file as it is served, here or from a bucket."""

    path: Path
    size: int
    content_type: str
    cache_control: str


def files(folder: Path) -> Iterator[tuple[str, File]]:
    """(URL path without the leading slash, file) of everything in a folder of UI files; the page
    itself has the path ``""``."""
    for relative, file in _found(folder):
        yield f"static-files/{relative}", file
        if relative == "index.html":
            yield "", file
        elif relative == "favicon.ico":
            yield relative, file


def dashboards() -> Iterator[tuple[str, File]]:
    """As :func:`files`, of the dashboards and their chart library; a page may have two paths."""
    for folder in (DASHBOARDS, CHARTS):
        for relative, file in _found(folder):
            paths = _DASHBOARDS.get(relative, (f"static-files/dashboards/{relative}",))
            yield from ((path, file) for path in paths)


def _found(folder: Path) -> Iterator[tuple[str, File]]:
    for parent, _, names in os.walk(folder):
        for name in names:
            path = Path(parent, name)
            cached = FOR_A_YEAR if HASHED.search(name) else ASK_EACH_TIME
            kind = _TYPES.get(path.suffix, "application/octet-stream")
            file = File(path, path.stat().st_size, kind, cached)
            yield path.relative_to(folder).as_posix(), file


class Website:
    """Answers GET and HEAD for the UI's paths. The folder is read once, so no path leads out of
    it."""

    def __init__(self, folder: Path = FOLDER) -> None:
        found = (*files(folder), *dashboards())
        self._files = {f"/{path}": file for path, file in found}

    def owns(self, method: str, path: str) -> bool:
        """Whether a request is the UI's; any other goes to the API."""
        return method in {"GET", "HEAD"} and (
            path in {*PAGES, "/favicon.ico"} or path.startswith((_FILES, _BUILD))
        )

    async def respond(
        self, method: str, path: str, headers: list[tuple[bytes, bytes]], send: Send
    ) -> int:
        """Sends the file of a path, and answers the status."""
        if path.startswith(_BUILD):
            path = _FILES + path.removeprefix(_BUILD)
        always = [_SNIFFING] if path.startswith(FRAMED) else [_SNIFFING, _FRAMING]
        file = self._files.get(path)
        if file is None:
            text = MISSING if path == "/" else b"Not Found\n"
            always.append((b"content-type", b"text/plain; charset=utf-8"))
            return await _send(send, 404, always, b"" if method == "HEAD" else text)
        tag = f'"{file.path.stat().st_mtime_ns:x}-{file.size:x}"'.encode()
        about = [*always, (b"cache-control", file.cache_control.encode()), (b"etag", tag)]
        if tag in dict(headers).get(b"if-none-match", b""):
            return await _send(send, 304, about)
        about += [
            (b"content-type", file.content_type.encode()),
            (b"content-length", b"%d" % file.size),
        ]
        if method == "HEAD":
            return await _send(send, 200, about)
        await send({"type": "http.response.start", "status": 200, "headers": about})
        loop = asyncio.get_running_loop()
        with file.path.open("rb") as content:
            left = file.size
            more = True
            while more:
                chunk = await loop.run_in_executor(None, content.read, min(CHUNK_BYTES, left))
                left -= len(chunk)
                more = left > 0 and bool(chunk)
                await send({"type": "http.response.body", "body": chunk, "more_body": more})
        return 200


async def _send(send: Send, status: int, headers: Headers, body: bytes = b"") -> int:
    if body:
        headers = [*headers, (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
    return status
