"""A provider that is asked once, says little or nothing, and notes that its caller leaves."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

PATIENCE = 10.0
"""Seconds for what takes milliseconds."""
FIRST_PART = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
    b'data: {"id": "1", "created": 1, "model": "m", "choices": '
    b'[{"index": 0, "delta": {"content": "hi"}, "finish_reason": null}]}\n\n'
)


class SilentProvider:
    """Accepts one request, sends what it is given, and notes when the connection ends."""

    def __init__(self, sent: bytes) -> None:
        self._server = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._server.getsockname()[1]}"
        self._sent = sent
        self.is_asked, self.is_left = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        connection, _ = self._server.accept()
        with connection:
            connection.recv(65_536)
            connection.sendall(self._sent)
            self.is_asked.set()
            connection.settimeout(PATIENCE)
            while connection.recv(65_536):
                pass
            self.is_left.set()

    def close(self) -> None:
        self._server.close()


@contextmanager
def silent(sent: bytes = b"") -> Iterator[SilentProvider]:
    provider = SilentProvider(sent)
    try:
        yield provider
    finally:
        provider.close()
