"""One commit to a table: Parquet files that DuckDB writes, and the files whose place they take.

The commit is refused when another publisher has committed since the snapshot was opened, and when
a file that it removes is no longer there. Until the commit no reader sees a new file; what a killed
process leaves is removed by ``upkeep``.
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
from mltables.tables import ROW_GROUP, WRITER, Table


class Change:
    """Files to add to a table and files to remove from it, in one commit."""

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
        """Writes a file, unless there are no rows; returns their number.

        Args:
            rows: a query for the columns of the table, the partition's left out, in the order in
                which they are to be stored.
            partition: the value of the table's partition column.
        """
        table = self._snapshot.table
        name = f"part-{uuid4()}.parquet"
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
        """Removes files, by their names in the log."""
        now = int(time.time() * 1000)
        self._actions += [RemoveAction(name, True, now) for name in files]

    def commit(self) -> None:
        """Commits what was added and removed, if anything; the snapshot is then that version.

        Raises:
            CommitFailedError: another writer came first.
        """
        if not self._actions:
            return
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
            # What the step has read is older than what it would replace from now on.
            raise CommitFailedError(f"another publisher committed to {self._snapshot.table.name}")
        self._lake.forget(delta)


_ENDS: Final = (("minValues", "min"), ("maxValues", "max"))


def _statistics(
    table: Table, count: int, columns: Mapping[str, Mapping[str, str]]
) -> dict[str, Any]:
    """The statistics of a file as Delta's log has them, of the columns by which files are skipped.

    Args:
        columns: what DuckDB returns for a file that it has written.
    """
    found: dict[str, Any] = {"numRecords": count, "minValues": {}, "maxValues": {}, "nullCount": {}}
    kinds = {name: kind for name, kind, *_ in table.columns}
    for name in table.skipping.split(","):
        written = columns.get(f'"{name}"', {})
        found["nullCount"][name] = int(written.get("null_count", 0))
        for place, end in _ENDS:
            if end in written and written.get(f"{end}_is_exact") == "true":
                found[place][name] = _value(kinds[name], written[end])
    return found


def _value(kind: str, text: str) -> str:
    """A text, or a time in ISO 8601."""
    if not kind.startswith("TIMESTAMP"):
        return text
    moment = datetime.fromisoformat(text.removesuffix("+00") + "+00:00")
    return moment.replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"
