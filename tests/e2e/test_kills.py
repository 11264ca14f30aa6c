"""kill -9 of the runner, of the process that follows the stream, and of both while clients write:
afterwards everything that was answered is there, what was not is whole or absent for every read at
once, and the product finds nothing wrong.

KILLS is how often something is killed.
"""

from __future__ import annotations

import random
import re
import time
from pathlib import Path

import pytest

from tests.e2e.killing import (
    HASTY,
    KILLS,
    PATIENT,
    SEED,
    Hasty,
    Product,
    completed,
    done,
    settled,
    wait_for,
)
from tests.e2e.storm import Worker

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(3600)]


def test_nothing_answered_is_lost_and_what_is_left_heals(tmp_path: Path) -> None:
    rng = random.Random(SEED)
    product = Product(tmp_path)
    url = product.server.url
    patient = [Worker(url, number, SEED, 10**9) for number in range(PATIENT)]
    hasty = [Hasty(url, number) for number in range(HASTY)]
    writers: list[Worker | Hasty] = [*patient, *hasty]
    try:
        for writer in writers:
            writer.start()
        killed: dict[str, int] = {}
        for number in range(KILLS):
            goal = done(writers) + rng.randrange(20, 80)
            wait_for(goal, writers)
            time.sleep(rng.uniform(0, 0.02))
            what = ("runner", "stream process", "both")[number % 3]
            killed[what] = killed.get(what, 0) + 1
            product.kill(what)
        for writer in writers:
            writer.finish()
        for writer in writers:
            writer.join()
        # What died with a runner is known to be dead after a start.
        product.kill("runner")
        # What readers see agrees before anything was completed.
        faults = [f"at once, {fault}" for writer in hasty for fault in writer.check()]
        output = settled(product.server)
        faults += [fault for writer in writers for fault in writer.check()]
    finally:
        product.server.stop()
    print(  # noqa: T201
        f"seed {SEED}: {done(writers)} writes, kills {killed}, {product.restarts} starts,"
        f" {sum(worker.client.retries for worker in patient)} repeated,"
        f" {sum(writer.lost for writer in hasty)} never answered,"
        f" {completed(product.server)} runs completed\n{output}"
    )
    assert faults == []
    assert not re.search(r"[1-9]\d* (findings|behind|writes on their way)", output)
