"""A table that a step of the publisher reads and writes: its files, which of them may hold what,
and the next commit."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import duckdb

from mltables.change import Change
from mltables.lake import Lake
from mltables.snapshot import Snapshot, quoted


class Target:
    """A snapshot of a table, and where files are made for it."""

    def __init__(
        self, connection: duckdb.DuckDBPyConnection, lake: Lake, snapshot: Snapshot, folder: Path
    ) -> None:
        self._connection, self._lake, self._folder = connection, lake, folder
        self.snapshot, self.table = snapshot, snapshot.table

    def source(self, where: str = "") -> str:
        """What a FROM takes: rows of the files that match (:meth:`Snapshot.source`)."""
        return self.snapshot.source(self._connection, where)

    def names(self, where: str = "") -> list[str]:
        """The names in the log of the files that match."""
        return list(self.snapshot.files(self._connection, where))

    def local(self, names: list[str]) -> dict[str, str]:
        """Where this machine reads files, each with its name in the log."""
        return dict(zip(self._lake.paths(self.snapshot.delta, names), names, strict=True))

    def read(self, paths: Iterable[str]) -> str:
        """What a FROM takes: rows of files, with a column ``filename``."""
        listed = ", ".join(map(quoted, paths))
        if not listed:
            return f"(SELECT *, NULL::VARCHAR AS filename FROM {self.table.nothing})"
        partition = self.table.partition
        hive = f", hive_partitioning=true, hive_types={{{partition}: VARCHAR}}" if partition else ""
        return f"read_parquet([{listed}], filename=true{hive})"

    def overlapping(self, named: str, column: str) -> str:
        """A condition on files: those that may hold rows with a value that a column of a staged
        table has.

        Statistics may be cut short, so that the greatest value is compared by its beginning.
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

    def misplaced(self, named: str) -> str:
        """A condition on files: those that may hold rows of the experiments in a staged table with
        another workspace than ``destination`` there. A file whose rows are all in the one
        destination need not be read."""
        destinations = self._connection.execute(
            f"SELECT DISTINCT destination FROM {named}"
        ).fetchall()
        overlapping = self.overlapping(named, "experiment_id")
        if len(destinations) != 1:
            return overlapping
        place = quoted(destinations[0][0])
        return (
            f'({overlapping} AND ("min.workspace_id" = {place} AND "max.workspace_id" = {place}) '
            "IS NOT TRUE)"
        )

    def change(self) -> Change:
        return Change(self._connection, self._lake, self.snapshot, self._folder)
