"""File pruning: decides from a SQL statement's WHERE which files of a system table are not needed.

Only plain conditions are used: ``column >= constant`` and the like on the table itself, joined by
AND. Any other condition is ignored, which costs time but changes no result.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

import duckdb
from sqlglot import exp

from mltables.dialect import macros, sql_generator
from mltables.duckdb_connection import connect
from mltables.snapshot import quoted
from mltables.table_columns import Table
from mltables.table_definitions import TABLES
from mltables.views import VIEWS

TIMES: Final = frozenset(table.time for table in TABLES if table.time)
"""The columns by whose day or month the files of a table are partitioned."""
TEXTS: Final = frozenset(
    ("run_id", "experiment_id", "trace_id", "registered_model_id", "dataset_id", "job_id")
)
_COLUMNS: Final = {
    **{table.name: frozenset(name for name, *_ in table.columns) for table in TABLES},
    **{name: view.bounded for name, view in VIEWS.items()},
}
"""The columns whose bounds can exclude files, by table or view."""
_OF_PAST: Final = frozenset(("request_time", "trace_id", "experiment_id"))
"""The columns whose bounds can exclude files of past versions of the tables."""

_OPERATORS: Final[Mapping[type[exp.Expr], str]] = {
    exp.GTE: ">=",
    exp.GT: ">",
    exp.LTE: "<=",
    exp.LT: "<",
    exp.EQ: "=",
}
_NOW: Final = (exp.CurrentTimestamp, exp.CurrentDate)
_NOW_CALLS: Final = frozenset(("now", "current_timestamp", "current_date", "curdate"))
_CALLS: Final = _NOW_CALLS | {
    "date",
    "timestamp",
    "to_date",
    "to_timestamp",
    "date_add",
    "date_sub",
}
"""Functions that a constant expression may call."""
_CONSTANT: Final = (
    *(exp.Literal, exp.Placeholder, exp.Cast, exp.DataType, exp.DataTypeParam, exp.Paren, exp.Neg),
    *(exp.Add, exp.Sub, exp.Mul, exp.Interval, exp.Var, *_NOW),
)
"""Syntax of which a constant expression may consist. None of it can run long."""
_FIRST_YEAR: Final = 1000
"""The first year whose times can exclude files. Earlier years have fewer than four digits and would
sort wrongly as texts."""
_PRECISION: Final = timedelta(milliseconds=1)
"""Precision of times in the log of a table."""
UNNESTS: Final = "unnests"
"""Key in the ``meta`` of a join that replaces an unnested list (``exploded_lists.py``)."""
BOUNDED_BY: Final = "bounded_by"
"""Key in the ``meta`` of a table node: the node of the view that it replaces; bounds on that node
bound this table, too."""


class ColumnBound(NamedTuple):
    """A condition such as ``column >= value``. With several values it holds if it is true for at
    least one of them."""

    column: str
    operator: str
    values: tuple[Any, ...]
    """SQL for DuckDB; after :func:`evaluate_bounds` texts or times."""

    def admits(self, low: Any, high: Any) -> bool:
        """Returns whether a file may contain a value that meets the condition, if its values lie
        between ``low`` and ``high``. None means that this end is unknown. Delta's statistics cut
        long texts, so ``high`` may be only the beginning of the greatest value."""
        if low is None or high is None:
            return True
        return any(self._admits(value, low, high) for value in self.values)

    def _admits(self, value: Any, low: Any, high: Any) -> bool:
        if isinstance(value, datetime):
            # Differences are compared: adding to the first or last possible time would overflow.
            reaches = value - high <= _PRECISION
            begins = low - value <= _PRECISION
        else:
            reaches = high >= value or value.startswith(high)
            begins = low <= value
        if self.operator == "=":
            return bool(reaches and begins)
        return bool(reaches if self.operator.startswith(">") else begins)

    def condition(self) -> str:
        """Returns the bound as an SQL condition for DuckDB."""
        values = [
            f"{quoted(value.isoformat())}::TIMESTAMPTZ"
            if isinstance(value, datetime)
            else quoted(value)
            for value in self.values
        ]
        return "(" + " OR ".join(f"{self.column} {self.operator} {value}" for value in values) + ")"


Bounds = Sequence[Sequence[ColumnBound]]
"""Alternatives, one for each place in the statement that names the table. A row is needed if it
fulfils all bounds of one alternative. An empty alternative, or no alternative, means all rows."""


def where_bounds(query: exp.Query, schema: str) -> Mapping[str, Bounds]:
    """Returns the bounds on columns in a statement's WHERE conditions: by table, one list of bounds
    for each place in the statement that names the table or a view of it.

    Args:
        query: its table names already point to DuckDB's views.
    """
    bounds_by_table: dict[str, list[tuple[ColumnBound, ...]]] = {}
    for table in query.find_all(exp.Table):
        if table.db == schema:
            columns = _COLUMNS.get(table.name, _OF_PAST)
            renamed = VIEWS[table.name].renamed if table.name in VIEWS else {}
            mention = table.meta.get(BOUNDED_BY, table)
            bounds = tuple(bound for bound in _bounds(mention, renamed) if bound.column in columns)
            bounds_by_table.setdefault(table.name, []).append(bounds)
    for name, view in VIEWS.items():
        for each in bounds_by_table.pop(name, ()):
            for below in view.tables:
                bounds_by_table.setdefault(below.name, []).append(each)
    return bounds_by_table


def _bounds(table: exp.Table, renamed: Mapping[str, str]) -> Iterator[ColumnBound]:
    """Yields the bounds that WHERE sets on one table node of a statement.

    Args:
        renamed: the names of columns in the underlying tables, by their names in the view.
    """
    parent = table.parent
    select = parent.parent if isinstance(parent, exp.From | exp.Join) else None
    where = select.args.get("where") if isinstance(select, exp.Select) else None
    if not isinstance(select, exp.Select) or where is None:
        return
    names = {table.alias_or_name.lower()}
    # A column name without a table belongs to this table if all joins only unnest lists.
    beside = unnested_names(select)
    if beside is not None and not beside & (TIMES | TEXTS | renamed.keys()):
        names.add("")
    for condition in where.this.flatten() if isinstance(where.this, exp.And) else [where.this]:
        yield from _bounds_of(condition.unnest(), names, renamed)


def unnested_names(select: exp.Select) -> set[str] | None:
    """Returns the names, in lower case, of the columns into which the joins of a SELECT unnest
    lists; None if the SELECT joins anything else, or if a join does not name its columns."""
    names: set[str] = set()
    if select.args.get("laterals"):
        return None
    for join in select.args.get("joins") or []:
        alias = join.this.args.get("alias")
        is_list = isinstance(join.this, exp.Lateral) or UNNESTS in join.meta
        if not is_list or alias is None or not alias.columns:
            return None
        names |= {column.name.lower() for column in alias.columns}
    return names


def _bounds_of(
    condition: exp.Expr, names: set[str], renamed: Mapping[str, str]
) -> Iterator[ColumnBound]:
    if isinstance(condition, exp.And):
        for part in condition.flatten():
            yield from _bounds_of(part.unnest(), names, renamed)
        return
    column = condition.this
    if not isinstance(column, exp.Column) or column.table.lower() not in names:
        return
    name = column.name.lower()
    name = renamed.get(name, name)
    if name not in TIMES | TEXTS:
        return
    if isinstance(condition, exp.Between) and not condition.args.get("symmetric"):
        given = [(">=", [condition.args["low"]]), ("<=", [condition.args["high"]])]
    elif isinstance(condition, exp.In) and not condition.args.get("query"):
        given = [("=", condition.expressions)]
    elif operator := _OPERATORS.get(type(condition)):
        given = [(operator, [condition.expression])]
    else:
        return
    for operator, values in given:
        # The statement runs later, when now() is greater. So now() is safe in lower bounds only.
        if values and all(is_constant(value, now=operator in (">", ">=")) for value in values):
            yield ColumnBound(
                name, operator, tuple(sql_generator.generate_sql(value.copy()) for value in values)
            )


def is_constant(value: exp.Expr, *, now: bool) -> bool:
    """Whether an SQL expression is a constant: it reads no column and takes little time.

    Args:
        now: whether the expression may call ``now()`` and the like.
    """
    for node in value.walk():
        if isinstance(node, exp.Anonymous):
            name = node.name.lower()
            if name not in _CALLS or (name in _NOW_CALLS and not now):
                return False
        elif not isinstance(node, _CONSTANT) or (isinstance(node, _NOW) and not now):
            return False
    return True


# ------------------------------------------------------------------ values


def evaluate_bounds(
    column_bounds: Mapping[str, Bounds], parameters: Mapping[str, Any]
) -> Mapping[str, Bounds]:
    """Computes the bounds (the constant expressions with which conditions of a SQL statement
    compare columns) in an empty DuckDB. Drops those that are NULL or cannot be computed."""
    if not any(bound for bounds in column_bounds.values() for bound in bounds):
        return {}
    with connect(None) as connection:
        return {
            table: [
                [known for bound in each if (known := _known(connection, bound, parameters))]
                for each in bounds
            ]
            for table, bounds in column_bounds.items()
        }


def _known(
    connection: duckdb.DuckDBPyConnection, bound: ColumnBound, parameters: Mapping[str, Any]
) -> ColumnBound | None:
    values = []
    for sql in bound.values:
        wanted = f"({sql})::TIMESTAMPTZ" if bound.column in TIMES else sql
        given = {name: parameter for name, parameter in parameters.items() if f"${name}" in sql}
        macros.create_macros(connection, sql)
        try:
            ((value, kind),) = connection.execute(
                f"SELECT {wanted}, typeof({wanted})", given
            ).fetchall()
        except (duckdb.Error, RuntimeError, ValueError, OverflowError):
            return None
        if value is None or (bound.column in TEXTS and kind != "VARCHAR"):
            return None
        values.append(value)
    return bound._replace(values=tuple(values))


# ------------------------------------------------------------------- files


def may_hold(file: Mapping[str, Any], bounds: Bounds) -> bool:
    """Returns whether a query may need a file, according to the file's statistics in Delta's log.
    ``bounds`` has one list for each place where the query names the table. The file is needed if
    its rows may meet all bounds of one of these lists."""
    return not bounds or any(
        all(
            bound.admits(file.get(f"min.{bound.column}"), file.get(f"max.{bound.column}"))
            for bound in each
        )
        for each in bounds
    )


def partition_may_hold(table: Table, partition: str | None, bounds: Bounds) -> bool:
    """Returns whether a SQL query may need a partition of a system table, according to the
    partition's day or month. ``bounds`` are as in :func:`may_hold`."""
    if partition is None:
        return True
    column, form = table.time, table.time_format
    coarse = [
        [
            bound._replace(values=tuple(value.strftime(form) for value in bound.values))
            for bound in each
            if bound.column == column and all(value.year >= _FIRST_YEAR for value in bound.values)
        ]
        for each in bounds
    ]
    return not coarse or any(
        all(bound.admits(partition, partition) for bound in each) for each in coarse
    )


def sql_condition(bounds: Bounds) -> str:
    """Returns an SQL condition for DuckDB that is true for the rows that meet all bounds of at
    least one of the lists in ``bounds``; empty if all rows are needed."""
    if not bounds or not all(bounds):
        return ""
    return " OR ".join(
        "(" + " AND ".join(bound.condition() for bound in each) + ")" for each in bounds
    )
