"""Row-level security: prepares files that contain only the rows that a caller may read.

The engine that runs a caller's SQL gets these files only. A condition inside that engine would not
protect other rows: the engine may evaluate the caller's expressions on a row before the condition
drops it, and a failed cast, a division by zero or the time taken would reveal the row's values.

The input of a restricted caller's engine depends only on the rows that the caller may read. The
rows are sorted, so that neither their order nor the bytes of the files reveal where other rows are.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import duckdb

from mltables import query_memory, span_attribute_columns, time_travel
from mltables.column_bounds import (
    Bounds,
    ColumnBound,
    fixed_bounds,
    may_hold,
    partition_may_hold,
    sql_condition,
)
from mltables.column_pruning import Columns
from mltables.copy_order import sort_order
from mltables.duckdb_connection import connect
from mltables.opened_tables import OpenedTables
from mltables.snapshot import quoted
from mltables.table_columns import DERIVED_MARK, Table
from mltables.table_definitions import TABLES_BY_NAME
from mltables.time_travel import Moment
from mltables.views import VIEWS

_NEVER_REACHED: Final = 2**63 - 1


class RowSource(NamedTuple):
    """The columns of a system table that an SQL query reads, and the table's files, if any."""

    view: str
    """The name of the view that shows the rows: the table's name, or that of a past version of the
    table."""
    columns: tuple[str, ...]
    files: tuple[str, ...]
    underived: tuple[str, ...] = ()
    """The table's other files. They lack the columns in ``Table.derived``, so the engine computes
    these columns."""
    computed: tuple[str, ...] = ()
    """Columns that no file has (``span_attribute_columns.computed``)."""

    @classmethod
    def of_json(cls, fields: Sequence[Any]) -> RowSource:
        view, *lists = fields
        return cls(view, *map(tuple, lists))

    @property
    def paths(self) -> tuple[str, ...]:
        return (*self.files, *self.underived)

    @property
    def table(self) -> Table:
        """The system table from which the rows of :attr:`view` come."""
        name, _ = time_travel.table_of(self.view)
        return TABLES_BY_NAME[name]

    def views(self) -> list[tuple[str, tuple[str, ...]]]:
        """Returns the name and the columns of each view that DuckDB must create for a SQL query.
        Columns that the product adds to a table (``Table.derived``) are only in a second view, to
        which a statement refers only after the product has rewritten it."""
        shown = {name for name, *_ in self.table.columns}
        views = [(self.view, tuple(name for name in self.columns if name in shown))]
        if self.table.derived_view and self.view == self.table.name:
            views.append((self.table.derived_view, self.columns))
        return views

    def variables(self) -> Mapping[str, list[str]]:
        """Returns the paths of the files by the names of the DuckDB variables that hold them. To
        parse hundreds of paths in SQL takes 10 ms."""
        lists = {"inner_files_of_": self.files, "inner_older_files_of_": self.underived}
        return {name + self.view: [*files] for name, files in lists.items() if files}

    def relation(self, columns: Sequence[str] = (), *, from_variables: bool = False) -> str:
        """Returns the SQL of a FROM source for DuckDB: the rows in this system table's files.

        Args:
            columns: the columns that are read, by default those of the source.
            from_variables: whether the SQL gets the paths of the files from :meth:`variables`.
        """
        held = self.variables()
        lists = {
            tuple(files): f"getvariable('{name}')"
            if from_variables
            else f"[{', '.join(map(quoted, files))}]"
            for name, files in held.items()
        }
        names = columns or self.columns
        computed = span_attribute_columns.computed(set(names).intersection(self.computed))
        derived = {name: sql for name, sql in self.table.derived if name in names}
        if not derived and not computed:
            return self._plain_relation(" || ".join(lists.values()))
        parts = [(self.files, computed)] if self.files else []
        if self.underived or not self.files:
            parts.append((self.underived, {**derived, **computed}))
        selects = []
        for files, made in parts:
            selected = [f"{made[name]} AS {name}" if name in made else name for name in names]
            plain = self._plain_relation(lists.get(files, ""))
            selects.append(f"SELECT {', '.join(selected)} FROM {plain}")
        return f"({' UNION ALL '.join(selects)})"

    def _plain_relation(self, files: str) -> str:
        """Returns the SQL of a FROM source for a list of files, given as SQL; empty for none."""
        if not files:
            return self.table.nothing
        # Otherwise DuckDB would add columns from the names of folders.
        return f"read_parquet({files}, hive_partitioning=false)"


