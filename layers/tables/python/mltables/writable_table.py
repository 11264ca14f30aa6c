"""A system table that a step of the publisher reads and writes: finds its files by their statistics
and makes commits."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import duckdb

from mltables.column_cache import NoRoomForColumns
from mltables.lake import Lake
from mltables.snapshot import Snapshot, quoted
from mltables.table_commit import TableCommit
from mltables.table_definitions import WRITER

_UNKNOWN_ROWS: Final = 1 << 40
SEARCHED_TOGETHER: Final = 32
"""The number of files whose ids are fetched and searched at once, if the disk has space for
them."""


class ListedFile(NamedTuple):
    """A file of a system table as Delta's log lists it: its name, number of rows and size."""

    name: str
    rows: int
    size: int
    """Bytes."""


class WritableTable:
    """A system table that the publisher reads and writes: a snapshot of the Delta table, and the
    folder for its new files."""

    def __init__(
        self, connection: duckdb.DuckDBPyConnection, lake: Lake, snapshot: Snapshot, folder: Path
    ) -> None:
        self._connection, self._lake, self._folder = connection, lake, folder
        self.snapshot, self.table = snapshot, snapshot.table
        self._opened = snapshot.delta.transaction_version(WRITER)

    def source(self, where: str = "") -> str:
        """Returns SQL for a FROM clause: the rows of the table's data files that meet ``where``, a
        condition on the files' statistics (all files without it)."""
        return self.snapshot.source(self._connection, where)

    def names(self, where: str = "") -> list[str]:
        """Returns the names, as in the Delta log, of the table's files that meet ``where``."""
        return list(self.snapshot.files(self._connection, where))

    def files(self) -> dict[str, list[ListedFile]]:
        """Returns all files of this version of the system table, by the value of their partition. A
        file without statistics counts as large."""
        rows = f"coalesce(num_records, {_UNKNOWN_ROWS})"
        columns = f'path, {rows}, size_bytes, "partition.{self.table.partition}"'
        files: dict[str, list[ListedFile]] = {}
        for *fields, value in self.snapshot.listed(self._connection, columns):
            files.setdefault(value, []).append(ListedFile(*fields))
        return files

    def local(self, names: list[str]) -> dict[str, str]:
        """Fetches the table's files with these names in the Delta log, except those that have local
        copies. Returns the names by local path."""
        paths = self._lake.paths(self.table.name, self.snapshot.delta, names)
        return dict(zip(paths, names, strict=True))

    def read(self, paths: Iterable[str]) -> str:
        """Returns SQL for a FROM clause: the rows of the table's Parquet files at ``paths``, with a
        further column ``filename``."""
        listed = ", ".join(map(quoted, paths))
        if not listed:
            return f"(SELECT *, NULL::VARCHAR AS filename FROM {self.table.nothing})"
        partition = self.table.partition
        hive = f", hive_partitioning=true, hive_types={{{partition}: VARCHAR}}" if partition else ""
        return f"read_parquet([{listed}], filename=true{hive})"

    def overlapping(self, named: str, column: str) -> str:
        """Returns an SQL condition on the statistics of a Delta file: true for files that may
        contain a value of ``column`` from the smallest to the greatest value in this column of the
        staged table ``named``; "false" if the staged table has no value in it.

        Statistics may be truncated, so the greatest value is compared as a prefix.
        """
        first, last = self._connection.execute(
            f"SELECT min({column}), max({column}) FROM {named}"
        ).fetchall()[0]
        if first is None:
            return "false"
        low, high = f'"min.{column}"', f'"max.{column}"'
        return (
            f"({low} IS NULL OR {high} IS NULL OR ({low} <= {quoted(last)} AND "
            f"({high} >= {quoted(first)} OR starts_with({quoted(first)}, {high}))))"
        )

    def holding(self, named: str, column: str) -> str:
        """Returns an SQL condition on a file's statistics: true for the files that may contain one
        of the values that the staged table ``named`` has in ``column``. For values that are far
        from each other, such as random ids, it excludes more files than :meth:`overlapping`."""
        return _admits(named, [column])

    def search(self, named: str, ids: Sequence[str]) -> list[str]:
        """Returns the names, in Delta's log, of the table's files that have a row with the same
        values in the columns ``ids`` as a row of ``named``. Reads these columns of the files whose
        statistics admit such rows. If the disk has no space for the columns of so many files, reads
        fewer files at once, and deletes their columns afterwards.

        Args:
            named: a staged table in DuckDB, or a subquery in parentheses.
            ids: columns of both tables; no partition columns.

        Raises:
            NoRoomForColumns: the disk has no space for the columns of one file.
        """
        listed = self.snapshot.listed(self._connection, "path, size_bytes", _admits(named, ids))
        found: list[str] = []
        at, together = 0, SEARCHED_TOGETHER
        while at < len(listed):
            some = listed[at : at + together]
            try:
                found += self._search_in(some, named, ids)
            except NoRoomForColumns:
                self._lake.free_ids()
                if len(some) == 1:
                    raise
                together = len(some) // 2
                continue
            at += len(some)
            if together < SEARCHED_TOGETHER:
                self._lake.free_ids()
        return found

    def _search_in(
        self, files: Sequence[tuple[Any, ...]], named: str, ids: Sequence[str]
    ) -> list[str]:
        """Like :meth:`search`, in files that are given by names and sizes."""
        with tempfile.TemporaryDirectory(dir=self._folder) as folder:
            some = [(name, size) for name, size in files]
            paths = self._lake.ids(self.table.name, some, ids, Path(folder))
            names = dict(zip(paths, (name for name, _ in some), strict=True))
            held = self._connection.execute(
                "SELECT DISTINCT filename "
                f"FROM read_parquet([{', '.join(map(quoted, paths))}], filename=true) "
                f"SEMI JOIN {named} n USING ({', '.join(ids)})"
            ).fetchall()
            return [names[path] for (path,) in held]

    def misplaced(self, named: str) -> str:
        """Returns an SQL condition that selects the files that may contain rows of moved
        experiments with another workspace than their new one.

        ``named`` is a table of (experiment_id, destination), one row for each moved experiment.
        If all have the same destination, files that only contain rows of that workspace are left
        out.
        """
        destinations = self._connection.execute(
            f"SELECT DISTINCT destination FROM {named}"
        ).fetchall()
        overlapping = self.overlapping(named, "experiment_id")
        if len(destinations) != 1:
            return overlapping
        wanted = quoted(destinations[0][0])
        return (
            f'({overlapping} AND ("min.workspace_id" = {wanted} AND "max.workspace_id" = {wanted}) '
            "IS NOT TRUE)"
        )

    def change(self) -> TableCommit:
        return TableCommit(self._connection, self._lake, self.snapshot, self._folder)

    def finish_step(self) -> None:
        """Commits the next transaction number to the Delta log, without files, if this step of the
        publisher committed nothing.

        Otherwise another publisher that opened the table and read DynamoDB earlier, and commits
        later than this step, would not be refused: its older rows would stay, because this step
        deletes the landing objects (files of changes) that name these rows.

        Raises:
            CommitFailedError: another publisher committed first.
        """
        if self.snapshot.delta.transaction_version(WRITER) == self._opened:
            self.change().commit_always()


def _admits(named: str, columns: Sequence[str]) -> str:
    """Returns an SQL condition that selects the files whose statistics admit rows with the same
    values in ``columns`` as a row of the staged table ``named``."""
    admitted = " AND ".join(
        f'("min.{name}" IS NULL OR "max.{name}" IS NULL OR ("min.{name}" <= n.{name} AND '
        f'("max.{name}" >= n.{name} OR starts_with(n.{name}, "max.{name}"))))'
        for name in columns
    )
    return f"EXISTS (SELECT 1 FROM {named} n WHERE {admitted})"
