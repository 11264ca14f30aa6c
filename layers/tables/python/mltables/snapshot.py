"""A table as it was at one moment, for DuckDB; writes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import duckdb
from deltalake import DeltaTable

from mltables.lake import Lake
from mltables.tables import Table

_LISTED: Final = "listed_files"


class Snapshot:
    """A version of a table. What it reads never changes, whoever writes meanwhile."""

    def __init__(self, lake: Lake, table: Table, delta: DeltaTable) -> None:
        self._lake, self.table, self.delta = lake, table, delta

    def source(self, connection: duckdb.DuckDBPyConnection, where: str = "") -> str:
        """What a FROM takes: the files that may hold matching rows; their columns are those of the
        table, and the partition's.

        Args:
            where: a condition on ``path``, ``"min.…"`` and ``"max.…"`` of the columns with
                statistics, and ``"partition.…"``.
        """
        files = self.files(connection, where)
        if not files:
            return self.table.nothing
        listed = ", ".join(quoted(path) for path in self._lake.paths(self.delta, files))
        partition = self.table.partition
        hive = f", hive_partitioning=true, hive_types={{{partition}: VARCHAR}}" if partition else ""
        return f"read_parquet([{listed}]{hive})"

    def files(self, connection: duckdb.DuckDBPyConnection, where: str = "") -> Sequence[str]:
        """The names of files, as the log has them."""
        actions = self.delta.get_add_actions(flatten=True)
        if not actions.num_rows:
            return []
        connection.register(_LISTED, actions)
        try:
            condition = f"WHERE {where}" if where else ""
            found = connection.execute(
                f"SELECT path FROM {_LISTED} {condition} ORDER BY path"
            ).fetchall()
        finally:
            connection.unregister(_LISTED)
        return [path for (path,) in found]


def quoted(text: str) -> str:
    """A literal of SQL."""
    return "'" + text.replace("'", "''") + "'"
