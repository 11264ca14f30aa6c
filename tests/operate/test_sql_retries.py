"""A query of the command line that the server cannot run now is sent again when it says."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from operate import system_tables
from operate.module_loading import CannotRun


class _Busy(BaseHTTPRequestHandler):
    left = 0

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        busy = type(self).left > 0
        type(self).left -= 1
        body = json.dumps({"message": "busy"} if busy else {"rows": [[1]]}).encode()
        self.send_response(429 if busy else 200)
        self.send_header("Retry-After", "7")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def url() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), _Busy) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_a_query_waits_for_its_turn(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    monkeypatch.setattr(time, "sleep", waits.append)
    _Busy.left = 3
    assert system_tables.ask("SELECT 1", {}, url=url) == {"rows": [[1]]}
    assert waits == [7, 7, 7]
    _Busy.left = 1000
    with pytest.raises(CannotRun, match="busy"):
        system_tables.ask("SELECT 1", {}, url=url)
    assert len(waits) == 3 + system_tables.PATIENCE - 1
