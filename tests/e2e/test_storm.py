"""Random writes while the product is killed and started again and again: afterwards everything that
was answered is there, and everything derived follows from it.

STORM_WRITES is the number of writes.
"""

from __future__ import annotations

import os
import random
import re
import time
from pathlib import Path

import pytest

from tests.e2e.storm import Worker
from tests.engines import free_port
from tests.servers import Server, followed, start_product

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(7200)]

WRITES = int(os.environ.get("STORM_WRITES", "1000"))
SEED = int(os.environ.get("STORM_SEED", str(random.randrange(10**6))))
KILLS = max(4, WRITES // 500)
WORKERS = 4


def test_what_is_derived_survives_kills(tmp_path: Path) -> None:
    rng = random.Random(SEED)
    port = free_port()

    def start() -> Server:
        return start_product(tmp_path, "--data", str(tmp_path / "data"), port=port)

    server = start()
    workers = [Worker(server.url, number, SEED, WRITES // WORKERS) for number in range(WORKERS)]
    try:
        for worker in workers:
            worker.start()
        for moment in sorted(rng.sample(range(WRITES), KILLS)):
            while sum(worker.done for worker in workers) < moment and living(workers):
                time.sleep(0.005)
            time.sleep(rng.uniform(0, 0.05))
            server.kill()
            server = start()
        while living(workers):
            time.sleep(0.05)
        output = followed(server)
        faults = [fault for worker in workers for fault in worker.check()]
    finally:
        server.stop()
    retries = sum(worker.client.retries for worker in workers)
    done = sum(worker.done for worker in workers)
    runs = sum(len(worker.runs) for worker in workers)
    print(f"seed {SEED}: {done} writes to {runs} runs, {KILLS} kills, {retries} retries\n{output}")  # noqa: T201
    assert faults == []
    assert done == WRITES // WORKERS * WORKERS
    # One write of each worker was under way at each kill.
    assert sum(map(int, re.findall(r"(\d+) writes on their way", output))) <= KILLS * WORKERS


def living(workers: list[Worker]) -> bool:
    return any(worker.is_alive() for worker in workers)
