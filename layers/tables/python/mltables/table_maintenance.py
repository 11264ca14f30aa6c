"""Maintains the system tables: merges small files of the metric history, the audit log and the
tables of traces, sorts past days of the history, packs past days of the spans, and deletes files
that no version of the last day needs. The only rows that it removes are audit rows whose retention
has ended.

The publisher keeps the files of other tables few (``run_publishing``, ``publish_step``)."""

from __future__ import annotations

import logging
import os
import tempfile
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import duckdb
from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError, DeltaError

from mltables import maintenance_needed, packed_files
from mltables.duckdb_connection import connect
from mltables.lake import Lake
from mltables.row_replacement import merge_small_files
from mltables.snapshot import Snapshot
from mltables.table_columns import Table
from mltables.table_commit import TableCommit
from mltables.table_definitions import (
    AUDIT,
    FILE_BYTES,
    HISTORY,
    KEPT_HOURS,
    OF_TRACES,
    TABLES,
    open_or_create,
    writer_properties,
)
from mltables.writable_table import WritableTable

_logger = logging.getLogger("mlcore.system_tables")

SMALL_FILES: Final = 8
"""A day of the history or of the audit log with fewer files is not compacted."""

MERGED_ROWS: Final = 500_000
"""When so many rows of a table of traces are merged, which takes some ten seconds, a call merges no
further files."""

SORTED_BYTES: Final = 384 << 20
"""A day of the history with more bytes (above some ten million points) is not sorted as a whole.
Each of its appended files is sorted in itself."""

SORTING_BYTES: Final = 192 << 20
"""Bytes of memory for sorting a day of the history; the rest spills to disk."""

SMALL: Final = 8
"""A file counts as small if the largest of its day is more than this many times larger."""

AUDIT_DAYS: Final = "AUDIT_DAYS"
"""Environment: for how many days ``audit_log`` keeps its rows; 0 or nothing: for ever."""


def maintain_tables(*, today: str = "") -> int:
    """Maintains the system tables (Delta tables) that changed (``maintenance_needed``), and
    ``audit_log`` if rows have reached the end of their retention: merges and sorts their files, and
    vacuums them. Returns the number of deleted files. A table on which another writer commits
    meanwhile is left to the next call. If the maintenance of a table fails, the error is raised
    after the other tables are done.

    Args:
        today: the current day in UTC as ``YYYY-MM-DD``, by default of the clock. Earlier days are
            sorted and packed; this day still grows, and each sorting would rewrite it.
    """
    today = today or datetime.now(UTC).strftime("%Y-%m-%d")
    removed = 0
    stored = maintenance_needed.stored_tables()
    tables = maintenance_needed.needing_maintenance(TABLES, stored)
    if AUDIT not in tables and AUDIT.name in stored:
        first = _first_audited_day()
        tables += [AUDIT] * (stored[AUDIT.name].first_partition < first)
    failed: Exception | None = None
    with Lake() as lake:
        for table in tables:
            try:
                delta = _merged(lake, table, today)
                version = delta.version()
                removed += _remove_files(delta)
                maintenance_needed.record_complete(table, stored[table.name], version)
            except CommitFailedError:
                continue
            except Exception as error:  # the other tables are maintained all the same
                _logger.exception("the upkeep of %s failed", table.name)
                failed = failed or error
            finally:
                lake.expect_commits(table.name)
    if failed:
        raise failed
    return removed


def _remove_files(delta: DeltaTable) -> int:
    """Deletes files and entries of the log that no version of the last day needs. Returns the
    number of files."""
    files = delta.vacuum(
        retention_hours=KEPT_HOURS,
        dry_run=False,
        enforce_retention_duration=False,
        full=True,  # also files of a killed writer
    )
    delta.cleanup_metadata()
    return len(files)


def _merged(lake: Lake, table: Table, today: str) -> DeltaTable:
    """Merges the small files of a table, and removes audit rows whose retention has ended. Returns
    the table opened at its newest version.

    Raises:
        CommitFailedError: another writer committed first.
    """
    if table in OF_TRACES:
        _merge_small_of_traces(lake, table, today)
    delta = DeltaTable(lake.uri(table.name), storage_options=lake.options)
    if table is HISTORY:
        _merge_small(lake, delta, today)
    if table is AUDIT:
        _merge_small_of_audit(lake, delta)
        lake.expect_commits(table.name)
        _remove_old_audit(lake)
        delta.update_incremental()
    return delta


