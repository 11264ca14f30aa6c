"""Serves the files of MLflow's web UI from a folder.
On AWS a bucket behind CloudFront serves them: the page at ``/``, everything else below
``/static-files/`` and again below ``/build/``, where MLflow's server has it too, and our pages at
``/dashboards`` and the pages below it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from local.http.lambda_event import FileContent, HttpResponse

FOLDER: Final = Path(__file__).resolve().parents[2] / ".tools/ui"
"""The folder into which ``make local`` and ``make setup`` copy the files of the mlflow package."""

DASHBOARDS: Final = Path(__file__).resolve().parents[2] / "dashboards"
"""The folder of the files of the dashboards, which are part of this repository."""

CHARTS: Final = Path(__file__).resolve().parents[2] / ".tools/charts"
"""The folder into which ``make local`` and ``make setup`` copy the chart library of the dashboards,
and its licence."""

CHART_LIBRARY: Final = "static-files/dashboards/echarts.js"
"""The URL path of the chart library, without the leading slash."""

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
    "keys.html": ("dashboards/keys",),
    "limits.html": ("dashboards/limits",),
    "activity.html": ("dashboards/activity",),
    "trash.html": ("dashboards/trash",),
    "start.html": ("dashboards/start",),
}
DASHBOARD_PAGES: Final = tuple(path for paths in _DASHBOARDS.values() for path in paths)
PAGES: Final = ("/", *(f"/{path}" for path in DASHBOARD_PAGES))
"""Paths that a browser opens as a page. If a login is required and missing, they are answered with
the login challenge or a redirect to the sign-in page."""
FRAMED: Final = f"{_FILES}lib/notebook-trace-renderer/"
"""Pages below this path may be shown in a frame, as notebooks do."""

Headers = list[tuple[bytes, bytes]]


class File(NamedTuple):
    """A file of the UI with the headers with which it is served, by this server or from a
    bucket."""

    path: Path
    size: int
    content_type: str
    cache_control: str


def files(folder: Path) -> Iterator[tuple[str, File]]:
    """Yields (URL path without the leading slash, file) for each file of a UI folder. The page is
    yielded once more with the path ``""``, the icon with ``favicon.ico``."""
    for relative, file in _files_in(folder):
        yield f"static-files/{relative}", file
        if relative == "index.html":
            yield "", file
        elif relative == "favicon.ico":
            yield relative, file


def dashboards() -> Iterator[tuple[str, File]]:
    """Yields (URL path without the leading slash, file) for the files of the dashboards and their
    chart library. A page that has two URL paths is yielded twice.
    """
    for folder in (DASHBOARDS, CHARTS):
        for relative, file in _files_in(folder):
            paths = _DASHBOARDS.get(relative, (f"static-files/dashboards/{relative}",))
            yield from ((path, file) for path in paths)


def _files_in(folder: Path) -> Iterator[tuple[str, File]]:
    for parent, _, names in os.walk(folder):
        for name in names:
            path = Path(parent, name)
            cached = FOR_A_YEAR if HASHED.search(name) else ASK_EACH_TIME
            kind = _TYPES.get(path.suffix, "application/octet-stream")
            file = File(path, path.stat().st_size, kind, cached)
            yield path.relative_to(folder).as_posix(), file


class Website:
    """Answers GET and HEAD requests for the UI's files. The folder is listed once at the start, so
    that no path of a request can lead outside of it.
    """

    def __init__(self, folder: Path = FOLDER) -> None:
        all_files = (*files(folder), *dashboards())
        self._files = {f"/{path}": file for path, file in all_files}

    def owns(self, method: str, path: str) -> bool:
        """Whether a request is for a file of the UI; all other requests go to the API."""
        return method in {"GET", "HEAD"} and (
            path in {*PAGES, "/favicon.ico"} or path.startswith((_FILES, _BUILD))
        )

    def respond(self, path: str, headers: Headers) -> HttpResponse:
        """Returns the response for a path of the UI: the file, 304 if the browser already has it
        (header If-None-Match), or 404."""
        if path.startswith(_BUILD):
            path = _FILES + path.removeprefix(_BUILD)
        always = [_SNIFFING] if path.startswith(FRAMED) else [_SNIFFING, _FRAMING]
        file = self._files.get(path)
        if file is None:
            text = MISSING if path == "/" else b"Not Found\n"
            always.append((b"content-type", b"text/plain; charset=utf-8"))
            return HttpResponse(404, always, text)
        tag = f'"{file.path.stat().st_mtime_ns:x}-{file.size:x}"'.encode()
        about = [*always, (b"cache-control", file.cache_control.encode()), (b"etag", tag)]
        if tag in dict(headers).get(b"if-none-match", b""):
            return HttpResponse(304, about, b"")
        about += [
            (b"content-type", file.content_type.encode()),
            (b"content-length", b"%d" % file.size),
        ]
        content = file.path.open("rb")
        return HttpResponse(200, about, b"", file=FileContent(content, 0, file.size))
