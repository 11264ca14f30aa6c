"""Stands before an S3 server and refuses what a guard refuses: what is signed wrongly or not, or
what comes from somebody who is dead."""

from __future__ import annotations

import contextlib
import http.client
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Protocol
from urllib.parse import urlsplit

from tests.doubles.signatures import Sent, Wrong

_OF_ONE_CONNECTION = frozenset(
    ("connection", "transfer-encoding", "content-length", "date", "server")
)


class Guard(Protocol):
    """Decides about each request: such as a :class:`tests.doubles.signatures.Service`."""

    def check(self, sent: Sent) -> None:
        """Raises Wrong."""


class Front:
    """What came by, and what was refused."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.presigned: list[str] = []
        """Methods and paths of requests whose URL carried the signature."""
        self.refused: list[str] = []


@contextlib.contextmanager
def serving(server: str, service: Guard) -> Iterator[Front]:
    """A front for the server at this URL."""
    address = urlsplit(server)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # Else the body of an answer waits 40 ms until the client has acknowledged the headers.
        disable_nagle_algorithm = True

        def _answer(self) -> None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            body = self.rfile.read(int(headers.get("content-length") or 0))
            path, _, query = self.path.partition("?")
            try:
                service.check(Sent(self.command, path, query, headers, body))
            except Wrong as why:
                front.refused.append(f"{self.command} {self.path}: {why}")
                self._send(
                    403, {"Content-Type": "application/xml"}, f"<Error>{why}</Error>".encode()
                )
                return
            if "X-Amz-Signature=" in query:
                front.presigned.append(f"{self.command} {path}")
            connection = http.client.HTTPConnection(
                address.hostname or "", address.port, timeout=60
            )
            with contextlib.closing(connection):
                kept = {k: v for k, v in headers.items() if k not in ("connection", "expect")}
                connection.request(self.command, self.path, body, kept)
                response = connection.getresponse()
                self._send(response.status, dict(response.getheaders()), response.read())

        def _send(self, status: int, headers: dict[str, str], body: bytes) -> None:
            self.send_response(status)
            length = str(len(body))
            for name, value in headers.items():
                if name.lower() == "content-length":
                    length = value
                elif name.lower() not in _OF_ONE_CONNECTION:
                    self.send_header(name, value)
            if status != 204:
                self.send_header("Content-Length", length)
            self.end_headers()
            if self.command != "HEAD":
                with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                    self.wfile.write(body)  # who asked only for the headers does not read it

        def log_message(self, *_: Any) -> None: ...

    for method in ("GET", "HEAD", "PUT", "POST", "DELETE"):
        setattr(Handler, f"do_{method}", Handler._answer)
    listening = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    listening.daemon_threads = True
    front = Front(f"http://127.0.0.1:{listening.server_address[1]}")
    thread = threading.Thread(target=listening.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield front
    finally:
        listening.shutdown()
        thread.join()
        listening.server_close()
