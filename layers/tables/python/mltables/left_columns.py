"""Qualifies names of columns that a view leaves to another view in the same SELECT.

The view ``serving_endpoint_usage`` has a column ``endpoint_name`` that Databricks' table lacks. In
a join with ``serving_served_entities``, which has that column on Databricks too, the plain name
would be ambiguous; on Databricks it is the column of ``serving_served_entities``.
"""

from __future__ import annotations

from sqlglot import exp

from mltables.dialect.source_columns import sources_of
from mltables.dialect.syntax_nodes import find_all
from mltables.views import VIEWS


def qualify(query: exp.Query, schema: str) -> None:
    """Adds the other view's name to these columns, in place, in each SELECT of both views.

    Args:
        query: its table names already point to DuckDB's views in ``schema``.
    """
    for select in find_all(query, exp.Select):
        names = {
            source.name: source.alias_or_name
            for source in sources_of(select)
            if isinstance(source, exp.Table) and source.db == schema
        }
        for view in names.keys() & VIEWS.keys():
            for name, other in VIEWS[view].left_to.items():
                if other in names:
                    _qualify(select, name, names[other])


def _qualify(select: exp.Select, name: str, source: str) -> None:
    order = select.args.get("order")
    is_alias = any(projection.alias.lower() == name for projection in _aliased(select))
    sorted_by = set(map(id, find_all(order, exp.Column))) if order and is_alias else set()
    for column in list(find_all(select, exp.Column)):
        if column.table or column.name.lower() != name or id(column) in sorted_by:
            continue
        if column.find_ancestor(exp.Select) is select:
            column.set("table", exp.to_identifier(source, quoted=True))


def _aliased(select: exp.Select) -> list[exp.Expr]:
    """Returns the projections whose alias is not the name of the column that they show."""
    return [
        projection
        for projection in select.expressions
        if isinstance(projection, exp.Alias) and projection.this.name != projection.alias
    ]
