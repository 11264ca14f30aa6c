"""Keeps the tables quick to read: merges small files, sorts days that are over, and removes files
that no reader has needed for a day. Rows stay what they are."""

from __future__ import annotations

import logging
import tempfile
from pathlib import Path
from typing import Final

import duckdb
from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError, DeltaError

from mltables.database import connected
from mltables.lake import Lake
from mltables.tables import FILE_BYTES, HISTORY, TABLES, Table, opened, writer

_logger = logging.getLogger("mlcore.system_tables")

SMALL_FILES: Final = 8
"""So many files of a partition are merged."""

SORTED_BYTES: Final = 384 << 20
"""A day of more, some ten million points, is not sorted as a whole: what was appended is, each by
itself."""

SORTING_BYTES: Final = 192 << 20
"""What a day may take of memory while it is sorted."""

SMALL: Final = 8
"""A file is small beside others when the largest of its partition has more than so many times its
bytes."""

KEPT_HOURS: Final = 24
"""A reader that opened a table so long ago still finds its files."""


def keep_up(*, today: str = "9999") -> int:
    """Files that were removed. What another writer got in the way of is left for the next time.

    Args:
        today: the first day that may still get points, as ``YYYY-MM-DD``; days before are sorted.
    """
    lake = Lake()
    removed = 0
    for table in TABLES:
        delta = opened(lake, table)
        try:
            _merge_small(lake, table, delta, today)
        except CommitFailedError:
            continue
        removed += len(
            delta.vacuum(
                retention_hours=KEPT_HOURS,
                dry_run=False,
                enforce_retention_duration=False,
                full=True,  # also what a writer left that was killed
            )
        )
        delta.cleanup_metadata()
    return removed


def _merge_small(lake: Lake, table: Table, delta: DeltaTable, today: str) -> None:
    with (
        tempfile.TemporaryDirectory(dir=lake.scratch) as folder,
        connected(Path(folder)) as connection,
    ):
        for partition, files, size, apart in _partitions(connection, table, delta):
            over = table is HISTORY and partition < today and size <= SORTED_BYTES
            if over and not apart and _sort(delta, partition):
                continue
            if files >= max(SMALL_FILES, 2 * (size // FILE_BYTES + 1)):
                filters = [(table.partition, "=", partition)] if table.partition else None
                delta.optimize.compact(
                    partition_filters=filters,
                    target_size=FILE_BYTES,
                    max_concurrent_tasks=1,
                    writer_properties=writer(table),
                )


def _partitions(
    connection: duckdb.DuckDBPyConnection, table: Table, delta: DeltaTable
) -> list[tuple[str, int, int, bool]]:
    """Name, number of files and bytes of each partition, and of the history whether its files have
    runs of their own, as those of a sorted day; what came late may be in small ones beside them."""
    actions = delta.get_add_actions(flatten=True)
    if not actions.num_rows:
        return []
    name = f'"partition.{table.partition}"' if table.partition else "''"
    ends = '"min.run_id", "max.run_id"' if table is HISTORY else "'', ''"
    connection.register("listed_files", actions)
    try:
        return connection.execute(
            f"""
            WITH files (name, bytes, low, high) AS (
                SELECT {name}, size_bytes, {ends} FROM listed_files
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
    """Writes a day anew, so that a run's points lie together; what does not fit into memory is
    spilled to the machine's temporary folder. False where neither has the room."""
    try:
        delta.optimize.z_order(
            ["run_id"],
            partition_filters=[(str(HISTORY.partition), "=", day)],
            target_size=FILE_BYTES,
            max_concurrent_tasks=1,
            max_spill_size=SORTING_BYTES,
            writer_properties=writer(HISTORY),
        )
    except CommitFailedError:
        raise
    except DeltaError as error:
        _logger.warning("the points of %s stay as they were appended: %s", day, error)
        return False
    return True
