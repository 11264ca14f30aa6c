"""A proxy as it stands before a registry of Kubeflow's: it logs its callers in, and passes on what
they ask."""

from __future__ import annotations

import contextlib
import threading
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.error import HTTPError


@contextlib.contextmanager
def before(url: str, authorization: str) -> Iterator[str]:
    """Requests to the address that it yields go to ``url`` with this login instead of theirs."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            content = self.rfile.read(length) if length else None
            headers = {"Authorization": authorization, "Content-Type": "application/json"}
            request = urllib.request.Request(
                url + self.path, method=self.command, data=content, headers=headers
            )
            try:
                answer = urllib.request.urlopen(request, timeout=60)
            except HTTPError as error:
                answer = error
            with answer:
                body = answer.read()
                self.send_response(answer.status)
                self.send_header("Content-Type", answer.headers.get("Content-Type", ""))
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        def do_POST(self) -> None:
            self.do_GET()

        def do_PATCH(self) -> None:
            self.do_GET()

        def log_message(self, *_: Any) -> None:
            """Says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
