"""Packs a system table's files of days that are over: writes the rows that ``Table.first`` selects
(root spans) to files of their own.

To read the first rows of a file takes decompressing most of each column. In packed files, root
spans are apart from the spans below them: a reader that wants roots skips the other files by their
statistics, whatever the statement looks like. The name of a file says that it is packed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

import duckdb

from mltables.row_replacement import FULL_FILE_BYTES, FULL_FILE_ROWS
from mltables.table_commit import PACKED_MARK
from mltables.table_definitions import FILE_BYTES
from mltables.writable_table import WritableTable

LOOSE_FILES: Final = 8
"""A day is packed if it has more files that are neither packed nor full (``FULL_FILE_BYTES``)."""
PACKED_ROWS: Final = 60_000
"""Most rows of a packed file, a group of rows (``ROW_GROUP``). To open a file takes as long as to
read a column of 10,000 rows, so files of small rows have more of them than ``FULL_FILE_ROWS``."""
PACKED_BYTES: Final = 28 << 20
"""A packed file with more rows than ``FULL_FILE_ROWS`` has at most so many bytes before
compression: to change a row, the publisher holds all rows of a file in memory."""
FEWEST_ROWS: Final = 2000
"""The limit of rows of a packed file for rows that come first (``Table.first``) is never lower than
this, however large the rows are."""
ROWS_OF_FIRST: Final = 10
"""A row that comes first (``Table.first``) may have the bytes of so many average rows, because the
inputs and outputs of root spans are long."""


class _LooseFile(NamedTuple):
    """A file of a day that is neither packed nor full (``FULL_FILE_BYTES``)."""

    day: str
    place: tuple[str, str]
    """The least experiment id and time in it: files that follow each other are packed together."""
    name: str
    rows: int
    size: int
    """Bytes."""


def pack(
    connection: duckdb.DuckDBPyConnection, table: WritableTable, before: str, most_rows: int
) -> int:
    """Packs files of one day of a system table, in one commit: rewrites them so that the rows that
    ``Table.first`` selects are in files of their own. Chooses the latest day that has more than
    ``LOOSE_FILES`` files which are neither packed nor full. Changes no row. Returns the number of
    rows in the files that it rewrote.

    Args:
        before: days from this one on, written ``YYYY-MM-DD``, are not packed: their rows may still
            change.
        most_rows: no further file is packed when so many rows, or ``FILE_BYTES``, are. The next
            call continues.

    Raises:
        CommitFailedError: a publisher committed first.
    """
    by_day: dict[str, list[_LooseFile]] = {}
    for file in _loose_files(connection, table):
        if file.day < before:
            by_day.setdefault(file.day, []).append(file)
    many = [day for day, files in by_day.items() if len(files) > LOOSE_FILES]
    if not many:
        return 0
    chosen = list(_up_to(sorted(by_day[max(many)]), most_rows))
    rows, size = sum(file.rows for file in chosen), sum(file.size for file in chosen)
    fitting = FULL_FILE_BYTES * rows // (size * ROWS_OF_FIRST)
    most_first = min(PACKED_ROWS, FULL_FILE_ROWS, max(FEWEST_ROWS, fitting))
    _write(connection, table, max(many), [file.name for file in chosen], most_first)
    return rows


def most_rows_of(rows: int, size: int) -> int:
    """Returns how many rows a packed file has at most, besides rows that come first.

    Args:
        rows: the number of rows that are packed.
        size: their bytes before compression.
    """
    return min(PACKED_ROWS, max(FULL_FILE_ROWS, PACKED_BYTES * rows // max(size, 1)))


def _loose_files(
    connection: duckdb.DuckDBPyConnection, table: WritableTable
) -> Iterable[_LooseFile]:
    columns = (
        f'"partition.{table.table.partition}", "min.experiment_id", '
        f'CAST("min.{table.table.time}" AS VARCHAR), path, num_records, size_bytes'
    )
    for day, experiment_id, time, name, rows, size in table.snapshot.listed(connection, columns):
        is_packed = PACKED_MARK in name.rpartition("/")[2]
        if not is_packed and rows is not None and size < FULL_FILE_BYTES:
            yield _LooseFile(day, (experiment_id or "", time or ""), name, rows, size)


def _up_to(files: Iterable[_LooseFile], most_rows: int) -> Iterable[_LooseFile]:
    rows = size = 0
    for file in files:
        if rows >= most_rows or size >= FILE_BYTES:
            return
        rows, size = rows + file.rows, size + file.size
        yield file


def _write(
    connection: duckdb.DuckDBPyConnection,
    table: WritableTable,
    day: str,
    names: list[str],
    most_first: int,
) -> None:
    """Writes the rows of files of a day into packed ones. Whole rows may be large, so only their
    places are sorted at once; each new file reads the files that have rows of it.

    Args:
        most_first: most rows of a file with rows that come first.
    """
    columns, order = table.table.names, table.table.order
    files = table.local(names)
    change = table.change()
    change.remove(names)
    ((rows, size),) = connection.execute(
        "SELECT (SELECT sum(num_rows) FROM parquet_file_metadata($files))::BIGINT, "
        "(SELECT sum(total_uncompressed_size) FROM parquet_metadata($files))::BIGINT",
        {"files": list(files)},
    ).fetchall()
    connection.execute(
        f"""
        CREATE OR REPLACE TEMP TABLE places AS
        SELECT filename, file_row_number, later,
               (row_number() OVER (PARTITION BY later ORDER BY {order}) - 1)
                   // CASE WHEN later THEN {most_rows_of(rows, size)} ELSE {most_first} END AS part
        FROM (
            SELECT filename, file_row_number, {order},
                   ({table.table.first}) IS NOT TRUE AS later
            FROM {table.read(files)}
        )
        """
    )
    parts = connection.execute(
        "SELECT later, part, list(DISTINCT filename) FROM places GROUP BY ALL ORDER BY ALL"
    ).fetchall()
    for later, part, paths in parts:
        change.add(
            f"SELECT {columns} FROM (SELECT *, file_row_number FROM {table.read(sorted(paths))}) "
            f"SEMI JOIN (SELECT * FROM places WHERE later = {later} AND part = {part}) "
            f"USING (filename, file_row_number) ORDER BY {order}",
            day,
            mark=PACKED_MARK,
        )
    connection.execute("DROP TABLE places")
    change.commit()
