"""One commit to a table: Parquet files that DuckDB writes, and the files that they replace.

The commit is the entry of the next version in Delta's log, which this file writes itself: Delta's
library would list the log three times. It fails if another writer has committed since the snapshot
was opened. Readers see new files only after the commit. ``table_maintenance`` deletes files that a
killed process wrote and did not commit.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import duckdb
from deltalake.exceptions import CommitFailedError

from mltables.lake import Lake
from mltables.snapshot import Snapshot, quoted
from mltables.table_columns import DERIVED_MARK, Table
from mltables.table_definitions import CHECKPOINT_VERSIONS, ROW_GROUP, WRITER

PACKED_MARK: Final = "packed-"
"""Is part of the names of packed files (``packed_files.py``)."""
PIECE_MARK: Final = "piece-"
"""Is part of the names of files that have few rows because these are large
(``row_replacement.py``)."""

Action = dict[str, Any]
"""An action of Delta's log, as JSON."""


class TableCommit:
    """Collects files to add to a Delta table and files to remove from it; commits both at once."""

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        lake: Lake,
        snapshot: Snapshot,
        folder: Path,
    ) -> None:
        self._connection, self._lake, self._snapshot = connection, lake, snapshot
        self._folder = folder
        self._actions: list[Action] = []

    def add(self, rows: str, partition: str | None = None, *, mark: str = "") -> int:
        """Writes rows to a new Parquet file and adds the file to the commit. Returns the number of
        rows; without rows no file is written.

        Args:
            rows: a SELECT of the table's columns except the partition column, in the order in which
                the rows are stored. The columns in ``Table.derived`` are added here.
            partition: the value of the table's partition column.
            mark: is part of the file's name, such as :data:`PACKED_MARK`.
        """
        table = self._snapshot.table
        unique = f"{mark}{uuid4()}.parquet"
        name = f"part-{unique}"
        if table.derived:
            derived = ", ".join(f"{sql} AS {column}" for column, sql in table.derived)
            rows = f"SELECT *, {derived} FROM ({rows})"
            name = f"{DERIVED_MARK}{unique}"
        local = self._folder / name
        ((_, count, size, _, columns, *_),) = self._connection.execute(
            f"COPY ({rows}) TO {quoted(str(local))} (FORMAT parquet, COMPRESSION zstd, "
            f"ROW_GROUP_SIZE {ROW_GROUP}, PARQUET_VERSION {table.parquet}, RETURN_STATS)"
        ).fetchall()
        if not count:
            local.unlink()
            return 0
        key = f"{table.partition}={partition}/{name}" if table.partition else name
        self._lake.store(table.name, key, local)
        self._actions.append(
            {
                "add": {
                    "path": key,
                    "partitionValues": {table.partition: partition} if table.partition else {},
                    "size": size,
                    "modificationTime": _now(),
                    "dataChange": True,
                    "stats": json.dumps(_statistics(table, count, columns)),
                }
            }
        )
        return int(count)

    def remove(self, files: Iterable[str]) -> None:
        """Adds the removal of files to the commit. The files are given by their names in Delta's
        log."""
        now = _now()
        self._actions += [
            {"remove": {"path": name, "deletionTimestamp": now, "dataChange": True}}
            for name in files
        ]

    @contextmanager
    def attempt(self) -> Iterator[None]:
        """Context manager: if DuckDB lacks memory in the block, drops all files and removals that
        the block added to this commit, and raises the error. The dropped files are already stored
        but not committed; ``table_maintenance`` deletes them."""
        before = len(self._actions)
        try:
            yield
        except duckdb.OutOfMemoryException:
            del self._actions[before:]
            raise

    def commit(self) -> None:
        """Commits the added and removed files, if any. The snapshot then has the new version.
        Raises CommitFailedError if another publisher committed first."""
        if self._actions:
            self.commit_always()

    def commit_always(self) -> None:
        """Commits the added and removed files; without any, a commit that only raises the
        transaction number. Raises CommitFailedError like :meth:`commit`."""
        delta, table = self._snapshot.delta, self._snapshot.table.name
        version = delta.version() + 1
        entry = _entry(self._actions, (delta.transaction_version(WRITER) or 0) + 1)
        is_first = self._lake.commit(table, version, entry)
        if is_first:
            delta.update_incremental()
        if not is_first or delta.version() != version:
            # The step has read rows that are outdated now, so it must not replace any.
            raise CommitFailedError(f"another writer committed to {table}")
        if version % CHECKPOINT_VERSIONS == 0:
            self._lake.checkpoint(table, delta)
        self._lake.forget(table, delta)


def _entry(actions: list[Action], number: int) -> bytes:
    """Returns the entry of Delta's log for a commit: a line of JSON for each action.

    Args:
        number: the number of the publisher's transaction.
    """
    now = _now()
    lines: list[Action] = [
        {
            "commitInfo": {
                "timestamp": now,
                "operation": "WRITE",
                "operationParameters": {"mode": "Append"},
                "engineInfo": "mlflow-serverless",
            }
        },
        {"txn": {"appId": WRITER, "version": number, "lastUpdated": now}},
        *actions,
    ]
    return "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines).encode()


def _now() -> int:
    """Returns the time in milliseconds since 1970."""
    return int(time.time() * 1000)


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
        if "null_count" in written:  # a reader that misses the number skips no file
            statistics["nullCount"][name] = int(written["null_count"])
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
