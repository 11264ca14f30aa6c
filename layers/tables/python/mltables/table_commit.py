"""One commit to a table: Parquet files that DuckDB writes, and the files that they replace.

The commit fails if another publisher has committed since the snapshot was opened, or if a file that
it removes no longer exists. Readers see no new file before the commit. ``table_maintenance``
deletes the files that a killed process leaves.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import duckdb
from deltalake import CommitProperties, Transaction
from deltalake.exceptions import CommitFailedError
from deltalake.transaction import AddAction, RemoveAction

from mltables.lake import Lake
from mltables.snapshot import Snapshot, quoted
from mltables.table_columns import DERIVED_MARK, Table
from mltables.table_definitions import ROW_GROUP, WRITER


class TableCommit:
    """Collects files to add to a table and files to remove from it, and commits both at once."""

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        lake: Lake,
        snapshot: Snapshot,
        folder: Path,
    ) -> None:
        self._connection, self._lake, self._snapshot = connection, lake, snapshot
        self._folder = folder
        self._actions: list[AddAction | RemoveAction] = []

    def add(self, rows: str, partition: str | None = None) -> int:
        """Writes rows to a new file and adds it to the commit. Returns the number of rows; without
        rows no file is written.

        Args:
            rows: a query for the table's columns without the partition's, in the order in which the
                rows are stored. The columns in ``Table.derived`` are added here.
            partition: the value of the table's partition column.
        """
        table = self._snapshot.table
        name = f"part-{uuid4()}.parquet"
        if table.derived:
            derived = ", ".join(f"{sql} AS {column}" for column, sql in table.derived)
            rows = f"SELECT *, {derived} FROM ({rows})"
            name = f"{DERIVED_MARK}{uuid4()}.parquet"
        local = self._folder / name
        ((_, count, size, _, columns, *_),) = self._connection.execute(
            f"COPY ({rows}) TO {quoted(str(local))} (FORMAT parquet, COMPRESSION zstd, "
            f"ROW_GROUP_SIZE {ROW_GROUP}, RETURN_STATS)"
        ).fetchall()
        if not count:
            local.unlink()
            return 0
        key = f"{table.partition}={partition}/{name}" if table.partition else name
        self._lake.store(table.name, key, local)
        self._actions.append(
            AddAction(
                path=key,
                size=size,
                partition_values={table.partition: partition} if table.partition else {},
                modification_time=int(time.time() * 1000),
                data_change=True,
                stats=json.dumps(_statistics(table, count, columns)),
            )
        )
        return int(count)

    def remove(self, files: Iterable[str]) -> None:
        """Adds the removal of files to the commit. The files are given by their names in the
        log."""
        now = int(time.time() * 1000)
        self._actions += [RemoveAction(name, True, now) for name in files]

    def commit(self) -> None:
        """Commits the added and removed files, if any. The snapshot then has the new version.
        Raises CommitFailedError if another publisher committed first."""
        if self._actions:
            self.commit_always()

    def commit_always(self) -> None:
        """Like :meth:`commit`, but commits the next transaction number also without files."""
        delta, partition = self._snapshot.delta, self._snapshot.table.partition
        number = (delta.transaction_version(WRITER) or 0) + 1
        delta.create_write_transaction(
            self._actions,
            "append",
            delta.schema(),
            partition_by=[partition] if partition else None,
            commit_properties=CommitProperties(app_transactions=[Transaction(WRITER, number)]),
        )
        delta.update_incremental()
        if delta.transaction_version(WRITER) != number:
            # The step read older rows than those that later commits of it would replace.
            raise CommitFailedError(f"another publisher committed to {self._snapshot.table.name}")
        self._lake.forget(delta)


_ENDS: Final = (("minValues", "min"), ("maxValues", "max"))


def _statistics(
    table: Table, count: int, columns: Mapping[str, Mapping[str, str]]
) -> dict[str, Any]:
    """Returns the statistics of a file in the form of Delta's log, for the columns in
    ``Table.skipping``.

    Args:
        columns: the statistics that DuckDB returned for the file when it wrote it.
    """
    statistics: dict[str, Any] = {
        "numRecords": count,
        "minValues": {},
        "maxValues": {},
        "nullCount": {},
    }
    kinds = {name: kind for name, kind, *_ in table.columns}
    for name in table.skipping.split(","):
        written = columns.get(f'"{name}"', {})
        statistics["nullCount"][name] = int(written.get("null_count", 0))
        for field, end in _ENDS:
            if end in written and written.get(f"{end}_is_exact") == "true":
                statistics[field][name] = _value(kinds[name], written[end])
    return statistics


def _value(kind: str, text: str) -> str:
    """Returns a value of DuckDB's statistics in the form of Delta's log: times as ISO 8601, texts
    unchanged."""
    if not kind.startswith("TIMESTAMP"):
        return text
    moment = datetime.fromisoformat(text.removesuffix("+00") + "+00:00")
    return moment.replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"
