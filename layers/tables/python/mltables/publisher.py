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
from collections.abc import Iterable
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
    """Publishes what had landed when it was called; begins no new step after some seconds.

    What lands meanwhile is left to the next publication: beside a client that never stops logging
    this one would never end, and each of its steps would find little.

    Raises:
        CommitFailedError: others committed again and again.
    """
    end = time.monotonic() + seconds
    total = Published()
    with Lake() as lake:
        for keys in _portions(landing.waiting()):
            done = _repeated(lake, keys)
            total = Published(*(a + b for a, b in zip(total, done, strict=True)))
            if time.monotonic() >= end:
                break
    return total


def _portions(waiting: Iterable[tuple[str, int]]) -> list[list[str]]:
    """Keys of landing objects, in their order, as many together as one step takes."""
    portions: list[list[str]] = []
    size = STEP_BYTES
    for key, bytes_ in waiting:
        if size >= STEP_BYTES:
            portions.append([])
            size = 0
        portions[-1].append(key)
        size += bytes_
    return portions


def _repeated(lake: Lake, keys: list[str]) -> Published:
    for attempt in range(ATTEMPTS):
        try:
            return _step(lake, keys)
        except CommitFailedError:
            if attempt == ATTEMPTS - 1:
                raise
            time.sleep(0.05 * (attempt + 1))
    raise AssertionError


def _step(lake: Lake, keys: list[str]) -> Published:
    # Opened before anything is read: what is committed is never older than what is replaced.
    snapshots = {
        table.name: Snapshot(lake, table, opened(lake, table))
        for table in (HISTORY, RUNS, EXPERIMENTS)
    }
    with (
        tempfile.TemporaryDirectory(dir=lake.temporary) as folder,
        connected(Path(folder)) as connection,
    ):
        staging.load_landed(connection, keys, Path(folder))
        done = Step(connection, lake, snapshots, Path(folder)).run()
    landing.remove(keys)
    return done._replace(objects=len(keys))
