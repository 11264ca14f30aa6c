"""Which rows a statement can want of a table, as far as its WHERE says so in the plainest way:
``column >= constant`` and the like beside the table's own name, joined by AND.

Files without such rows need not be read. A bound that is not understood is left out, which costs
time and changes no answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

import duckdb
from sqlglot import exp

from mltables.database import connected
from mltables.dialect import macros, writer
from mltables.snapshot import quoted
from mltables.tables import HISTORY, RUNS, Table

TIMES: Final = frozenset(("insert_time", "start_time"))
TEXTS: Final = frozenset(("run_id", "experiment_id"))

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
"""Functions that a constant may call."""
_CONSTANT: Final = (
    *(exp.Literal, exp.Placeholder, exp.Cast, exp.DataType, exp.DataTypeParam, exp.Paren, exp.Neg),
    *(exp.Add, exp.Sub, exp.Mul, exp.Interval, exp.Var, *_NOW),
)
"""Of what a constant may be made; no function that can take long."""
_PARTITIONED_BY: Final = {
    HISTORY.name: ("insert_time", "%Y-%m-%d"),
    RUNS.name: ("start_time", "%Y-%m"),
}
_FIRST_YEAR: Final = 1000
"""Before it years have no four digits."""
_PRECISION: Final = timedelta(milliseconds=1)
"""Of times in the log of a table."""


class Bound(NamedTuple):
    """``column operator value``, for any of the values."""

    column: str
    operator: str
    values: tuple[Any, ...]
    """SQL for DuckDB as they are found, then texts or times."""

    def admits(self, low: Any, high: Any) -> bool:
        """Whether a value between these may be within the bound; None where an end is unknown.
        Texts may be cut short, so the greatest is one that begins with ``high``."""
        if low is None or high is None:
            return True
        return any(self._admits(value, low, high) for value in self.values)

    def _admits(self, value: Any, low: Any, high: Any) -> bool:
        if isinstance(value, datetime):
            reaches = high + _PRECISION >= value
            begins = low - _PRECISION <= value
        else:
            reaches = high >= value or value.startswith(high)
            begins = low <= value
        if self.operator == "=":
            return bool(reaches and begins)
        return bool(reaches if self.operator.startswith(">") else begins)

    def condition(self) -> str:
        """For DuckDB."""
        values = [
            f"{quoted(value.isoformat())}::TIMESTAMPTZ"
            if isinstance(value, datetime)
            else quoted(value)
            for value in self.values
        ]
        return "(" + " OR ".join(f"{self.column} {self.operator} {one}" for one in values) + ")"


Bounds = Sequence[Sequence[Bound]]
"""Rows within all bounds of any of these; all rows where one, or the whole, is empty."""


def bounds_read(query: exp.Query, schema: str) -> Mapping[str, Bounds]:
    """Of each table what the statement wants, each time that it names the table.

    Args:
        query: with the names of its tables as DuckDB has them.
    """
    found: dict[str, list[tuple[Bound, ...]]] = {}
    for table in query.find_all(exp.Table):
        if table.db == schema:
            found.setdefault(table.name, []).append(tuple(_bounds(table)))
    return found


def _bounds(table: exp.Table) -> Iterator[Bound]:
    place = table.parent
    select = place.parent if isinstance(place, exp.From | exp.Join) else None
    where = select.args.get("where") if isinstance(select, exp.Select) else None
    if select is None or where is None:
        return
    is_alone = not select.args.get("joins") and not select.args.get("laterals")
    names = {table.alias_or_name.lower()} | ({""} if is_alone else set())
    for condition in where.this.flatten() if isinstance(where.this, exp.And) else [where.this]:
        yield from _bounds_of(condition.unnest(), names)


def _bounds_of(condition: exp.Expr, names: set[str]) -> Iterator[Bound]:
    if isinstance(condition, exp.And):
        for one in condition.flatten():
            yield from _bounds_of(one.unnest(), names)
        return
    column = condition.this
    if not isinstance(column, exp.Column) or column.table.lower() not in names:
        return
    name = column.name.lower()
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
        # When the statement runs it is later: what is below now then may not be below it here.
        if values and all(_is_constant(one, now=operator in (">", ">=")) for one in values):
            yield Bound(name, operator, tuple(writer.write(one.copy()) for one in values))


def _is_constant(value: exp.Expr, *, now: bool) -> bool:
    for node in value.walk():
        if isinstance(node, exp.Anonymous):
            name = node.name.lower()
            if name not in _CALLS or (name in _NOW_CALLS and not now):
                return False
        elif not isinstance(node, _CONSTANT) or (isinstance(node, _NOW) and not now):
            return False
    return True


# ------------------------------------------------------------------ values


def evaluated(found: Mapping[str, Bounds], parameters: Mapping[str, Any]) -> Mapping[str, Bounds]:
    """The bounds with their values, computed where no row is; without those that have none."""
    if not any(bound for bounds in found.values() for bound in bounds):
        return {}
    with connected(None) as connection:
        return {
            table: [
                [known for bound in each if (known := _known(connection, bound, parameters))]
                for each in bounds
            ]
            for table, bounds in found.items()
        }


def _known(
    connection: duckdb.DuckDBPyConnection, bound: Bound, parameters: Mapping[str, Any]
) -> Bound | None:
    values = []
    for sql in bound.values:
        wanted = f"({sql})::TIMESTAMPTZ" if bound.column in TIMES else sql
        given = {name: one for name, one in parameters.items() if f"${name}" in sql}
        macros.install(connection, sql)
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
    """Whether a file may hold rows within bounds, by its statistics in the table's log."""
    return not bounds or any(
        all(
            bound.admits(file.get(f"min.{bound.column}"), file.get(f"max.{bound.column}"))
            for bound in each
        )
        for each in bounds
    )


def partition_may_hold(table: Table, partition: str | None, bounds: Bounds) -> bool:
    """As ``may_hold``, by the day or month of a file alone."""
    if partition is None or table.name not in _PARTITIONED_BY:
        return True
    column, form = _PARTITIONED_BY[table.name]
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


def condition(bounds: Bounds) -> str:
    """What rows within bounds fulfil, for DuckDB; empty where all do."""
    if not bounds or not all(bounds):
        return ""
    return " OR ".join(
        "(" + " AND ".join(bound.condition() for bound in each) + ")" for each in bounds
    )
