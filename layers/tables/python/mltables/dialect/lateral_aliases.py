"""Puts the expression of a column in place of its alias where the expression may raise an error.

Databricks lets a SELECT use the alias of a column in later columns and in expressions of ORDER BY:
``SELECT CAST(a AS INT) AS n, n * 2``. So does DuckDB, but in the ORDER BY of a SELECT that groups
it misses the alias in the arguments of some of the calls that casts are translated to.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from sqlglot import exp

from mltables.dialect import function_list, macros, sql_generator
from mltables.dialect.aggregate_functions import AGGREGATES
from mltables.dialect.refusal import StatementRefused
from mltables.dialect.row_generators import Duck
from mltables.dialect.source_columns import (
    COLUMNS,
    columns_of_cte,
    columns_of_query,
    ctes_named,
    sources_of,
)
from mltables.dialect.syntax_nodes import find_all
from mltables.table_definitions import TABLES

_COLUMNS: Final = {
    **COLUMNS,
    **{table.derived_view: COLUMNS[table.name] for table in TABLES if table.derived_view},
}
_MOST: Final = 5_000
"""Most syntax nodes that are copied for a statement. An alias in the expression of an alias in that
of a third would let it grow exponentially."""


def rewrite(query: exp.Query, schema: str) -> exp.Query:
    """Replaces aliases of expressions that may raise an error by these expressions, in place. Where
    a SELECT with GROUP BY or DISTINCT does not allow that in ORDER BY, another SELECT is put around
    it, if possible, and sorts its rows. Returns the query, or the one around it. In the list of
    columns, an alias that may also be the name of a column of the SELECT's sources stays: there
    Databricks takes that column.

    Args:
        query: its table names already point to DuckDB's views in ``schema``.

    Raises:
        StatementRefused: too much would have to be copied.
    """
    copier = _Copier()
    for select in list(find_all(query, exp.Select)):
        mentioned = _mentioned(select)
        made: dict[str, exp.Expr] = {}
        columns: frozenset[str] | None = None
        for projection in select.expressions:
            mentions = [column for column in _own(projection) if column.name.lower() in made]
            if mentions and columns is None:
                columns = _columns_of_sources(select, schema)
            for column in mentions:
                if columns is not None and column.name.lower() not in columns:
                    copier.replace(select, column, made)
            name = projection.alias.lower()
            if name in mentioned and name not in made and _must_be_copied(projection):
                made[name] = projection.this
        sorting = [column for column in _of_order(select) if column.name.lower() in made]
        # With DISTINCT, DuckDB sorts by columns of the result only.
        may_replace = select.args.get("distinct") is None
        kept = [c for c in sorting if not (may_replace and copier.replace(select, c, made))]
        if kept:
            around = _sorted_around(select)
            query = around if around is not None and select is query else query
    return query


class _Copier:
    """Puts expressions in place of aliases until it has copied enough of a statement."""

    def __init__(self) -> None:
        self._left = _MOST

    def replace(self, select: exp.Select, column: exp.Column, made: dict[str, exp.Expr]) -> bool:
        """Puts an expression in place of its alias; returns False and does nothing if DuckDB would
        miss the expression among those by which the SELECT groups. Raises StatementRefused if too
        much was copied."""
        value = made[column.name.lower()]
        groups = select.args.get("group") is not None
        if groups and not any(map(_is_aggregate, find_all(value, exp.Anonymous))):
            return False
        size = sum(1 for _ in value.walk())
        if size > self._left:
            raise StatementRefused(
                f"The alias {column.name} stands for too long an expression: compute it in a "
                "subquery."
            )
        self._left -= size
        copied: exp.Expr = exp.Paren(this=value.copy())
        if column.parent is select and column.arg_key == "expressions":
            copied = exp.alias_(copied, column.name, quoted=True)  # the column keeps its name
        column.replace(copied)
        return True


def _is_aggregate(call: exp.Anonymous) -> bool:
    return call.name.lower() in AGGREGATES


def _sorted_around(select: exp.Select) -> exp.Select | None:
    """Puts a SELECT around another one that sorts its rows, in the tree if it has a parent, and
    returns it; None if the sorting needs more than the columns of the other one."""
    names = [projection.alias_or_name.lower() for projection in select.expressions]
    order = select.args["order"]
    needed = {column.name.lower() for column in find_all(order, exp.Column)}
    plain = not any(column.table for column in find_all(order, exp.Column))
    if not plain or not needed <= set(names) or len(set(names)) < len(names) or "" in names:
        return None
    if order.find(exp.Query, exp.AggFunc) or any(name == "*" for name in names):
        return None
    outer = exp.Select(expressions=[exp.Star()])
    for clause in ("order", "limit", "offset"):
        outer.set(clause, select.args.get(clause))
        select.set(clause, None)
    if select.parent is not None:
        select.replace(outer)
    alias = exp.TableAlias(this=exp.to_identifier("inner_sorted"))
    return outer.from_(exp.Subquery(this=select, alias=alias), copy=False)


def _mentioned(select: exp.Select) -> set[str]:
    """Returns the names that may be aliases: of columns without a table in later columns of the
    SELECT and in expressions of ORDER BY."""
    found = [column for projection in select.expressions[1:] for column in _own(projection)]
    return {column.name.lower() for column in (*found, *_of_order(select))}


def _of_order(select: exp.Select) -> list[exp.Column]:
    """Returns the columns without a table in the expressions of ORDER BY."""
    order = select.args.get("order")
    return [
        column
        for ordered in (order.expressions if order else ())
        if not isinstance(ordered.this, exp.Column)
        for column in _own(ordered)
    ]


def _own(root: exp.Expr) -> Iterator[exp.Column]:
    """Yields the columns without a table in an expression, except those of queries in it and the
    parameters of lambdas."""
    for node in find_all(root, exp.Column):
        if node.table or node.find_ancestor(exp.Select) is not root.find_ancestor(exp.Select):
            continue
        if node.name.lower() not in _parameters_around(node):
            yield node


def _parameters_around(node: exp.Expr) -> set[str]:
    """Returns the names of the parameters of all lambdas around a node."""
    names: set[str] = set()
    function = node.find_ancestor(exp.Lambda)
    while function is not None:
        names |= {parameter.name.lower() for parameter in function.expressions}
        function = function.find_ancestor(exp.Lambda)
    return names


def _must_be_copied(projection: exp.Expr) -> bool:
    value = projection.this
    is_alias = isinstance(projection, exp.Alias)
    if not is_alias or isinstance(value, exp.Column | exp.Literal) or value.find(Duck, exp.Query):
        return False
    sql = sql_generator.generate_sql(value.copy())
    return macros.may_fail(sql) and not any(call in sql for call in function_list.OTHER_EACH_TIME)


def _columns_of_sources(select: exp.Select, schema: str) -> frozenset[str] | None:
    """Returns the names of the columns of all sources of a SELECT; None if some are unknown."""
    names: set[str] = set()
    for source in sources_of(select):
        found = _columns_of(source, schema)
        if found is None:
            return None
        names |= {name.lower() for name in found}
    return frozenset(names)


def _columns_of(source: exp.Expr, schema: str) -> list[str] | None:
    alias = source.args.get("alias")
    if isinstance(alias, exp.TableAlias) and alias.columns:
        return [column.name for column in alias.columns]
    if not isinstance(source, exp.Table):
        return columns_of_query(source)
    if source.db == schema:
        return _COLUMNS.get(source.name)
    named = ctes_named(source)
    return columns_of_cte(named[0]) if len(named) == 1 else None
