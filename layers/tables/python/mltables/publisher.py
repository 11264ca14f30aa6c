"""The publisher: brings the tables up to what landed, then takes away what it has consumed.

A step opens the three tables, reads the landing objects and *then* what the table in DynamoDB says
of the experiments and runs that they name, and commits each table on condition that no other
publisher has committed since it was opened: Delta refuses a second transaction of one writer. So
rows never go back to an older state, whoever else publishes, and a step that is killed anywhere is
repeated from its landing objects:

* a point that is in the history is not appended again (its ``record_id`` is its identity),
* the smallest and greatest value of a metric are joined with those of before,
* all else is what the table says.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Final

from deltalake.exceptions import CommitFailedError

from mlcore.system_tables import landing
from mltables import staging
from mltables.database import connected
from mltables.lake import Lake
from mltables.snapshot import Snapshot
from mltables.step import Published, Step
from mltables.tables import EXPERIMENTS, HISTORY, RUNS, opened

STEP_BYTES: Final = 4 << 20
"""Compressed landing objects that one step takes: some 80,000 points, so that memory is bounded."""

ATTEMPTS: Final = 20


def publish(seconds: float = float("inf")) -> Published:
    """Publishes what has landed; begins no new step after some seconds. Ends at once when nothing
    waits.

    Raises:
        CommitFailedError: others committed again and again.
    """
    end = time.monotonic() + seconds
    total = Published()
    while keys := [key for key, _ in landing.waiting(STEP_BYTES)]:
        done = _repeated(keys)
        total = Published(*(a + b for a, b in zip(total, done, strict=True)))
        if time.monotonic() >= end:
            break
    return total


def _repeated(keys: list[str]) -> Published:
    for attempt in range(ATTEMPTS):
        try:
            return _step(keys)
        except CommitFailedError:
            if attempt == ATTEMPTS - 1:
                raise
            time.sleep(0.05 * (attempt + 1))
    raise AssertionError


def _step(keys: list[str]) -> Published:
    lake = Lake()
    # Opened before anything is read: what is committed is never older than what is replaced.
    snapshots = {
        table.name: Snapshot(lake, table, opened(lake, table))
        for table in (HISTORY, RUNS, EXPERIMENTS)
    }
    with (
        tempfile.TemporaryDirectory(dir=lake.scratch) as folder,
        connected(Path(folder)) as connection,
    ):
        step = Step(connection, snapshots, Path(folder))
        staging.load_landed(connection, keys, Path(folder))
        done = step.run()
    landing.remove(keys)
    return done._replace(objects=len(keys))
