"""Keeps the tables quick to read: merges the small files of the history, sorts its days that are
over, and removes files that no reader has needed for a day. Rows stay what they are.

The publisher itself keeps the files of the other tables few (``run_files``, ``step``)."""

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
from mltables.tables import FILE_BYTES, HISTORY, TABLES, opened, writer

_logger = logging.getLogger("mlcore.system_tables")

SMALL_FILES: Final = 8
"""So many files of a day are merged."""

SORTED_BYTES: Final = 384 << 20
"""A day of more, some ten million points, is not sorted as a whole: what was appended is, each by
itself."""

SORTING_BYTES: Final = 192 << 20
"""What a day may take of memory while it is sorted."""

SMALL: Final = 8
"""A file is small beside others when the largest of its day has more than so many times its
bytes."""

KEPT_HOURS: Final = 24
"""A reader that opened a table so long ago still finds its files."""


def keep_up(*, today: str = "9999") -> int:
    """Files that were removed. What another writer got in the way of is left for the next time.

    Args:
        today: the first day that may still get points, as ``YYYY-MM-DD``; days before are sorted.
    """
    removed = 0
    with Lake() as lake:
        for table in TABLES:
            delta = opened(lake, table)
            if table is HISTORY:
                try:
                    _merge_small(lake, delta, today)
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


def _merge_small(lake: Lake, delta: DeltaTable, today: str) -> None:
    with (
        tempfile.TemporaryDirectory(dir=lake.temporary) as folder,
        connected(Path(folder)) as connection,
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
                    writer_properties=writer(HISTORY),
                )


def _days(
    connection: duckdb.DuckDBPyConnection, delta: DeltaTable
) -> list[tuple[str, int, int, bool]]:
    """Name, number of files and bytes of each day, and whether its files have runs of their own, as
    those of a sorted day; what came late may be in small ones beside them."""
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