def row_sources(
    reads: Mapping[str, Columns],
    workspaces: Sequence[str] | None,
    folder: Path,
    wanted: Mapping[str, Bounds] = MappingProxyType({}),
    of_table: Mapping[str, Sequence[str] | None] = MappingProxyType({}),
    moments: Sequence[Moment] = (),
    opened: OpenedTables | None = None,
) -> list[RowSource]:
    """Returns from which files a SQL query reads each system table in ``reads`` (by the name of its
    view), with only the rows that the caller may read.

    Args:
        workspaces: the workspaces whose rows the caller may read; None means all rows.
        folder: the folder for the query's temporary files.
        wanted: bounds on columns, by view; rows outside of these bounds may be left out.
        of_table: the same as ``workspaces``, by table, for tables with rights of their own.
        moments: the times or versions of past tables that are read. The name of a past table in
            ``reads`` contains the position of its moment in this list.
        opened: tables that are open already, whose versions are read.

    Raises:
        NoRoomForColumns: the disk has no space for the columns that are read.
        StatementRefused: a table has no version for one of the moments.
    """
    opened = opened or OpenedTables()
    sources = []
    with contextlib.ExitStack() as engines:

        @functools.cache
        def copying() -> duckdb.DuckDBPyConnection:
            """A separate engine, which is closed before the caller's engine starts. It copies the
            rows of all tables: to open one takes as long as to copy the rows of a small table."""
            return engines.enter_context(_connected(folder))

        for view, read in reads.items():
            if view in VIEWS:
                continue
            name, position = time_travel.table_of(view)
            table = TABLES_BY_NAME[name]
            # A query such as count(*) names no column, but a file needs one.
            columns = tuple(name for name, *_ in table.columns if name in read) or ("account_id",)
            columns += tuple(name for name, _ in table.derived if name in read)
            computed = tuple(sorted(span_attribute_columns.computed(read)))
            columns += computed
            bounds = wanted.get(view, ())
            permitted = of_table.get(table.name, workspaces)
            if position is not None:
                when = moments[position]
                source = _write_past_rows(
                    copying, opened, view, table, columns, permitted, folder, bounds, when
                )
            elif permitted is None:
                may_matter = functools.partial(may_hold, bounds=bounds)
                files = _files_with_columns(opened, table, columns, folder / view, may_matter)
                source = RowSource(view, columns, *files, computed)
            else:
                source = _write_permitted_rows(
                    copying, opened, table, columns, permitted, folder, bounds
                )
            sources.append(source)
    return sources


