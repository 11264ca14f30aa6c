"""The rows that a caller may read, as files that hold nothing else.

The engine that runs a caller's SQL is given these files alone. A condition inside that engine would
be no barrier: it may evaluate the caller's expressions on a row before the condition drops the row,
and a failed cast, a division or the time taken would tell what the row holds.

What a restricted caller's engine gets depends on the rows that the caller may read and on nothing
else: they are sorted, so that neither their order nor the bytes of the files tell how rows of
others lie between them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from mltables.database import connected
from mltables.lake import Lake
from mltables.reads import Columns
from mltables.snapshot import quoted
from mltables.tables import EXPERIMENTS, RUNS, TABLES, existing

MEMORY: Final = "450MB"
"""While rows are chosen; what needs more spills to the folder."""

_ORDER: Final = {RUNS.name: "run_id", EXPERIMENTS.name: "experiment_id"}
"""By what tables with one row for each id are sorted; the history by all columns that are read."""
_FIRST: Final = ("experiment_id", "run_id", "metric_name", "metric_step", "metric_time")


class Source(NamedTuple):
    """What a query reads of a table: columns, and the files (none where there are no rows)."""

    table: str
    columns: tuple[str, ...]
    files: tuple[str, ...]

    @classmethod
    def of_json(cls, told: Sequence[Any]) -> Source:
        table, columns, files = told
        return cls(table, tuple(columns), tuple(files))

    def relation(self) -> str:
        """What a FROM takes for the rows, in DuckDB."""
        if not self.files:
            (table,) = (one for one in TABLES if one.name == self.table)
            return table.nothing
        listed = ", ".join(map(quoted, self.files))
        # Else names of folders would be columns.
        return f"read_parquet([{listed}], hive_partitioning=false)"


def sources(
    reads: Mapping[str, Columns], workspaces: Sequence[str] | None, folder: Path
) -> list[Source]:
    """
    Args:
        workspaces: whose rows the caller may read; None for all.
        folder: where the rows of a caller who may not read all are written.
    """
    lake = Lake()
    found = []
    for table in TABLES:
        if table.name not in reads:
            continue
        read = reads[table.name]
        # A query that counts rows names no column.
        columns = tuple(name for name, *_ in table.columns if name in read) or ("account_id",)
        delta = existing(lake, table)
        files: Sequence[str] = ()
        if delta is not None:
            names = sorted(delta.get_add_actions(flatten=True).column("path").to_pylist())
            files = lake.paths(delta, names)
        source = Source(table.name, columns, tuple(files))
        found.append(source if workspaces is None else _chosen(source, workspaces, folder))
    return found


def _chosen(source: Source, workspaces: Sequence[str], folder: Path) -> Source:
    """The rows of some workspaces, in a file of their own; also where there are none, so that an
    empty table is not told from one in which all rows are of others."""
    target = str(folder / f"{source.table}.parquet")
    allowed = ", ".join(map(quoted, workspaces)) or "NULL"
    # An engine of its own, which is gone before the caller's begins.
    with connected(folder, MEMORY) as connection:
        connection.execute("SET preserve_insertion_order = true")
        connection.execute(
            f"COPY (SELECT {', '.join(source.columns)} FROM {source.relation()} "
            f"WHERE workspace_id IN ({allowed}) ORDER BY {_order(source)}) "
            f"TO {quoted(target)} (FORMAT parquet)"
        )
    return source._replace(files=(target,))


def _order(source: Source) -> str:
    if source.table in _ORDER:
        return _ORDER[source.table]
    first = [name for name in _FIRST if name in source.columns]
    rest = [name for name in source.columns if name not in first]
    # 0.0 equals -0.0, and is another text.
    sign = ["signbit(metric_value)"] if "metric_value" in source.columns else []
    return ", ".join([*first, *rest, *sign])
