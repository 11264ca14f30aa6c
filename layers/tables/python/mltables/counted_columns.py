"""Replaces ``count(column)`` by ``count(*)`` where the column identifies rows and so is never NULL.

Ids of spans are random, so that they are the largest column of a table after the attributes. A
count of rows needs none of them.
"""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from mltables.dialect.source_columns import sources_of
from mltables.dialect.syntax_nodes import find_all
from mltables.file_pruning import may_be_absent, renames_columns
from mltables.otel_spans_view import NAME as OTEL_SPANS
from mltables.table_definitions import SPANS, TABLES

_IDS: Final = {table.name: frozenset(table.identity.split(", ")) - {""} for table in TABLES}
_NEVER_NULL: Final = {**_IDS, OTEL_SPANS: _IDS[SPANS.name] - {"experiment_id"}}
"""The columns that identify rows, by table or view."""
_SETS: Final = (exp.Rollup, exp.Cube, exp.GroupingSets)


def count_rows(query: exp.Query, schema: str) -> None:
    """Replaces ``count(column)`` by ``count(*)`` in a SQL query, in place, for columns of tables
    that are never NULL.

    Args:
        query: its table names point to DuckDB's views in the schema.
    """
    for call in list(find_all(query, exp.Anonymous)):
        if call.name.lower() == "count" and len(call.expressions) == 1:
            column = call.expressions[0]
            if isinstance(column, exp.Column) and not column.db:
                select = call.find_ancestor(exp.Query, exp.Lambda, exp.Pivot)
                if not isinstance(select, exp.Select) or _is_over_groups(call, select):
                    continue
                if _is_never_null(column, select, schema):
                    column.replace(exp.Star())


def _is_over_groups(call: exp.Expr, select: exp.Select) -> bool:
    """Whether a call is in a window over groups. There DuckDB refuses a column that is no group."""
    window = call.find_ancestor(exp.Window, exp.Select)
    return select.args.get("group") is not None and isinstance(window, exp.Window)


def _is_never_null(column: exp.Column, select: exp.Select, schema: str) -> bool:
    sources = sources_of(select)
    alias, name = column.table.lower(), column.name.lower()
    named = [source for source in sources if source.alias_or_name.lower() == alias]
    if not alias and len(sources) == 1 and not select.args.get("laterals"):
        named = sources
    group = select.args.get("group")
    if len(named) != 1 or (group and any(True for _ in find_all(group, *_SETS))):
        return False
    (mention,) = named
    return (
        isinstance(mention, exp.Table)
        and mention.db == schema
        and name in _NEVER_NULL.get(mention.name, ())
        and not mention.args.get("pivots")
        and not renames_columns(mention)
        and not may_be_absent(mention, select)
    )
