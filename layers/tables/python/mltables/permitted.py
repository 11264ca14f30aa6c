"""The rows that a caller may read, as files that hold nothing else.

The engine that runs a caller's SQL is given these files alone. A condition inside that engine would
be no barrier: it may evaluate the caller's expressions on a row before the condition drops the row,
and a failed cast, a division or the time taken would tell what the row holds.

What a restricted caller's engine gets depends on the rows that the caller may read and on nothing
else: they are sorted, so that neither their order nor the bytes of the files tell how rows of
others lie between them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from mltables.bounds import Bounds, condition, may_hold, partition_may_hold
from mltables.database import connected
from mltables.lake import Lake
from mltables.reads import Columns
from mltables.snapshot import quoted
from mltables.tables import EXPERIMENTS, RUNS, TABLES, Table, existing

MEMORY: Final = "450MB"
"""While rows are chosen; what needs more spills to the folder."""

_ORDER: Final = {RUNS.name: ("run_id",), EXPERIMENTS.name: ("experiment_id",)}
"""By what tables with one row for each id are sorted; the history by all columns that are read."""
_FIRST: Final = ("experiment_id", "run_id", "metric_name", "metric_step", "metric_time")

_NEVER_REACHED: Final = 2**63 - 1


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
    reads: Mapping[str, Columns],
    workspaces: Sequence[str] | None,
    folder: Path,
    wanted: Mapping[str, Bounds] = MappingProxyType({}),
) -> list[Source]:
    """
    Args:
        workspaces: whose rows the caller may read; None for all.
        folder: of the query.
        wanted: rows beyond these bounds may be left out.

    Raises:
        TooMuch: there is no room for what has to be read.
    """
    lake = Lake()
    found = []
    for table in TABLES:
        if table.name not in reads:
            continue
        read = reads[table.name]
        # A query that counts rows names no column.
        columns = tuple(name for name, *_ in table.columns if name in read) or ("account_id",)
        bounds = wanted.get(table.name, ())
        if workspaces is None:
            files = _files(lake, table, columns, folder, partial(may_hold, bounds=bounds))
            found.append(Source(table.name, columns, tuple(files)))
        else:
            found.append(_chosen(lake, table, columns, workspaces, folder, bounds))
    return found


def _files(
    lake: Lake,
    table: Table,
    columns: Sequence[str],
    folder: Path,
    may_matter: Callable[[Mapping[str, Any]], bool],
) -> list[str]:
    """Files of a table with these columns, where this machine can read them."""
    delta = existing(lake, table)
    if delta is None:
        return []
    log = delta.get_add_actions(flatten=True)
    listed = {name: log.column(name).to_pylist() for name in log.schema.names}
    files = [
        dict(zip(listed, values, strict=True)) for values in zip(*listed.values(), strict=True)
    ]
    some = sorted((file["path"], file["size_bytes"]) for file in files if may_matter(file))
    return lake.columns(delta, some, columns, folder / table.name)


def _chosen(
    lake: Lake,
    table: Table,
    columns: tuple[str, ...],
    workspaces: Sequence[str],
    folder: Path,
    bounds: Bounds,
) -> Source:
    """The rows of some workspaces, in a file of their own; also where there are none, so that an
    empty table is not told from one in which all rows are of others.

    Which files are read depends on the bounds by whole days or months alone: by how long it takes,
    the least and greatest ids in files of others could be searched for.
    """
    partition = f"partition.{table.partition}"
    used = {*columns, "workspace_id", *(bound.column for each in bounds for bound in each)}
    used |= {*_ORDER.get(table.name, ())}
    files = _files(
        lake,
        table,
        sorted(used),
        folder,
        lambda file: partition_may_hold(table, file.get(partition), bounds),
    )
    source = Source(table.name, columns, tuple(files))
    target = str(folder / f"{table.name}.parquet")
    # An engine of its own, which is gone before the caller's begins.
    with connected(folder, MEMORY) as connection:
        connection.execute("SET preserve_insertion_order = true")
        rows = readable(source, sorted(used), workspaces, bounds)
        connection.execute(
            f"COPY (SELECT {', '.join(columns)} FROM {rows} ORDER BY {_order(source)}) "
            f"TO {quoted(target)} (FORMAT parquet)"
        )
    return source._replace(files=(target,))


def readable(
    source: Source, columns: Sequence[str], workspaces: Sequence[str], bounds: Bounds
) -> str:
    """What a FROM takes for the rows of some workspaces within bounds, with columns.

    The bounds, which have values of the caller, are above a limit that no table reaches: DuckDB
    moves no condition below a limit, so that they meet no row of others and no statistics of them.
    """
    allowed = ", ".join(map(quoted, workspaces)) or "NULL"
    rows = f"{source.relation()} WHERE workspace_id IN ({allowed})"
    where = condition(bounds)
    if not where:
        return rows
    return f"(SELECT {', '.join(columns)} FROM {rows} LIMIT {_NEVER_REACHED}) WHERE {where}"


def _order(source: Source) -> str:
    if source.table in _ORDER:
        return ", ".join(_ORDER[source.table])
    first = [name for name in _FIRST if name in source.columns]
    rest = [name for name in source.columns if name not in first]
    # 0.0 equals -0.0, and is another text.
    sign = ["signbit(metric_value)"] if "metric_value" in source.columns else []
    return ", ".join([*first, *rest, *sign])
