"""MLflow's own client while the table, or the way to the server, fails: nothing is created twice,
nothing that was answered is lost, and no call fails that its rules for repeating would have saved.

FAULTY_CALLS is the number of calls of each test.
"""

from __future__ import annotations

import contextlib
import http.client
import itertools
import os
import random
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.doubles import proxy
from tests.doubles.faulty import DATA, Fault, FaultyCalls
from tests.doubles.proxy import Answer, Call, Forward
from tests.e2e.faulty_calls import Calls
from tests.engines import Engine, create_table, table_engine
from tests.servers import start_product, stopped

__all__ = ["table_engine"]

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(7200)]

COUNT = int(os.environ.get("FAULTY_CALLS", "150"))
SEED = int(os.environ.get("FAULTY_SEED", str(random.randrange(10**6))))
SHARE = 0.2
_LONGEST = 8
"""Calls of the table that fail one after another: more than the product repeats one call."""


class Outages:
    """A stage of the proxy before the table: calls fail by chance, several in a row."""

    def __init__(self) -> None:
        self._random, self._left = random.Random(SEED), 0
        self._fault = Fault.THROTTLED
        self.is_on = False
        self.failed = 0

    async def __call__(self, call: Call, forward: Forward) -> Answer:
        if not self.is_on or call.operation not in DATA:
            return await forward(call)
        if self._left == 0 and self._random.random() < SHARE / _LONGEST * 2:
            self._left = self._random.randint(1, _LONGEST)
            self._fault = self._random.choice(
                (Fault.THROTTLED, Fault.THROTTLED_API, Fault.CONFLICT)
            )
        if self._left == 0:
            return await forward(call)
        self._left -= 1
        self.failed += 1
        return await FaultyCalls._break(call, forward, self._fault)


class Way:
    """A server before the product that fails by chance, before or after the product answered."""

    def __init__(self, url: str) -> None:
        self._behind = urlsplit(url).netloc
        self._random, self._lock = random.Random(SEED), threading.Lock()
        self.is_on = False
        self.lost = 0
        """POSTs that a client since 3.18 does not repeat, because they may have been executed."""
        self.failed = 0

    def fault(self) -> str:
        """The next fault; an empty text for none."""
        with self._lock:
            if not self.is_on or self._random.random() >= SHARE:
                return ""
            self.failed += 1
            return self._random.choice(("429", "408", "429", "reset after", "503 after"))

    def note_lost(self) -> None:
        with self._lock:
            self.lost += 1

    @contextlib.contextmanager
    def serving(self) -> Iterator[str]:
        way = self

        class Handler(BaseHTTPRequestHandler):
            def _pass(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                fault = way.fault()
                if fault.isdigit():
                    self._reply(int(fault), [("Retry-After", "0")], b'{"error_code": "X"}')
                    return
                connection = http.client.HTTPConnection(way._behind, timeout=60)
                with contextlib.closing(connection):
                    connection.request(self.command, self.path, body, dict(self.headers.items()))
                    answer = connection.getresponse()
                    content = answer.read()
                if fault and self.command == "POST":
                    way.note_lost()
                if fault == "reset after":
                    self.close_connection = True
                elif fault:
                    self._reply(503, [], b'{"error_code": "TEMPORARILY_UNAVAILABLE"}')
                else:
                    names = ("Content-Type", "Content-Encoding", "Retry-After")
                    kept = [(name, answer.headers[name]) for name in names if answer.headers[name]]
                    self._reply(answer.status, kept, content)

            def _reply(self, status: int, headers: list[tuple[str, str]], content: bytes) -> None:
                self.send_response(status)
                for name, value in (*headers, ("Content-Length", str(len(content)))):
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: Any) -> None:
                pass

        for method in ("GET", "POST", "PUT", "PATCH", "DELETE"):
            setattr(Handler, f"do_{method}", Handler._pass)
        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            server.server_close()


@pytest.fixture(autouse=True)
def _client(monkeypatch: pytest.MonkeyPatch) -> None:
    """The client waits as little as it can; how often it repeats stays as it is."""
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_BACKOFF_FACTOR", "0")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_BACKOFF_JITTER", "0")
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


_numbers = itertools.count()


@pytest.mark.filterwarnings("ignore::Warning")
def test_a_table_that_is_throttled(table_engine: Engine, tmp_path: Path) -> None:
    outages = Outages()
    table = create_table(table_engine.endpoint)
    with contextlib.ExitStack() as stack:
        endpoint = stack.enter_context(proxy.running(table_engine.endpoint, outages))
        reached: dict[str, Any] = {
            "AWS_ENDPOINT_URL_DYNAMODB": endpoint,
            "TABLE_NAME": table,
            "AWS_ACCESS_KEY_ID": "local",
            "AWS_SECRET_ACCESS_KEY": "local",
        }
        server = stack.enter_context(stopped(start_product(tmp_path, "--no-indexer", **reached)))
        calls = Calls(server.url, f"table{next(_numbers)}", SEED)
        outages.is_on = True
        calls.make(COUNT)
        outages.is_on = False
        counts = calls.counts()
    assert outages.failed, SEED
    assert calls.failures == [], SEED
    assert {key: count for key, count in counts.items() if count != 1} == {}, SEED


@pytest.mark.filterwarnings("ignore::Warning")
def test_a_way_that_breaks(tmp_path: Path) -> None:
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(stopped(start_product(tmp_path)))
        way = Way(server.url)
        url = stack.enter_context(way.serving())
        calls = Calls(url, f"way{next(_numbers)}", SEED)
        way.is_on = True
        calls.make(COUNT)
        way.is_on = False
        counts = calls.counts()
    assert way.failed, SEED
    assert len(calls.failures) <= way.lost, (SEED, calls.failures)
    doubled = {key: count for key, count in counts.items() if count > 1}
    assert doubled == {}, SEED
    missing = [each for each in calls.created if each.is_answered and not counts[each[:2]]]
    assert missing == [], SEED
