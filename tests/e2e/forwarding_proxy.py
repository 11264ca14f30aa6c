"""A server in front of another, which sees what goes by and may answer itself."""

from __future__ import annotations

import contextlib
import http.client
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple
from urllib.parse import urlsplit

_OWN = frozenset(("connection", "date", "server", "transfer-encoding", "content-length"))


class Passage(NamedTuple):
    """A request that went by, with the bytes of both bodies."""

    method: str
    path: str
    status: int
    size: int


Refusal = tuple[int, bytes]
"""Status and JSON of an answer that is not the server's."""


@contextlib.contextmanager
def forwarding(
    url: str,
    refusal: Callable[[str, bytes], Refusal | None],
    seen: Callable[[Passage], None] = lambda _passage: None,
) -> Iterator[str]:
    """The address of a server in front of the one at this URL.

    Args:
        refusal: the answer to a request with this path and body, if it is not to be passed on.
        seen: is told of each request when it is answered.
    """
    behind = urlsplit(url).netloc

    class Handler(BaseHTTPRequestHandler):
        def _pass(self) -> None:
            path = self.path.partition("?")[0]
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            refused = refusal(path, body)
            if refused is not None:
                seen(Passage(self.command, path, refused[0], len(body)))
                self._reply(refused[0], {}, refused[1])
                return
            connection = http.client.HTTPConnection(behind, timeout=60)
            with contextlib.closing(connection):
                connection.request(self.command, self.path, body, dict(self.headers.items()))
                answer = connection.getresponse()
                content = answer.read()
                seen(Passage(self.command, path, answer.status, len(body) + len(content)))
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
