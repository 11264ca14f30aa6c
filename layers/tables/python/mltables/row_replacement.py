"""Replaces the rows of some entities in a system table that is partitioned by day or month.

The caller says which files may hold published rows. A partition has full files, which are rewritten
only if a row in them is replaced, and few small ones: a publication adds one, and merges them when
there are many.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import duckdb

from mltables.snapshot import quoted
from mltables.table_columns import STRING
from mltables.table_commit import PACKED_MARK, PIECE_MARK, TableCommit
from mltables.table_definitions import FILE_BYTES
from mltables.writable_table import ListedFile, WritableTable

_logger = logging.getLogger("mlcore.system_tables")

FULL_FILE_ROWS: Final = 20_000
"""A file with this many rows is full: it is rewritten only if a row in it is replaced."""
FULL_FILE_BYTES: Final = FILE_BYTES // 4
"""A file with this many bytes is full, even if it has fewer rows."""
PIECE_BYTES: Final = 24 << 20
"""If the rows of a partition do not fit into memory, files are written that hold about so many
bytes of rows, before compression. DuckDB handles up to 2,048 rows at once, so that it cannot sort
large rows in little memory, though it spills."""
SMALL_FILES: Final = 8
"""A commit merges the small files of a partition if it has more than this many."""


class Partition(NamedTuple):
    """A Delta partition to which a commit writes: its files and the number of changed rows."""

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
    staged table ``new``, in one commit. Unchanged rows are written again only if their file is
    replaced, because it has a row to replace or is merged with others. Returns the number of rows
    that were added, changed or removed.

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
            names = {file.name for file in small}
            try:
                with change.attempt():
                    _rewrite_partition(connection, table, change, partition, names)
            except duckdb.OutOfMemoryException as error:
                _logger.warning("files of %s stay as they are: %s", value, error)
    change.commit()


def partition_of(name: str) -> str:
    """Returns the value of a system table's partition from a file's name, whose first folder is
    ``column=value``."""
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
    small = {file.name for file in partition.files if _is_small(file)}
    replaced = {file.name for file in partition.files if file.name in touched}
    if small - replaced and len(replaced | small) > SMALL_FILES:
        try:
            with change.attempt():
                _rewrite_files(connection, table, change, partition, replaced | small)
        except duckdb.OutOfMemoryException as error:
            # Those that need not be replaced can stay.
            _logger.warning("files of %s are not merged: %s", partition.value, error)
        else:
            return
    _rewrite_files(connection, table, change, partition, replaced)


def _rewrite_files(
    connection: duckdb.DuckDBPyConnection,
    table: WritableTable,
    change: TableCommit,
    partition: Partition,
    replaced: set[str],
) -> None:
    """Writes a partition's changed rows into new files, together with the unchanged rows of these
    files, which are removed."""
    columns, identity = table.table.names, table.table.identity
    names = sorted(replaced)
    change.remove(names)
    rows = f"""(
        SELECT {columns}, file FROM (
            SELECT * RENAME (filename AS file) FROM {table.read(table.local(names))}
        ) ANTI JOIN replaced USING ({identity}, file)
        UNION ALL
        SELECT {columns}, '' AS file FROM changed_rows
        WHERE {table.table.partition} = {quoted(partition.value)}
        )"""
    most = partition.changed + sum(file.rows for file in partition.files if file.name in replaced)
    try:
        with change.attempt():
            if most <= FULL_FILE_ROWS:
                query = f"SELECT {columns} FROM {rows} ORDER BY {table.table.file_order}"
                change.add(query, partition.value)
            else:
                _write_full_files(connection, table, change, partition.value, rows)
    except duckdb.OutOfMemoryException:
        _write_pieces(connection, table, change, partition.value, rows)


def _write_full_files(
    connection: duckdb.DuckDBPyConnection,
    table: WritableTable,
    change: TableCommit,
    partition: str,
    rows: str,
) -> None:
    """Writes the rows of a partition to files of :data:`FULL_FILE_ROWS`, in the table's order."""
    columns = table.table.names
    connection.execute(
        f"""
        CREATE OR REPLACE TEMP TABLE partition_rows AS
        SELECT {columns},
               (row_number() OVER (ORDER BY {table.table.order}) - 1) // {FULL_FILE_ROWS} AS number
        FROM {rows}
        """
    )
    for number in _numbers(connection, "partition_rows"):
        part = f"SELECT {columns} FROM partition_rows WHERE number = {number}"
        change.add(f"{part} ORDER BY {table.table.file_order}", partition)
    connection.execute("DROP TABLE partition_rows")