def _files_with_columns(
    opened: OpenedTables,
    table: Table,
    columns: Sequence[str],
    folder: Path,
    may_matter: Callable[[Mapping[str, Any]], bool],
    moment: Moment | None = None,
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Returns the local paths of the table's files that may matter, with at least these columns
    (the map in place of computed ones). The paths are in two lists: files that have the derived
    columns, and files without them, for which these must be computed.

    Args:
        folder: where links to the files are made.
        moment: the time of a past version; None for the current version.
    """
    delta, lake = opened.at(table, moment), opened.lake
    if delta is None:
        return (), ()
    log = delta.get_add_actions(flatten=True)
    listed = {name: log.column(name).to_pylist() for name in log.schema.names}
    files = [
        dict(zip(listed, values, strict=True)) for values in zip(*listed.values(), strict=True)
    ]
    some = sorted((file["path"], file["size_bytes"]) for file in files if may_matter(file))
    derived = {name for name, _ in table.derived}.intersection(columns)
    if computed := span_attribute_columns.computed(columns).keys():
        columns = sorted({*columns, span_attribute_columns.MAP} - computed)
    if not derived:
        return tuple(lake.columns(table.name, delta, some, columns, folder)), ()
    newer = [file for file in some if _has_derived(file[0])]
    older = [file for file in some if not _has_derived(file[0])]
    made = " ".join(sql for name, sql in table.derived if name in derived)
    named = sorted({*columns, *(name for name in table.derived_from if name in made)} - derived)
    return (
        tuple(lake.columns(table.name, delta, newer, columns, folder)),
        tuple(lake.columns(table.name, delta, older, named, folder / "underived")),
    )


def _has_derived(name: str) -> bool:
    """Whether a file has the columns in ``Table.derived``. Its name in the table's log decides."""
    return name.rpartition("/")[2].startswith(DERIVED_MARK)


def _write_permitted_rows(
    copying: Callable[[], duckdb.DuckDBPyConnection],
    opened: OpenedTables,
    table: Table,
    columns: tuple[str, ...],
    workspaces: Sequence[str],
    folder: Path,
    bounds: Bounds,
) -> RowSource:
    """Copies the rows of some workspaces to a file and returns it as the source. A file is written
    even without rows, so that an empty table looks like one with only rows of others.

    Files are skipped by whole days or months, and by what the caller cannot choose: the workspaces
    and fixed bounds. If they were also skipped by ids, the time of a query would reveal which ids
    exist in other workspaces.
    """
    partition = f"partition.{table.partition}"
    own = [[ColumnBound("workspace_id", "=", tuple(workspaces))]]
    fixed = fixed_bounds(bounds)
    used = {*columns, "workspace_id", *(bound.column for each in bounds for bound in each)}
    if table.identity:
        used.update(sort_order(table, columns).split(", "))
    files = _files_with_columns(
        opened,
        table,
        sorted(used),
        folder / table.name,
        lambda file: (
            partition_may_hold(table, file.get(partition), bounds)
            and may_hold(file, own)
            and may_hold(file, fixed)
        ),
    )
    computed = tuple(span_attribute_columns.computed(columns))
    source = RowSource(table.name, columns, *files, computed)
    target = str(folder / f"{table.name}.parquet")
    rows = permitted_relation(source, sorted(used), workspaces, bounds)
    _copy_rows(copying(), source, rows, target)
    return source._replace(files=(target,), underived=(), computed=())


def _write_past_rows(
    copying: Callable[[], duckdb.DuckDBPyConnection],
    opened: OpenedTables,
    view: str,
    table: Table,
    columns: tuple[str, ...],
    workspaces: Sequence[str] | None,
    folder: Path,
    bounds: Bounds,
    moment: Moment,
) -> RowSource:
    """Copies the rows of a past version of a table to a file and returns it as the source: those of
    entities that still exist, in a workspace that the caller may read now."""
    entities, identity = time_travel.ENTITIES[table.name]
    used = {*columns, *identity, *(bound.column for each in bounds for bound in each)}
    used |= {*table.identity.split(", ")} - {""}
    partition = f"partition.{table.partition}"
    past = RowSource(
        view,
        columns,
        *_files_with_columns(
            opened,
            table,
            sorted(used),
            folder / view,
            lambda file: partition_may_hold(table, file.get(partition), bounds),
            moment,
        ),
    )
    present = RowSource(
        entities.name,
        identity,
        *_files_with_columns(
            opened, entities, (*identity, "workspace_id"), folder / f"{view}_now", lambda _: True
        ),
    )
    allowed = "" if workspaces is None else f"WHERE {_is_in(workspaces)}"
    rows = (
        f"{past.relation()} SEMI JOIN "
        f"(SELECT {', '.join(identity)} FROM {present.relation()} {allowed}) "
        f"USING ({', '.join(identity)})"
    )
    target = str(folder / f"{view}.parquet")
    try:
        _copy_rows(copying(), past, _within(rows, sorted(used), bounds), target)
    except duckdb.IOException as error:
        if "No files found" in str(error):
            raise time_travel.gone() from error
        raise
    return past._replace(files=(target,))


def _connected(folder: Path) -> duckdb.DuckDBPyConnection:
    """Opens a database that copies rows. What its memory does not hold spills to the folder."""
    limits = query_memory.here()
    return connect(folder, limits.text, limits.threads)


def _copy_rows(
    connection: duckdb.DuckDBPyConnection, source: RowSource, rows: str, target: str
) -> None:
    """Writes the source's columns of a FROM source to a file, in a total order."""
    limits = query_memory.here()
    order = sort_order(source.table, source.columns)
    # Whatever else has connected since, such as the column cache, has set its own limits: in a
    # process of a query all connections share one database.
    connection.execute(f"SET memory_limit = '{limits.text}'; SET threads = {limits.threads}")
    connection.execute("SET preserve_insertion_order = true")
    connection.execute(
        f"COPY (SELECT {', '.join(source.columns)} FROM {rows} ORDER BY {order}) "
        f"TO {quoted(target)} (FORMAT parquet, PARQUET_VERSION V2, COMPRESSION lz4)"
    )


def permitted_relation(
    source: RowSource, columns: Sequence[str], workspaces: Sequence[str], bounds: Bounds
) -> str:
    """Returns the SQL of a FROM source: ``columns`` of a system table, with only the rows that are
    in ``workspaces`` and within ``bounds``.

    The bounds contain values from the caller, so they must not be evaluated on other rows or their
    statistics. They are applied outside of a LIMIT that no table reaches, because DuckDB moves no
    condition below a LIMIT. Only fixed bounds, which have no such values, are applied within it.
    """
    where = _is_in(workspaces)
    if fixed := sql_condition(fixed_bounds(bounds)):
        where += f" AND ({fixed})"
    return _within(f"{source.relation(columns)} WHERE {where}", columns, bounds)


def _is_in(workspaces: Sequence[str]) -> str:
    return f"workspace_id IN ({', '.join(map(quoted, workspaces)) or 'NULL'})"


def _within(rows: str, columns: Sequence[str], bounds: Bounds) -> str:
    """Returns a FROM source with those rows of another that are within bounds. DuckDB evaluates the
    bounds only after that source."""
    where = sql_condition(bounds)
    if not where:
        return rows
    return f"(SELECT {', '.join(columns)} FROM {rows} LIMIT {_NEVER_REACHED}) WHERE {where}"
