"""Lambda's runtime API on this machine: gives events to a runtime and records what it answers."""

from __future__ import annotations

import json
import queue
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

_PREFIX = "/2018-06-01/runtime"


class Answered:
    """What a runtime answered to one invocation."""

    def __init__(self, path: str, headers: Mapping[str, str]) -> None:
        self.path = path
        self.headers = headers
        """Names in lower case."""
        self.chunks: queue.Queue[bytes] = queue.Queue()
        self.trailers: dict[str, str] = {}
        self.is_complete = threading.Event()

    def take(self, end: bytes, seconds: float = 30) -> bytes:
        """Returns the content up to the chunk that holds ``end``."""
        content = b""
        while end not in content:
            content += self.chunks.get(timeout=seconds)
        return content

    def rest(self) -> bytes:
        """Returns the content that was not taken, after the answer has ended."""
        assert self.is_complete.wait(30)
        content = b""
        while not self.chunks.empty():
            content += self.chunks.get()
        return content


class RuntimeApiDouble:
    """``leave_after``: the content after which the connection of an answer is broken, as if the
    caller had left."""

    def __init__(self) -> None:
        self.answered: queue.Queue[Answered] = queue.Queue()
        self.asked = threading.Event()
        self.leave_after: bytes | None = None
        self._events: queue.Queue[tuple[str, Any, float] | None] = queue.Queue()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_GET(self) -> None:
                assert self.path == f"{_PREFIX}/invocation/next"
                outer.asked.set()
                given = outer._events.get()
                if given is None:
                    self.close_connection = True
                    return
                request_id, event, seconds = given
                content = json.dumps(event).encode()
                self.send_response(200)
                self.send_header("Lambda-Runtime-Aws-Request-Id", request_id)
                deadline = str(int((time.time() + seconds) * 1000))
                self.send_header("Lambda-Runtime-Deadline-Ms", deadline)
                self.send_header("content-length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def do_POST(self) -> None:
                headers = {name.lower(): value for name, value in self.headers.items()}
                answered = Answered(self.path.removeprefix(_PREFIX), headers)
                outer.answered.put(answered)
                if headers.get("transfer-encoding") == "chunked":
                    if not self._read_chunks(answered):
                        self.close_connection = True
                        return
                else:
                    answered.chunks.put(self.rfile.read(int(headers["content-length"])))
                answered.is_complete.set()
                self.send_response(202)
                self.send_header("content-length", "0")
                self.end_headers()

            def _read_chunks(self, answered: Answered) -> bool:
                while line := self.rfile.readline():
                    if not (size := int(line, 16)):
                        return self._read_trailers(answered)
                    chunk = self.rfile.read(size)
                    assert self.rfile.readline() == b"\r\n"
                    answered.chunks.put(chunk)
                    if outer.leave_after is not None and outer.leave_after in chunk:
                        return False
                return False  # the runtime has gone

            def _read_trailers(self, answered: Answered) -> bool:
                while line := self.rfile.readline().strip():
                    name, _, value = line.decode().partition(":")
                    answered.trailers[name.lower()] = value.strip()
                return True

            def log_message(self, format: str, *args: Any) -> None:
                """Says nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
        ).start()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._server.server_address[1]}"

    def invoke(self, event: Any, request_id: str = "request-1", seconds: float = 900) -> None:
        """Gives an event to the runtime.

        Args:
            seconds: until the function would be stopped.
        """
        self._events.put((request_id, event, seconds))

    def next_answer(self) -> Answered:
        return self.answered.get(timeout=30)

    def close(self) -> None:
        """Ends the runtime that waits for an event."""
        self._events.put(None)
        self._server.shutdown()
        self._server.server_close()


@contextmanager
def runtime_api() -> Iterator[RuntimeApiDouble]:
    double = RuntimeApiDouble()
    try:
        yield double
    finally:
        with suppress(OSError):
            double.close()
