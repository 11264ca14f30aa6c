"""The publisher: adds the changes that landing objects (files of changes to publish) name to the
system tables, then deletes these objects.

Objects about runs, about traces, about other entities and about the audit have steps of their own.
A step about the audit (``audit_publishing``) appends what has landed. A step of another kind reads
landing objects, opens the tables and *then* reads from DynamoDB the experiments, runs, traces and
other entities that the objects name. Each step commits a table on condition that no other publisher
has committed since the table was opened: a log has one entry of a version only. So rows never
return to an older state, even with several publishers. A step that is killed at any point is
repeated from its landing objects:

* a point that is in the history, or an audited request that is in the log, is not appended again
  (its ``record_id`` is its identity),
* the smallest and greatest value of a metric are merged with the published ones,
* all other values are read from DynamoDB again.
"""

from __future__ import annotations

import itertools
import logging
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Final

from deltalake.exceptions import CommitFailedError

from mlcore import errors
from mlcore.system_tables import entity_landing, landing_objects
from mlcore.system_tables.entity_sources import ROOTS
from mlcore.system_tables.landing_objects import Landed
from mltables import audit_publishing, run_staging, trace_staging
from mltables.duckdb_connection import connect
from mltables.entity_publishing import EntityStep, tables_of
from mltables.lake import Lake
from mltables.publish_step import Published, PublishStep
from mltables.snapshot import Snapshot
from mltables.table_columns import Table
from mltables.table_definitions import (
    EXPERIMENTS,
    HISTORY,
    OF_TRACES,
    RUNS,
    TABLES,
    open_or_create,
)
from mltables.trace_publishing import TraceStep
from mltables.unpublishable import UNPUBLISHABLE

_logger = logging.getLogger("mlcore.system_tables")

STEP_BYTES: Final = 4 << 20
"""Compressed bytes of landing objects in one step, some 80,000 points. Bounds the memory."""

ATTEMPTS: Final = 20
MISSING_ATTEMPTS: Final = 2
"""Attempts of a step that fails because a file of a table is missing; :data:`ATTEMPTS` after other
failures."""


def publish(seconds: float = float("inf"), waiting: Sequence[Landed] | None = None) -> Published:
    """Publishes the changes in the landing objects (files of changes) that exist at the time of the
    call.

    Objects that are written later wait for the next publication. Otherwise a client that logs
    without pause would keep this one running forever, in small steps.

    Args:
        seconds: after this time no new step begins, except the first.
        waiting: the landing objects to publish, if the caller has listed them already.

    Raises:
        CommitFailedError: other publishers committed first in each of :data:`ATTEMPTS` attempts.
        duckdb.Error, ValueError and others of ``UNPUBLISHABLE``: a landing object does not fit into
            memory, or has a value that cannot be a row's. It stays, and the others were published
            before, as far as ``seconds`` allowed.
        ResourceDoesNotExist: a file of a table is missing in each of :data:`MISSING_ATTEMPTS`
            attempts.
    """
    end = time.monotonic() + seconds
    total = Published()
    failed: Exception | None = None
    with Lake() as lake:
        if waiting is None:
            waiting = landing_objects.waiting()
        steps = [
            [
                (keys, step)
                for keys in _batches(landed for landed in waiting if landed.key.endswith(kind))
            ]
            for kind, step in _STEPS.items()
        ]
        # The kinds of objects take turns, so that none waits for all steps of another kind.
        for turn in itertools.zip_longest(*steps):
            for keys, step in filter(None, turn):
                if (total.objects or failed) and time.monotonic() >= end:
                    break
                try:
                    total = _sum(total, _publish_fitting(lake, keys, step))
                except UNPUBLISHABLE as error:
                    _logger.exception("%s cannot be published", keys)
                    failed = error
    if failed:
        raise failed
    return total


def _publish_fitting(
    lake: Lake, keys: list[str], step: Callable[[Lake, list[str]], Published]
) -> Published:
    """Publishes landing objects. If they do not fit into memory together, or one cannot be
    published, publishes each half. Raises the error of an object that cannot be published alone
    after the others are published."""
    try:
        return _publish_with_retries(lake, keys, step)
    except UNPUBLISHABLE:
        if len(keys) == 1:
            raise
    half = len(keys) // 2
    done = Published()
    failed: Exception | None = None
    for some in (keys[:half], keys[half:]):
        try:
            done = _sum(done, _publish_fitting(lake, some, step))
        except UNPUBLISHABLE as error:
            failed = error
    if failed:
        raise failed
    return done


