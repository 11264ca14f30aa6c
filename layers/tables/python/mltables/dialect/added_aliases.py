"""Gives columns without an alias the names that Databricks gives them."""

from __future__ import annotations

from sqlglot import exp

from mltables.dialect import row_generators
from mltables.dialect.column_names import databricks_name
from mltables.dialect.syntax_nodes import find_all


def name_columns(query: exp.Query) -> None:
    """Changes an SQL query in place: gives each column without an alias, in each SELECT, the name
    that Databricks gives it."""
    for select in find_all(query, exp.Select):
        projections = []
        for expression in select.expressions:
            if _is_named(expression):
                projections.append(expression)
            else:
                is_cast = isinstance(expression, exp.Cast)
                is_of_column = is_cast and isinstance(expression.this, exp.Column)
                name = databricks_name(expression.this if is_of_column else expression)
                # DuckDB takes no empty name.
                projections.append(exp.alias_(expression, name or " ", quoted=True))
        select.set("expressions", projections)


def _is_named(node: exp.Expr) -> bool:
    if isinstance(node, exp.Alias | exp.Aliases | exp.Star | row_generators.Duck):
        return True
    if isinstance(node, exp.Column):
        # DuckDB uses the letter case of the table, Databricks that of the query.
        return node.name == node.name.lower() or node.is_star
    return row_generators.is_generator(node)
