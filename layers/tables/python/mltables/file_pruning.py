"""File pruning: decides from a SQL statement's WHERE which files of a system table are not needed.

Only plain conditions are used: ``column >= constant`` and the like on the table itself, joined by
AND. Any other condition is ignored, which costs time but changes no result.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

import duckdb
from sqlglot import exp

from mltables.column_bounds import IS_EMPTY, IS_GIVEN, PARENT, Bounds, ColumnBound
from mltables.dialect import macros, map_lookups, sql_generator
from mltables.dialect.syntax_nodes import find_all
from mltables.duckdb_connection import connect
from mltables.span_attribute_columns import EVENT_NAMES
from mltables.table_definitions import SPANS, TABLES
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
_DERIVED: Final = frozenset(name for name, _ in SPANS.derived)
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
UNNESTS: Final = "unnests"
"""Key in the ``meta`` of a join that replaces an unnested list (``exploded_lists.py``)."""
BOUNDED_BY: Final = "bounded_by"
"""Key in the ``meta`` of a table node: the node of the view that it replaces; bounds on that node
bound this table, too."""


_ROOTS: Final = (ColumnBound(PARENT, IS_EMPTY, ()), ColumnBound(PARENT, IS_EMPTY, ("''",)))
"""Bounds of root spans: without a parent, or with an empty one, too."""


def where_bounds(query: exp.Query, schema: str) -> Mapping[str, Bounds]:
    """Returns the bounds on columns in a statement's WHERE conditions: by table, one list of bounds
    for each place in the statement that names the table or a view of it.

    Args:
        query: its table names already point to DuckDB's views.
    """
    bounds_by_table: dict[str, list[tuple[ColumnBound, ...]]] = {}
    for table in find_all(query, exp.Table):
        if table.db == schema:
            columns = _COLUMNS.get(table.name, _OF_PAST)
            renamed = VIEWS[table.name].renamed if table.name in VIEWS else {}
            mention = table.meta.get(BOUNDED_BY, table)
            bounds = [
                bound
                for bound in _bounds(mention, renamed)
                # A trace has no parent: the condition is on a span of an outer query.
                if mention is table or bound.operator != IS_EMPTY
            ]
            if mention is not table:
                bounds += (bound for bound in _bounds(table, {}) if bound.column == EVENT_NAMES)
            bounds_by_table.setdefault(table.name, []).append(
                tuple(bound for bound in bounds if bound.column in columns | _DERIVED)
            )
    return bounds_by_table


def table_bounds(
    where: Mapping[str, Bounds], reads: Mapping[str, Collection[str]]
) -> Mapping[str, Bounds]:
    """Returns the bounds of a SQL statement by table alone: those of its views (in the result of
    :func:`where_bounds`) apply to the tables that the views read.

    Args:
        reads: the columns that the statement reads, by view. For a view that is missing here, all
            columns count as read.
    """
    by_table = {name: [*bounds] for name, bounds in where.items() if name not in VIEWS}
    for name in where.keys() & VIEWS.keys():
        view = VIEWS[name]
        roots = _ROOTS[:1] if name in reads and view.reads_roots(reads[name]) else ()
        read = view.tables_read(reads[name]).keys() if name in reads else None
        for each in where[name]:
            for below in view.tables:
                if read is not None and below.name not in read:
                    continue
                further = roots if below is SPANS else ()
                by_table.setdefault(below.name, []).append((*each, *further))
    return by_table


def selects_roots(table: exp.Table) -> bool:
    """Whether a WHERE selects only root spans of a mention of the table ``spans`` in a query. Then
    no result depends on the values of other spans of this mention."""
    return any(bound.operator == IS_EMPTY for bound in _bounds(table, {}))


def _bounds(table: exp.Table, renamed: Mapping[str, str]) -> Iterator[ColumnBound]:
    """Yields the bounds that WHERE sets on one table node of a statement.

    Args:
        renamed: the names of columns in the underlying tables, by their names in the view.
    """
    parent = table.parent
    select = parent.parent if isinstance(parent, exp.From | exp.Join) else None
    where = select.args.get("where") if isinstance(select, exp.Select) else None
    if not isinstance(select, exp.Select) or where is None or renames_columns(table):
        return
    names = {table.alias_or_name.lower()}
    # A column name without a table belongs to this table if all joins only unnest lists.
    beside = unnested_names(select)
    if beside is not None and not beside & (TIMES | TEXTS | {PARENT} | renamed.keys()):
        names.add("")
    for condition in where.this.flatten() if isinstance(where.this, exp.And) else [where.this]:
        for bound in _bounds_of(condition.unnest(), names, renamed):
            if bound.operator != IS_EMPTY or not may_be_absent(table, select):
                yield bound


def renames_columns(table: exp.Table) -> bool:
    """Whether a mention of a table gives its columns other names, as in ``spans AS s(a, b)``."""
    alias = table.args.get("alias")
    return alias is not None and bool(alias.columns)


def may_be_absent(table: exp.Table, select: exp.Select) -> bool:
    """Whether an outer join in a SELECT may make rows in which all columns of a table are NULL."""
    if table.args.get("joins"):  # t JOIN table RIGHT JOIN … ON … ON …
        return True
    joins = select.args.get("joins") or []
    join = table.parent
    is_plain = not isinstance(join, exp.Join) or (
        not join.side and not join.method and join.kind.upper() in ("", "INNER", "CROSS")
    )
    return not is_plain or any(each.side.upper() in ("RIGHT", "FULL") for each in joins)


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
    if bound := _root_bound(condition, names) or _derived_bound(condition, names):
        yield bound
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


def _root_bound(condition: exp.Expr, names: set[str]) -> ColumnBound | None:
    """Returns the bound of a condition that only root spans meet: ``parent_span_id IS NULL``,
    ``parent_span_id = ''``, or one OR the other; None for any other condition."""
    if isinstance(condition, exp.Or):
        sides = [_root_bound(side.unnest(), names) for side in condition.unnest_operands()]
        return _ROOTS[1] if all(sides) else None
    column, value = condition.this, condition.args.get("expression")
    if not isinstance(column, exp.Column) or column.table.lower() not in names or column.db:
        return None
    if column.name.lower() != PARENT:
        return None
    if isinstance(condition, exp.Is) and isinstance(value, exp.Null):
        return _ROOTS[0]
    is_empty = isinstance(value, exp.Literal) and value.is_string and not value.name
    return _ROOTS[1] if isinstance(condition, exp.EQ) and is_empty else None


def _derived_bound(condition: exp.Expr, names: set[str]) -> ColumnBound | None:
    """Returns the bound of a condition on a derived column of ``spans``: that a span has events, or
    that an attribute such as ``attributes['k']``, which is read from a column, is a text or not
    NULL. None for any other condition."""
    tested = condition.this
    if isinstance(condition, exp.Not) and isinstance(tested, exp.Is):
        left, value, operator = tested.this, tested.expression, IS_GIVEN
        if not isinstance(value, exp.Null):
            return None
    elif isinstance(condition, exp.EQ):
        left, value, operator = tested, condition.expression, "="
        if not isinstance(value, exp.Literal) or not value.is_string:
            return None
    else:
        return None
    while isinstance(left, exp.Paren) or (isinstance(left, exp.Cast) and left.to.is_type("text")):
        left = left.this  # an attribute is a text
    column = left if isinstance(left, exp.Column) else map_lookups.column_of(left)
    if column is None or column.table.lower() not in names or column.name not in _DERIVED:
        return None
    values = () if operator == IS_GIVEN else (sql_generator.generate_sql(value.copy()),)
    return ColumnBound(column.name, operator, values)


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
    compare columns) in an empty DuckDB. Drops those that cannot be used, such as NULL."""
    # A view has the same bounds for each of its tables.
    every = {bound for bounds in column_bounds.values() for each in bounds for bound in each}
    if not every:
        return {}
    with connect(None) as connection:
        # Bounds of one statement need the same macros, most of all those that compare times.
        macros.create_macros(connection, "\n".join(sql for bound in every for sql in bound.values))
        known = {bound: _known(connection, bound, parameters) for bound in every}
    return {
        table: [[value for bound in each if (value := known[bound])] for each in bounds]
        for table, bounds in column_bounds.items()
    }


def _known(
    connection: duckdb.DuckDBPyConnection, bound: ColumnBound, parameters: Mapping[str, Any]
) -> ColumnBound | None:
    """Returns a bound with the values of its expressions; None if it cannot be used."""
    values = []
    for sql in bound.values:
        wanted = f"({sql})::TIMESTAMPTZ" if bound.column in TIMES else sql
        given = {name: parameter for name, parameter in parameters.items() if f"${name}" in sql}
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