def _write_pieces(
    connection: duckdb.DuckDBPyConnection,
    table: WritableTable,
    change: TableCommit,
    partition: str,
    rows: str,
) -> None:
    """Writes the rows of a partition to files of :data:`PIECE_BYTES` and at most
    :data:`FULL_FILE_ROWS`, in the table's order. Sorts only the rows' ids, and reads the rows once
    for each file. All but the last file count as full."""
    columns, identity, order = table.table.names, table.table.identity, table.table.order
    sizes = [_size_of(name, kind) for name, kind, *_ in table.table.columns]
    # The file holds these texts a second time.
    sizes += [_size_of(f"({sql})", STRING) for _, sql in table.table.derived]
    size = " + ".join(sizes)
    connection.execute(
        f"""
        DROP TABLE IF EXISTS partition_rows;
        CREATE OR REPLACE TEMP TABLE pieces AS
        SELECT {identity}, file, dense_rank() OVER (ORDER BY full_files, full_pieces) AS number
        FROM (
            SELECT {identity}, file,
                   (row_number() OVER places - 1) // {FULL_FILE_ROWS} AS full_files,
                   (sum(size) OVER places - size) // {PIECE_BYTES} AS full_pieces
            FROM (SELECT {identity}, file, row({order}) AS place, {size} AS size FROM {rows})
            WINDOW places AS (ORDER BY place, file ROWS UNBOUNDED PRECEDING)
        )
        """
    )
    numbers = _numbers(connection, "pieces")
    for number in numbers:
        part = f"SELECT {identity}, file FROM pieces WHERE number = {number}"
        change.add(
            f"SELECT {columns} FROM {rows} SEMI JOIN ({part}) USING ({identity}, file) "
            f"ORDER BY {table.table.file_order}",
            partition,
            mark="" if number == numbers[-1] else PIECE_MARK,
        )
    connection.execute("DROP TABLE pieces")


def _size_of(column: str, kind: str) -> str:
    """Returns an SQL expression for the approximate bytes of a column's value. It copies no large
    text."""
    if kind.startswith("MAP"):
        texts = f"list_sum([strlen(text::VARCHAR) FOR text IN map_values({column})])"
        return f"coalesce({texts}, 0)::BIGINT"
    return f"coalesce(strlen({column}::VARCHAR), 0)"


def _is_small(file: ListedFile) -> bool:
    # A packed file may be small: it holds root spans only, or the last rows of a day. The rows of a
    # piece are few, but large.
    is_full = PACKED_MARK in file.name or PIECE_MARK in file.name
    return not is_full and file.rows < FULL_FILE_ROWS and file.size < FULL_FILE_BYTES


def _numbers(connection: duckdb.DuckDBPyConnection, table: str) -> list[int]:
    """Returns the numbers of the files to write that the rows of a temporary table name."""
    rows = connection.execute(f"SELECT DISTINCT number FROM {table} ORDER BY 1").fetchall()
    return [number for (number,) in rows]


def _texts(connection: duckdb.DuckDBPyConnection, query: str) -> list[str]:
    return [value for (value,) in connection.execute(query).fetchall()]


def _number(connection: duckdb.DuckDBPyConnection, query: str) -> int:
    row: Any = connection.execute(query).fetchall()[0]
    return int(row[0])
