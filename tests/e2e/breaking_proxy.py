"""A server in front of another that fails on some paths."""

from __future__ import annotations

import contextlib
import http.client
import threading
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

_OWN = frozenset(("connection", "date", "server", "transfer-encoding", "content-length"))


@contextlib.contextmanager
def failing(url: str, endings: Sequence[str]) -> Iterator[str]:
    """The address of a server that answers 500 where a path ends so; all else it passes on."""
    behind = urlsplit(url).netloc

    class Handler(BaseHTTPRequestHandler):
        def _pass(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if self.path.partition("?")[0].endswith(tuple(endings)):
                self._reply(500, {}, b'{"message": "broken on purpose"}')
                return
            connection = http.client.HTTPConnection(behind, timeout=60)
            with contextlib.closing(connection):
                connection.request(self.command, self.path, body, dict(self.headers.items()))
                answer = connection.getresponse()
                self._reply(answer.status, dict(answer.getheaders()), answer.read())

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

    for method in ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"):
        setattr(Handler, f"do_{method}", Handler._pass)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
