"""Finds in an SQL syntax tree what a SELECT reads (FROM and JOIN), and the columns' names."""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from mltables.dialect.syntax_nodes import find_all
from mltables.table_definitions import TABLES
from mltables.views import VIEWS

COLUMNS: Final = {
    **{table.name: [name for name, *_ in table.columns] for table in TABLES},
    **{name: list(view.columns) for name, view in VIEWS.items()},
}
"""The names of the columns of each system table and view, in order."""


def sources_of(select: exp.Select) -> list[exp.Expr]:
    """Returns the sources that a SELECT reads: those in its FROM and in its joins."""
    source = select.args.get("from_")
    joined = [join.this for join in select.args.get("joins") or []]
    return [source.this, *joined] if source else joined


def columns_of_query(query: exp.Expr) -> list[str] | None:
    """Returns the column names of an SQL query; None if some have no explicit name."""
    if isinstance(query, exp.Subquery):
        return columns_of_query(query.this)
    if isinstance(query, exp.SetOperation):
        return columns_of_query(query.left)
    if not isinstance(query, exp.Select) or any(
        expression.is_star or not expression.alias_or_name for expression in query.expressions
    ):
        return None
    return [expression.alias_or_name for expression in query.expressions]


def ctes_named(source: exp.Table) -> list[exp.CTE]:
    """Returns the SQL statement's common table expressions that have the name of a FROM source."""
    name = source.name.lower()
    return [cte for cte in find_all(source.root(), exp.CTE) if cte.alias.lower() == name]


def columns_of_cte(cte: exp.CTE) -> list[str] | None:
    """Returns the column names of a common table expression; None if some have no explicit name."""
    renamed = cte.args["alias"].columns
    return [column.name for column in renamed] if renamed else columns_of_query(cte.this)
