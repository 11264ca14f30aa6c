"""A server that speaks the part of Hugging Face's HTTP API that its client needs to list models;
knows models, who may see them, and how many it shows at once."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final
from urllib.parse import parse_qs, unquote, urlsplit

PAGE: Final = 3
KEY: Final = "hf_right"


class Hub:
    """``models`` by id; a private one is shown to who has the key."""

    def __init__(self) -> None:
        self.models: dict[str, dict[str, Any]] = {}
        self.cards: dict[str, str] = {}
        self.asked: list[str] = []
        self.status = 200
        """Of all answers, where it is not 200."""
        self.next_host = ""
        self.url = ""

    def add(self, name: str, card: str = "", **more: Any) -> None:
        self.cards[name] = card
        self.models[name] = {
            "id": name,
            "modelId": name,
            "author": name.partition("/")[0],
            "private": False,
            "gated": False,
            "tags": ["pytorch", "license:mit"],
            "createdAt": "2024-03-01T10:00:00.000Z",
            "lastModified": "2025-03-01T10:00:00.000Z",
            "siblings": [{"rfilename": "README.md"}] if card else [],
            **more,
        }

    def answer(self, target: str, key: str) -> tuple[int, Any, dict[str, str]]:
        path, query = urlsplit(target).path, parse_qs(urlsplit(target).query)
        if self.status != 200:
            return self.status, {"error": "not now"}, {}
        seen = {
            name: model for name, model in self.models.items() if not model["private"] or key == KEY
        }
        if path == "/api/models":
            wanted = [
                model
                for name, model in sorted(seen.items())
                if model["author"] == query["author"][0]
                and query.get("search", [""])[0].lower() in name.lower()
            ]
            at = int(query.get("cursor", ["0"])[0])
            more: dict[str, str] = {}
            if at + PAGE < len(wanted):
                host = self.next_host or self.url
                rest = target.partition("&cursor=")[0]
                more = {"Link": f'<{host}{rest}&cursor={at + PAGE}>; rel="next"'}
            return 200, wanted[at : at + PAGE], more
        name = unquote(path.removeprefix("/api/models/"))
        if name in seen:
            return 200, seen[name], {}
        name = path[1:].removesuffix("/raw/main/README.md")
        if name in seen:
            return 200, self.cards[name], {}
        return 404, {"error": "Repository not found"}, {"X-Error-Code": "RepoNotFound"}


@contextmanager
def serving() -> Iterator[Hub]:
    hub = Hub()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            key = self.headers.get("Authorization", "").removeprefix("Bearer ")
            hub.asked.append(self.path)
            status, body, headers = hub.answer(self.path, key)
            data = (body if isinstance(body, str) else json.dumps(body)).encode()
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(data))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    hub.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
