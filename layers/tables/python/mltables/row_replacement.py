"""Replaces the rows of some entities in a table that is partitioned by day or month.

The caller says which files may hold published rows. A partition has full files, which are rewritten
only if a row in them is replaced, and few small ones: a publication adds one, and merges them when
there are many.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import duckdb

from mltables.snapshot import quoted
from mltables.table_commit import PACKED_MARK, TableCommit
from mltables.table_definitions import FILE_BYTES
from mltables.writable_table import ListedFile, WritableTable

FULL_FILE_ROWS: Final = 20_000
"""A file with this many rows is full: it is rewritten only if a row in it is replaced."""
FULL_FILE_BYTES: Final = FILE_BYTES // 4
"""A file with this many bytes is full, even if it has fewer rows."""
SMALL_FILES: Final = 8
"""A commit merges the small files of a partition if it has more than this many."""


class Partition(NamedTuple):
    """A partition to which a commit writes, with its files and the number of its changed rows."""

    value: str
    changed: int
    """The number of changed rows in this partition."""
    files: Sequence[ListedFile]
    """The published files of this partition."""


def replace_rows(
    connection: duckdb.DuckDBPyConnection,
    table: WritableTable,
    owner: str,
    new: str,
    maybe: str,
) -> int:
    """Replaces the published rows of the entities in the staged table ``decided`` by those of the
    staged table ``new``, in one commit. Unchanged rows are not written. Returns the number of rows
    that were written or removed.

    Args:
        owner: the columns of ``decided``, separated by commas: the ids of an entity.
        new: has all stored columns.
        maybe: an SQL condition on the statistics of a file, true for every file that may hold
            published rows of the entities.

    Raises:
        CommitFailedError: another publisher committed first.
    """
    stored, identity, partition = table.table.stored, table.table.identity, table.table.partition
    files = _holding(connection, table, owner, maybe)
    # Comparing whole rows is slow, and most entities have no published rows.
    connection.execute(
        f"""
        CREATE OR REPLACE TEMP TABLE old_rows AS
        SELECT {stored}, filename AS file FROM {table.read(files)}
        SEMI JOIN decided USING ({owner});
        CREATE OR REPLACE TEMP TABLE changed_rows AS
        SELECT {stored} FROM {new} ANTI JOIN old_rows USING ({owner})
        UNION ALL (
            SELECT {stored} FROM {new} SEMI JOIN old_rows USING ({owner})
            EXCEPT ALL SELECT {stored} FROM old_rows
        );
        CREATE OR REPLACE TEMP TABLE replaced AS
        SELECT {identity}, file FROM old_rows
        LEFT JOIN (SELECT {identity}, row({stored}) AS new_row FROM {new}) USING ({identity})
        WHERE row({stored}) IS DISTINCT FROM new_row
        """
    )
    touched = {files[path] for path in _texts(connection, "SELECT DISTINCT file FROM replaced")}
    written = dict.fromkeys((partition_of(name) for name in touched), 0)
    written |= connection.execute(
        f"SELECT {partition}, count(*) FROM changed_rows GROUP BY ALL"
    ).fetchall()
    change = table.change()
    listed = table.files()
    for value, changed in sorted(written.items()):
        _rewrite_partition(
            connection, table, change, Partition(value, changed, listed.get(value, [])), touched
        )
    change.commit()
    return _number(connection, "SELECT count(*) FROM changed_rows") + _number(
        connection, f"SELECT count(*) FROM replaced ANTI JOIN changed_rows USING ({identity})"
    )


def merge_small_files(
    connection: duckdb.DuckDBPyConnection, table: WritableTable, most_rows: int
) -> None:
    """Merges the small files of each partition that has several, in one commit, until ``most_rows``
    rows are written. The newest partitions come first. Changes no row.

    Raises:
        CommitFailedError: a publisher committed first.
    """
    connection.execute(
        f"""
        CREATE OR REPLACE TEMP TABLE changed_rows AS
        SELECT {table.table.stored} FROM {table.table.nothing};
        CREATE OR REPLACE TEMP TABLE replaced AS
        SELECT {table.table.identity}, NULL::VARCHAR AS file FROM {table.table.nothing}
        """
    )
    change = table.change()
    rows = 0
    for value, files in sorted(table.files().items(), reverse=True):
        small = [file for file in files if _is_small(file)]
        if len(small) > 1 and rows < most_rows:
            rows += sum(file.rows for file in small)
            partition = Partition(value, 0, small)
            _rewrite_partition(connection, table, change, partition, {file.name for file in small})
    change.commit()


def partition_of(name: str) -> str:
    """Returns the value of the partition, which is the name of the first folder in a file's
    name."""
    return name.partition("/")[0].partition("=")[2]


def _holding(
    connection: duckdb.DuckDBPyConnection, table: WritableTable, owner: str, maybe: str
) -> dict[str, str]:
    """Returns the files that hold rows of the entities in ``decided``: local path to name in
    Delta's log. Reads only the columns in ``owner``: other columns may be large."""
    files = table.local(table.names(maybe))
    holding = _texts(
        connection,
        f"SELECT DISTINCT filename FROM {table.read(files)} SEMI JOIN decided USING ({owner})",
    )
    return {path: files[path] for path in holding}


def _rewrite_partition(
    connection: duckdb.DuckDBPyConnection,
    table: WritableTable,
    change: TableCommit,
    partition: Partition,
    touched: set[str],
) -> None:
    """Writes a partition's changed rows into new files, together with the unchanged rows of the
    files that are replaced.

    Args:
        touched: names of files that hold rows to replace.
    """
    columns, column = table.table.names, table.table.partition
    identity, order = table.table.identity, table.table.order
    file_order = table.table.file_order
    small = {file.name for file in partition.files if _is_small(file)}
    replaced = {file.name for file in partition.files if file.name in touched}
    if len(replaced | small) > SMALL_FILES:
        replaced |= small
    names = sorted(replaced)
    change.remove(names)
    rows = f"""
        SELECT {columns} FROM (
            SELECT * RENAME (filename AS file) FROM {table.read(table.local(names))}
        ) ANTI JOIN replaced USING ({identity}, file)
        UNION ALL SELECT {columns} FROM changed_rows WHERE {column} = {quoted(partition.value)}
        """
    most = partition.changed + sum(file.rows for file in partition.files if file.name in replaced)
    if most <= FULL_FILE_ROWS:
        change.add(f"SELECT * FROM ({rows}) ORDER BY {file_order}", partition.value)
        return
    connection.execute(
        f"""
        CREATE OR REPLACE TEMP TABLE partition_rows AS
        SELECT *, (row_number() OVER (ORDER BY {order}) - 1) // {FULL_FILE_ROWS} AS number
        FROM ({rows})
        """
    )
    for number in range(
        _number(connection, "SELECT coalesce(max(number) + 1, 0) FROM partition_rows")
    ):
        part = f"SELECT {columns} FROM partition_rows WHERE number = {number} ORDER BY {file_order}"
        change.add(part, partition.value)
    connection.execute("DROP TABLE partition_rows")


def _is_small(file: ListedFile) -> bool:
    # A packed file may be small: it holds root spans only, or the last rows of a day.
    is_packed = PACKED_MARK in file.name
    return not is_packed and file.rows < FULL_FILE_ROWS and file.size < FULL_FILE_BYTES


def _texts(connection: duckdb.DuckDBPyConnection, query: str) -> list[str]:
    return [value for (value,) in connection.execute(query).fetchall()]


def _number(connection: duckdb.DuckDBPyConnection, query: str) -> int:
    row: Any = connection.execute(query).fetchall()[0]
    return int(row[0])