def _sum(one: Published, other: Published) -> Published:
    return Published(*(a + b for a, b in zip(one, other, strict=True)))


def _batches(waiting: Iterable[Landed]) -> list[list[str]]:
    """Splits landing objects into one list of keys per step, in order."""
    portions: list[list[str]] = []
    size = STEP_BYTES
    for landed in waiting:
        if size >= STEP_BYTES:
            portions.append([])
            size = 0
        portions[-1].append(landed.key)
        size += landed.size
    return portions


def _publish_with_retries(
    lake: Lake, keys: list[str], step: Callable[[Lake, list[str]], Published]
) -> Published:
    for attempt in range(ATTEMPTS):
        try:
            return step(lake, keys)
        except (CommitFailedError, errors.ResourceDoesNotExist) as error:
            # An old copy of a table's log may name files that are deleted. Read the log again.
            for table in TABLES:
                lake.expect_commits(table.name)
            is_missing = isinstance(error, errors.ResourceDoesNotExist)
            if attempt == (MISSING_ATTEMPTS if is_missing else ATTEMPTS) - 1:
                raise
            time.sleep(0.05 * (attempt + 1))
    raise AssertionError


def _publish_runs(lake: Lake, keys: list[str]) -> Published:
    with (
        tempfile.TemporaryDirectory(dir=lake.temporary) as folder,
        connect(Path(folder)) as connection,
    ):
        run_staging.load_landed(connection, keys, Path(folder))
        # Opened before DynamoDB is read, so that a commit never replaces newer rows.
        tables: tuple[Table, ...] = (HISTORY, RUNS, EXPERIMENTS)
        if run_staging.has_changed_experiments(connection):
            tables += OF_TRACES
        snapshots = _snapshots(lake, tables)
        done = PublishStep(connection, lake, snapshots, Path(folder)).run()
    landing_objects.remove(keys)
    return done._replace(objects=len(keys))


def _publish_traces(lake: Lake, keys: list[str]) -> Published:
    with (
        tempfile.TemporaryDirectory(dir=lake.temporary) as folder,
        connect(Path(folder)) as connection,
    ):
        trace_staging.load_landed(connection, keys, Path(folder))
        snapshots = _snapshots(lake, OF_TRACES)
        changed = TraceStep(connection, lake, snapshots, Path(folder)).run()
    landing_objects.remove(keys)
    return Published(objects=len(keys), traces=changed)


def _publish_entities(lake: Lake, keys: list[str]) -> Published:
    changes = entity_landing.read(landing_objects.read(keys))
    changed = 0
    for kind in ROOTS:
        roots = changes.get(kind.table, {})
        parts = changes.get(kind.part.table, {}) if kind.part else {}
        if not roots and not parts:
            continue
        with (
            tempfile.TemporaryDirectory(dir=lake.temporary) as folder,
            connect(Path(folder)) as connection,
        ):
            snapshots = _snapshots(lake, tables_of(kind))
            step = EntityStep(connection, lake, snapshots, Path(folder), kind)
            changed += step.run(roots, parts)
    landing_objects.remove(keys)
    return Published(objects=len(keys), entities=changed)


def _snapshots(lake: Lake, tables: Iterable[Table]) -> dict[str, Snapshot]:
    """Opens these tables. Their snapshots may be behind, because the step commits to each table in
    any case (``finish_step``), and a commit to an old version fails."""
    return {
        table.name: Snapshot(lake, table, open_or_create(lake, table, may_be_behind=True))
        for table in tables
    }


def _publish_audit(lake: Lake, keys: list[str]) -> Published:
    with (
        tempfile.TemporaryDirectory(dir=lake.temporary) as folder,
        connect(Path(folder)) as connection,
    ):
        added = audit_publishing.append(connection, lake, keys, Path(folder))
    landing_objects.remove(keys)
    return Published(objects=len(keys), audited=added)


_STEPS: Final = {
    landing_objects.RUNS: _publish_runs,
    landing_objects.TRACES: _publish_traces,
    landing_objects.DEFERRED: _publish_traces,
    landing_objects.ENTITIES: _publish_entities,
    landing_objects.AUDIT: _publish_audit,
    landing_objects.AUDIT_LOGS: _publish_audit,
}
"""How the landing objects of each kind are published."""