def _merge_small(lake: Lake, delta: DeltaTable, today: str) -> None:
    with (
        tempfile.TemporaryDirectory(dir=lake.temporary) as folder,
        connect(Path(folder)) as connection,
    ):
        for day, files, size, apart in _days(connection, delta):
            over = day < today and size <= SORTED_BYTES
            if over and not apart and _sort(delta, day):
                continue
            if files >= max(SMALL_FILES, 2 * (size // FILE_BYTES + 1)):
                delta.optimize.compact(
                    partition_filters=[(str(HISTORY.partition), "=", day)],
                    target_size=FILE_BYTES,
                    max_concurrent_tasks=1,
                    writer_properties=writer_properties(HISTORY),
                )


def _merge_small_of_traces(lake: Lake, table: Table, today: str) -> None:
    """Merges the small files of each day. The publisher only merges files of a day to which it
    writes, so without this the small files of past days would stay. Packs spans of a day that is
    over (``packed_files``)."""
    with (
        tempfile.TemporaryDirectory(dir=lake.temporary) as folder,
        connect(Path(folder)) as connection,
    ):
        snapshot = Snapshot(lake, table, open_or_create(lake, table))
        writable = WritableTable(connection, lake, snapshot, Path(folder))
        merge_small_files(connection, writable, MERGED_ROWS)
        if table.first:
            now = datetime.now(UTC).strftime("%Y-%m-%d")
            try:
                packed_files.pack(connection, writable, min(today, now), MERGED_ROWS)
            except (duckdb.OutOfMemoryException, CommitFailedError) as error:
                # Old files are deleted all the same, also if a publisher commits each time.
                _logger.warning("spans were not packed: %s", error)


def _merge_small_of_audit(lake: Lake, delta: DeltaTable) -> None:
    """Merges the files of those days of ``audit_log`` that have many. The order of the rows in the
    files does not matter, because the chain is read in the order of the rows' numbers."""
    files = Counter(_day_of(name) for name in lake.names(delta))
    for day, count in sorted(files.items()):
        if count >= SMALL_FILES:
            delta.optimize.compact(
                partition_filters=[(str(AUDIT.partition), "=", day)],
                target_size=FILE_BYTES,
                max_concurrent_tasks=1,
                writer_properties=writer_properties(AUDIT),
            )


def _remove_old_audit(lake: Lake) -> None:
    """Removes the days of ``audit_log`` that are older than its retention (``AUDIT_DAYS``)."""
    first = _first_audited_day()
    if not first:
        return
    delta = open_or_create(lake, AUDIT)
    old = [name for name in lake.names(delta) if _day_of(name) < first]
    if not old:
        return
    with (
        tempfile.TemporaryDirectory(dir=lake.temporary) as folder,
        connect(Path(folder)) as connection,
    ):
        change = TableCommit(connection, lake, Snapshot(lake, AUDIT, delta), Path(folder))
        change.remove(old)
        change.commit()


def _first_audited_day() -> str:
    """Returns the first day that ``audit_log`` keeps; "" if it keeps all."""
    kept = int(os.environ.get(AUDIT_DAYS) or 0)
    return (datetime.now(UTC) - timedelta(days=kept)).strftime("%Y-%m-%d") if kept else ""


def _day_of(name: str) -> str:
    """Returns the day of a file by its name in the table's log (``insert_date=DAY/…``)."""
    return name.partition("/")[0].rpartition("=")[2]


def _days(
    connection: duckdb.DuckDBPyConnection, delta: DeltaTable
) -> list[tuple[str, int, int, bool]]:
    """Returns (day, number of files, bytes, is sorted) of each day of the history. A day counts as
    sorted if the run ids of its files do not overlap; small files with late points may overlap."""
    actions = delta.get_add_actions(flatten=True)
    if not actions.num_rows:
        return []
    connection.register("listed_files", actions)
    try:
        return connection.execute(
            f"""
            WITH files (name, bytes, low, high) AS (
                SELECT "partition.{HISTORY.partition}", size_bytes, "min.run_id", "max.run_id"
                FROM listed_files
            ), sizes AS (
                SELECT *, max(bytes) OVER (PARTITION BY name) AS largest FROM files
            ), places AS (
                SELECT *, max(high) FILTER (bytes * {SMALL} >= largest) OVER (
                    PARTITION BY name ORDER BY low, high
                    ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
                ) AS before FROM sizes
            )
            SELECT name, count(*), sum(bytes)::BIGINT,
                   coalesce(bool_and(low >= before) FILTER (bytes * {SMALL} >= largest), true)
            FROM places GROUP BY name ORDER BY name
            """
        ).fetchall()
    finally:
        connection.unregister("listed_files")


def _sort(delta: DeltaTable, day: str) -> bool:
    """Rewrites a day so that the points of each run are adjacent. Spills to the machine's temporary
    folder. Returns False if memory and disk do not suffice."""
    try:
        delta.optimize.z_order(
            ["run_id"],
            partition_filters=[(str(HISTORY.partition), "=", day)],
            target_size=FILE_BYTES,
            max_concurrent_tasks=1,
            max_spill_size=SORTING_BYTES,
            writer_properties=writer_properties(HISTORY),
        )
    except CommitFailedError:
        raise
    except DeltaError as error:
        _logger.warning("the points of %s could not be sorted and stay as they are: %s", day, error)
        return False
    return True
