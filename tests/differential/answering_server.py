"""A server in this process, between a test and the answers of stock MLflow: recorded or live."""

from __future__ import annotations

import contextlib
import http.client
import socket
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final
from urllib.parse import urlsplit

from tests.differential.recorded_answers import Answer, Request

_OF_THE_CONNECTION: Final = frozenset(
    {"date", "server", "connection", "content-length", "transfer-encoding"}
)


@contextlib.contextmanager
def answering(answer: Callable[[Request], Answer]) -> Iterator[str]:
    """The URL at which each request is answered by the function, until the block ends."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True
        wbufsize = -1

        def reply(self) -> None:
            assert "transfer-encoding" not in self.headers, "bodies have a length"
            body = self.rfile.read(int(self.headers.get("content-length", "0")))
            request = Request(self.command, self.path, tuple(self.headers.items()), body)
            answered = answer(request)
            self.send_response_only(answered.status, answered.reason)
            for name, value in answered.headers:
                self.send_header(name, value)
            self.send_header("content-length", str(len(answered.body)))
            self.end_headers()
            self.wfile.write(answered.body)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = reply  # noqa: N815 -- http.server's names

        def log_message(self, *_parts: Any) -> None:
            """Says nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def asking(url: str) -> Callable[[Request], Answer]:
    """Sends requests to a live server, as they are."""
    host = urlsplit(url).netloc

    def ask(request: Request) -> Answer:
        connection = http.client.HTTPConnection(host, timeout=120)
        try:
            connection.connect()
            connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection.putrequest(
                request.method, request.target, skip_host=True, skip_accept_encoding=True
            )
            for name, value in request.headers:
                connection.putheader(name, host if name.lower() == "host" else value)
            connection.endheaders(request.body or None)
            response = connection.getresponse()
            headers = [
                [name.lower(), value]
                for name, value in response.getheaders()
                if name.lower() not in _OF_THE_CONNECTION
            ]
            return Answer(response.status, response.reason, headers, response.read())
        finally:
            connection.close()

    return ask
