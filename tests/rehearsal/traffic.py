"""Callers who do not stop while a stack is deployed anew."""

from __future__ import annotations

import contextlib
import itertools
import threading
import time
from collections import Counter
from collections.abc import Iterator

from tests.rehearsal.stack import Stack

CALLERS = 2
PAUSE_SECONDS = 0.05


class Traffic:
    """What the calls were answered."""

    def __init__(self) -> None:
        self.statuses: Counter[int] = Counter()
        self.failures: list[str] = []
        """Answers of 500 and above, and calls without one."""

    def take(self, path: str, status: int, body: object) -> None:
        self.statuses[status] += 1
        if status >= 500:
            self.failures.append(f"{path}: {status} {body}")


@contextlib.contextmanager
def running(stack: Stack, run_id: str) -> Iterator[Traffic]:
    """Reads and writes of several functions, by the administrator."""
    traffic, over = Traffic(), threading.Event()

    def call(caller: int) -> None:
        for number in itertools.count():
            metric = {"run_id": run_id, "key": f"m{caller}", "value": number, "timestamp": number}
            for method, path, fields in (
                ("POST", "runs/log-metric", metric | {"step": number}),
                ("GET", f"runs/get?run_id={run_id}", None),
                ("POST", "experiments/search", {"max_results": 1}),
                ("GET", "registered-models/search", None),
            ):
                try:
                    status, body, _ = stack.call(method, f"/api/2.0/mlflow/{path}", fields)
                    traffic.take(path, status, body)
                except OSError as error:
                    traffic.failures.append(f"{path}: {error!r}")
                if over.wait(PAUSE_SECONDS):
                    return

    threads = [threading.Thread(target=call, args=(number,)) for number in range(CALLERS)]
    for thread in threads:
        thread.start()
    try:
        time.sleep(1)
        yield traffic
        time.sleep(1)
    finally:
        over.set()
        for thread in threads:
            thread.join(timeout=120)
