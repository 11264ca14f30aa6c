"""Clients of botocore, too, notice at once that their connections lead nowhere."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from mlcore.artifacts import s3_store
from mlcore.artifacts.s3_store import Bucket
from mlcore.db.transport import IDLE_SECONDS
from tests.doubles.nat import Nat

pytestmark = pytest.mark.contract
COUNT = 8


class _Files(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    together: threading.Barrier | None = None

    def do_DELETE(self) -> None:
        if self.together is not None:
            self.together.wait(60)
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: Any) -> None: ...


@pytest.fixture
def nat() -> Iterator[Nat]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Files)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    made = Nat(server.server_address[1])
    try:
        yield made
    finally:
        made.close()
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture
def bucket(nat: Nat, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Bucket:
    """One with so many idle connections; it waits so many seconds for an answer as the test says,
    else for long."""
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", f"http://127.0.0.1:{nat.port}")
    monkeypatch.setattr(s3_store, "READ_TIMEOUT_SECONDS", getattr(request, "param", 60.0))
    made = Bucket("files")
    monkeypatch.setattr(_Files, "together", threading.Barrier(COUNT))
    with ThreadPoolExecutor(COUNT) as pool:
        list(pool.map(made.delete, ["a"] * COUNT))
    monkeypatch.setattr(_Files, "together", None)
    return made


@pytest.mark.parametrize("bucket", [2.0], indirect=True)
def test_a_black_hole_costs_one_attempt(nat: Nat, bucket: Bucket) -> None:
    nat.forget_connections()
    for _ in range(3):
        bucket.delete("a")
    assert nat.swallowed == 1


@pytest.mark.parametrize("clock", ["time", "monotonic"])
def test_connections_that_were_idle_for_long_are_not_used(
    nat: Nat, bucket: Bucket, clock: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    nat.forget_connections()
    later = getattr(time, clock)() + IDLE_SECONDS + 0.1
    monkeypatch.setattr(time, clock, lambda: later)
    bucket.delete("a")
    assert nat.swallowed == 0
