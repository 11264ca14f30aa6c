"""Replaces the rows of some traces in a table that is partitioned by day.

Ids of traces are random, so files are not found by them: the caller names the days that may hold
published rows. A day has full files, which are rewritten only if a row in them is replaced, and few
small ones: a publication adds one, and merges them when there are many.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final, NamedTuple

import duckdb

from mltables.snapshot import quoted
from mltables.table_commit import TableCommit
from mltables.table_definitions import FILE_BYTES
from mltables.writable_table import WritableTable

FULL_FILE_ROWS: Final = 20_000
"""A file with this many rows is full."""
FULL_FILE_BYTES: Final = FILE_BYTES // 4
"""A file of this size is full, even if it has fewer rows."""
SMALL_FILES: Final = 8
"""The small files of a day are merged when there are more."""


class Layout(NamedTuple):
    """The columns that identify a row, and those by which the rows of a file are sorted; separated
    by commas."""

    identity: str
    order: str


def replace_rows(
    connection: duckdb.DuckDBPyConnection,
    table: WritableTable,
    layout: Layout,
    new: str,
    days: Collection[str] | None,
) -> int:
    """Replaces the published rows of the traces in ``decided`` (experiment_id, trace_id) by those
    of the staged table ``new``, in one commit. Unchanged rows are not written. Returns the number
    of rows that were written or removed.

    A trace whose time changed more than once may have two rows for a while: if the record of its
    last change arrives before the others, the first day is not known yet. The records that follow
    name it, and the old row is removed then.

    Args:
        new: has all stored columns.
        days: the days that may hold published rows of these traces; None for all.

    Raises:
        CommitFailedError: another publisher committed first.
    """
    stored, identity, partition = table.table.stored, layout.identity, table.table.partition
    files = table.local(table.names(_maybe(table, days)))
    connection.execute(
        f"""
        CREATE OR REPLACE TEMP TABLE old_rows AS
        SELECT {stored}, filename AS file FROM {table.read(files)}
        SEMI JOIN decided USING (experiment_id, trace_id);
        CREATE OR REPLACE TEMP TABLE changed_rows AS
        SELECT {stored} FROM {new} EXCEPT ALL SELECT {stored} FROM old_rows;
        CREATE OR REPLACE TEMP TABLE replaced AS
        SELECT {identity}, file FROM old_rows
        LEFT JOIN (SELECT {identity}, row({stored}) AS new_row FROM {new}) USING ({identity})
        WHERE row({stored}) IS DISTINCT FROM new_row
        """
    )
    touched = {files[path] for path in _texts(connection, "SELECT DISTINCT file FROM replaced")}
    days_written = {day_of(name) for name in touched}
    days_written.update(_texts(connection, f"SELECT DISTINCT {partition} FROM changed_rows"))
    change = table.change()
    for day in sorted(days_written):
        _rewrite_day(connection, table, layout, change, day, touched)
    change.commit()
    return _number(connection, "SELECT count(*) FROM changed_rows") + _number(
        connection, f"SELECT count(*) FROM replaced ANTI JOIN changed_rows USING ({identity})"
    )


def day_of(name: str) -> str:
    """Returns the value of the partition, which is the name of the first folder in a file's
    name."""
    return name.partition("/")[0].partition("=")[2]


def _maybe(table: WritableTable, days: Collection[str] | None) -> str:
    """Returns a condition on the statistics of files. All files that may hold rows of the traces in
    ``decided`` meet it."""
    maybe = table.overlapping("decided", "experiment_id")
    if days is None:
        return maybe
    listed = ", ".join(map(quoted, sorted(days))) or "NULL"
    return f'{maybe} AND "partition.{table.table.partition}" IN ({listed})'


def _rewrite_day(
    connection: duckdb.DuckDBPyConnection,
    table: WritableTable,
    layout: Layout,
    change: TableCommit,
    day: str,
    touched: set[str],
) -> None:
    """Writes a day's changed rows into new files, together with the rows that stay of the files
    that they replace.

    Args:
        touched: names of files that hold rows to replace.
    """
    columns, partition = table.table.names, table.table.partition
    of_day = f'"partition.{partition}" = {quoted(day)}'
    small = table.names(
        f"{of_day} AND num_records < {FULL_FILE_ROWS} AND size_bytes < {FULL_FILE_BYTES}"
    )
    replaced = touched.intersection(table.names(of_day))
    if len(replaced.union(small)) > SMALL_FILES:
        replaced.update(small)
    names = sorted(replaced)
    change.remove(names)
    connection.execute(
        f"""
        CREATE OR REPLACE TEMP TABLE day_rows AS
        SELECT *, (row_number() OVER (ORDER BY {layout.order}) - 1) // {FULL_FILE_ROWS} AS number
        FROM (
            SELECT {columns} FROM (
                SELECT * RENAME (filename AS file) FROM {table.read(table.local(names))}
            ) ANTI JOIN replaced USING ({layout.identity}, file)
            UNION ALL SELECT {columns} FROM changed_rows WHERE {partition} = {quoted(day)}
        )
        """
    )
    for number in range(_number(connection, "SELECT coalesce(max(number) + 1, 0) FROM day_rows")):
        rows = f"SELECT {columns} FROM day_rows WHERE number = {number} ORDER BY {layout.order}"
        change.add(rows, day)
    connection.execute("DROP TABLE day_rows")


def _texts(connection: duckdb.DuckDBPyConnection, query: str) -> list[str]:
    return [value for (value,) in connection.execute(query).fetchall()]


def _number(connection: duckdb.DuckDBPyConnection, query: str) -> int:
    row: Any = connection.execute(query).fetchall()[0]
    return int(row[0])
