"""The publisher: applies the landing objects to the system tables, then deletes these objects.

A step opens the three tables, reads the landing objects and *then* reads from DynamoDB the
experiments and runs that they name. It commits each table on condition that no other publisher has
committed since the table was opened: Delta refuses a second transaction with the same number. So
rows never return to an older state, even with several publishers. A step that is killed at any
point is repeated from its landing objects:

* a point that is in the history is not appended again (its ``record_id`` is its identity),
* the smallest and greatest value of a metric are merged with the published ones,
* all other values are read from DynamoDB again.
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
from mltables.duckdb_connection import connect
from mltables.lake import Lake
from mltables.publish_step import Published, PublishStep
from mltables.snapshot import Snapshot
from mltables.table_definitions import EXPERIMENTS, HISTORY, RUNS, open_or_create

STEP_BYTES: Final = 4 << 20
"""Compressed bytes of landing objects in one step, some 80,000 points. Bounds the memory."""

ATTEMPTS: Final = 20


def publish(seconds: float = float("inf")) -> Published:
    """Publishes the landing objects that exist at the time of the call.

    Objects that land later wait for the next publication. Otherwise a client that logs without
    pause would keep this one running forever, in small steps.

    Args:
        seconds: after this time no new step begins.

    Raises:
        CommitFailedError: other publishers committed first in each of :data:`ATTEMPTS` attempts.
    """
    end = time.monotonic() + seconds
    total = Published()
    with Lake() as lake:
        for keys in _batches(landing.waiting()):
            done = _publish_with_retries(lake, keys)
            total = Published(*(a + b for a, b in zip(total, done, strict=True)))
            if time.monotonic() >= end:
                break
    return total


def _batches(waiting: Iterable[tuple[str, int]]) -> list[list[str]]:
    """Splits landing objects, given as (key, bytes), into one list of keys per step, in order."""
    portions: list[list[str]] = []
    size = STEP_BYTES
    for key, bytes_ in waiting:
        if size >= STEP_BYTES:
            portions.append([])
            size = 0
        portions[-1].append(key)
        size += bytes_
    return portions


def _publish_with_retries(lake: Lake, keys: list[str]) -> Published:
    for attempt in range(ATTEMPTS):
        try:
            return _publish_once(lake, keys)
        except CommitFailedError:
            if attempt == ATTEMPTS - 1:
                raise
            time.sleep(0.05 * (attempt + 1))
    raise AssertionError


def _publish_once(lake: Lake, keys: list[str]) -> Published:
    # Open the tables before reading anything, so that a commit never replaces newer rows.
    snapshots = {
        table.name: Snapshot(lake, table, open_or_create(lake, table))
        for table in (HISTORY, RUNS, EXPERIMENTS)
    }
    with (
        tempfile.TemporaryDirectory(dir=lake.temporary) as folder,
        connect(Path(folder)) as connection,
    ):
        staging.load_landed(connection, keys, Path(folder))
        done = PublishStep(connection, lake, snapshots, Path(folder)).run()
    landing.remove(keys)
    return done._replace(objects=len(keys))
