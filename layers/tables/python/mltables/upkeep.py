"""Keeps the tables quick to read: merges small files, sorts days that are over, and removes files
that no reader has needed for a day. Rows stay what they are."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Final

import duckdb
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import CommitFailedError

from mltables.database import connected
from mltables.lake import Lake
from mltables.snapshot import Snapshot, quoted
from mltables.step import next_commit
from mltables.tables import FILE_BYTES, HISTORY, TABLES, Table, opened, writer

SMALL_FILES: Final = 8
"""So many files of a partition are merged."""

SORTED_BYTES: Final = 1 << 30
"""A day of more is not sorted as a whole: its files are, each by itself."""

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
        for partition, files, size in _partitions(connection, table, delta):
            over = table is HISTORY and partition < today and size <= SORTED_BYTES
            if over and files > size // FILE_BYTES + 1:
                _sort(lake, delta, connection, partition)
            elif files >= max(SMALL_FILES, 2 * (size // FILE_BYTES + 1)):
                filters = [(table.partition, "=", partition)] if table.partition else None
                delta.optimize.compact(
                    partition_filters=filters,
                    target_size=FILE_BYTES,
                    max_concurrent_tasks=1,
                    writer_properties=writer(table),
                )


def _partitions(
    connection: duckdb.DuckDBPyConnection, table: Table, delta: DeltaTable
) -> list[tuple[str, int, int]]:
    """Name, number of files and bytes of each partition."""
    actions = delta.get_add_actions(flatten=True)
    if not actions.num_rows:
        return []
    name = f'"partition.{table.partition}"' if table.partition else "''"
    connection.register("listed_files", actions)
    try:
        return connection.execute(
            f"SELECT {name}, count(*), sum(size_bytes)::BIGINT FROM listed_files "
            "GROUP BY 1 ORDER BY 1"
        ).fetchall()
    finally:
        connection.unregister("listed_files")


def _sort(lake: Lake, delta: DeltaTable, connection: duckdb.DuckDBPyConnection, day: str) -> None:
    """Writes a day anew, so that a run's points lie together."""
    source = Snapshot(lake, HISTORY, delta).source(
        connection, f'"partition.{HISTORY.partition}" = {quoted(day)}'
    )
    rows = connection.sql(
        f"SELECT {HISTORY.stored} FROM {source} "
        "ORDER BY experiment_id, run_id, metric_name, metric_step, metric_time"
    )
    write_deltalake(
        delta,
        rows,
        mode="overwrite",
        predicate=f"{HISTORY.partition} = {quoted(day)}",
        target_file_size=FILE_BYTES,
        writer_properties=writer(HISTORY),
        commit_properties=next_commit(delta),
    )
