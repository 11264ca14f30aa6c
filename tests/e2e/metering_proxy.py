"""A server in front of the product that counts the bytes of bodies, and refuses what Lambda would
refuse."""

from __future__ import annotations

import contextlib
import http.client
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple
from urllib.parse import urlsplit

MOST_BYTES = 6 * 1024 * 1024 * 3 // 4
"""A body of Lambda's limit, which arrives as Base64."""
_OWN = frozenset(("connection", "date", "server", "transfer-encoding", "content-length"))


class Passage(NamedTuple):
    """A request that went by, with the bytes of both bodies."""

    method: str
    path: str
    status: int
    size: int


class Meter:
    """What went by."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.passages: list[Passage] = []

    @property
    def size(self) -> int:
        """Bytes of all bodies."""
        return sum(one.size for one in self.passages)

    def paths(self, method: str, prefix: str) -> list[str]:
        return [
            one.path
            for one in self.passages
            if one.method == method and one.path.startswith(prefix)
        ]


@contextlib.contextmanager
def metering(url: str) -> Iterator[Meter]:
    """A meter in front of the server at this URL."""
    behind = urlsplit(url).netloc

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _pass(self) -> None:
            path = self.path.partition("?")[0]
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if len(body) > MOST_BYTES:
                meter.passages.append(Passage(self.command, path, 413, len(body)))
                self._reply(413, {}, b'{"message": "Request Entity Too Large"}')
                return
            connection = http.client.HTTPConnection(behind, timeout=60)
            with contextlib.closing(connection):
                connection.request(self.command, self.path, body, dict(self.headers.items()))
                answer = connection.getresponse()
                content = answer.read()
                size = len(body) + len(content)
                meter.passages.append(Passage(self.command, path, answer.status, size))
                self._reply(answer.status, dict(answer.getheaders()), content)

        def _reply(self, status: int, headers: dict[str, str], content: bytes) -> None:
            self.send_response(status)
            for name, value in headers.items():
                if name.lower() not in _OWN:
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: Any) -> None:
            pass

    for method in ("GET", "POST", "PUT", "PATCH", "DELETE"):
        setattr(Handler, f"do_{method}", Handler._pass)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    meter = Meter(f"http://127.0.0.1:{server.server_address[1]}")
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield meter
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
