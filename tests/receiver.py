"""A receiver of webhooks, for tests: keeps what it gets and answers as it is told."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple


class Delivery(NamedTuple):
    path: str
    headers: dict[str, str]
    """Names in lower case."""
    text: str

    @property
    def body(self) -> dict[str, Any]:
        return json.loads(self.text)

    @property
    def event(self) -> str:
        return f"{self.body['entity']}.{self.body['action']}"


class Receiver:
    """``answers`` maps a path to the statuses of its first requests; what follows is 200."""

    def __init__(self) -> None:
        self.deliveries: list[Delivery] = []
        self.answers: dict[str, list[int]] = {}
        self.headers: dict[str, dict[str, str]] = {}
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_POST(self) -> None:
                text = self.rfile.read(int(self.headers["Content-Length"])).decode()
                headers = {name.lower(): value for name, value in self.headers.items()}
                statuses = receiver.answers.get(self.path, [])
                status = statuses.pop(0) if len(statuses) > 1 else (statuses or [200])[0]
                receiver.deliveries.append(Delivery(self.path, headers, text))
                content = b"received"
                self.send_response(status)
                for name, value in receiver.headers.get(self.path, {}).items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.server.server_address[1]}{path}"

    def at(self, path: str) -> list[Delivery]:
        return [delivery for delivery in self.deliveries if delivery.path == path]

    def settled(self, quiet_seconds: float = 1.0) -> list[Delivery]:
        """All deliveries, once no more have come for a while."""
        seen, since = -1, time.monotonic()
        while time.monotonic() - since < quiet_seconds:
            if len(self.deliveries) != seen:
                seen, since = len(self.deliveries), time.monotonic()
            time.sleep(0.02)
        return list(self.deliveries)

    def wait(self, condition: Callable[[], Any], seconds: float = 60) -> Any:
        deadline = time.monotonic() + seconds
        while not (result := condition()):
            assert time.monotonic() < deadline, [(d.path, d.text[:200]) for d in self.deliveries]
            time.sleep(0.02)
        return result


@contextlib.contextmanager
def receiving() -> Iterator[Receiver]:
    receiver = Receiver()
    thread = threading.Thread(target=receiver.server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        receiver.server.shutdown()
        thread.join()
        receiver.server.server_close()
