"""Reads one version of a Delta table with DuckDB. It writes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import duckdb
from deltalake import DeltaTable

from mltables.lake import Lake
from mltables.table_columns import Table

_LISTED: Final = "listed_files"


class Snapshot:
    """One version of a Delta table. The rows that it returns are not affected by later commits."""

    def __init__(self, lake: Lake, table: Table, delta: DeltaTable) -> None:
        self._lake, self.table, self.delta = lake, table, delta

    def source(self, connection: duckdb.DuckDBPyConnection, where: str = "") -> str:
        """Returns SQL to put after FROM, which reads all rows of the files that meet ``where``,
        with the table's columns and its partition column.

        Args:
            where: an SQL condition on a file: its ``path``, ``"min.<column>"`` and
                ``"max.<column>"`` (columns with statistics), ``"partition.<column>"``; empty for
                all files.
        """
        files = self.files(connection, where)
        if not files:
            return self.table.nothing
        listed = ", ".join(
            quoted(path) for path in self._lake.paths(self.table.name, self.delta, files)
        )
        partition = self.table.partition
        hive = f", hive_partitioning=true, hive_types={{{partition}: VARCHAR}}" if partition else ""
        return f"read_parquet([{listed}]{hive})"

    def files(self, connection: duckdb.DuckDBPyConnection, where: str = "") -> Sequence[str]:
        """Returns the names, as in the Delta log, of the table's files that match ``where``."""
        return [path for (path,) in self.listed(connection, "path", where)]

    def listed(
        self, connection: duckdb.DuckDBPyConnection, columns: str, where: str = ""
    ) -> list[tuple[Any, ...]]:
        """Returns columns of Delta's list of the table's files: one row for each file that matches
        ``where``, sorted by the files' names."""
        actions = self.delta.get_add_actions(flatten=True)
        if not actions.num_rows:
            return []
        connection.register(_LISTED, actions)
        try:
            condition = f"WHERE {where}" if where else ""
            return connection.execute(
                f"SELECT {columns} FROM {_LISTED} {condition} ORDER BY path"
            ).fetchall()
        finally:
            connection.unregister(_LISTED)


def quoted(text: str) -> str:
    """Returns a text as an SQL literal."""
    return "'" + text.replace("'", "''") + "'"
