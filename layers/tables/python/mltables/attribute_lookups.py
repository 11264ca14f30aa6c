"""Rewrites lookups such as ``attributes['k']`` in a statement, so that they read a column that
holds only this attribute (``span_attribute_columns.py``) and not the map of all attributes.

A lookup is rewritten only if it certainly means the map of ``spans`` in the FROM of its own SELECT.
A rewritten statement that fails is run again with the map (``query_server.py``), so that no error
message names a column that the caller did not write.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

from sqlglot import exp

from mltables.column_pruning import needs_all_columns
from mltables.dialect.map_lookups import MapLookup, lookups
from mltables.span_attribute_columns import MAP, PREFIX, VIEW, column_of
from mltables.table_definitions import SPANS, TABLES
from mltables.views import VIEWS

_READS_COLUMNS: Final = "reads_columns"
"""Key in the ``meta`` of a table node of ``spans``: True if the statement reads attribute columns
of it."""
_WITHOUT_MAP: Final = frozenset(
    {table.name for table in TABLES if MAP not in {name for name, *_ in table.columns}}
    | {name for name, view in VIEWS.items() if MAP not in view.columns}
)
"""The tables and views that have no column with the name of the map."""


def spells_columns(query: exp.Query) -> bool:
    """Whether a statement contains a name with the prefix of the attribute columns. Such a
    statement must not be rewritten, because the name could then mean one of these columns."""
    return any(word.name.lower().startswith(PREFIX) for word in query.find_all(exp.Identifier))


def read_columns(query: exp.Query, schema: str) -> None:
    """Makes a query on ``spans`` read attributes from their own columns: changes lookups such as
    ``attributes['k']`` in its syntax tree, in place.

    Args:
        query: its table names already point to DuckDB's views in ``schema``.
    """
    for select in query.find_all(exp.Select):
        sources = sources_of(select)
        spans = [source for source in sources if _is_spans(source, schema)]
        names = [source.alias_or_name.lower() for source in sources]
        if not spans or needs_all_columns(select) or has_alias(select, {MAP, *names}):
            continue
        by_name = {
            table.alias_or_name.lower(): table
            for table in spans
            if names.count(table.alias_or_name.lower()) == 1
        }
        if len(spans) == 1 and all(
            source is spans[0] or _lacks_map(source, schema) for source in sources
        ):
            by_name[""] = spans[0]
        for lookup in own_lookups(select):
            mention = by_name.get(lookup.column.table.lower())
            if mention is not None:
                read_from_column(lookup)
                mark(mention)


def own_lookups(select: exp.Select) -> Iterable[MapLookup]:
    """Yields the lookups ``attributes['k']`` in a SELECT whose key ``k`` may have a column of its
    own. Lookups in subqueries and lambdas of the SELECT are left out, because names may mean
    something else there."""
    for lookup in lookups(select):
        if column_of(lookup.key) is None:
            continue
        if lookup.column.name.lower() != MAP or lookup.column.db:
            continue
        if lookup.node.find_ancestor(exp.Query, exp.Lambda) is select:
            yield lookup


def read_from_column(lookup: MapLookup) -> str:
    """Makes a lookup such as ``attributes['k']`` read the column of this attribute in place of the
    map. Returns the column's name."""
    column = str(column_of(lookup.key))
    lookup.read_from(column)
    return column


def has_alias(select: exp.Select, names: Collection[str]) -> bool:
    """Whether a SELECT gives one of its columns an alias that is one of these names. HAVING, for
    example, would use the alias and not the column of the table."""
    return any(
        isinstance(expression, exp.Alias) and expression.alias.lower() in names
        for expression in select.expressions
    )


def mark(table: exp.Expr) -> None:
    """Marks a mention of the table ``spans`` in a syntax tree, because the statement reads columns
    of single attributes from it. :func:`point_to_columns` then replaces the table there."""
    table.meta[_READS_COLUMNS] = True


def point_to_columns(query: exp.Query) -> None:
    """Replaces the table ``spans`` by the view that also has the columns of single attributes,
    wherever :func:`mark` has marked it. Must be called after ``file_pruning.where_bounds``, which
    finds tables by their names."""
    for table in query.find_all(exp.Table):
        if table.meta.get(_READS_COLUMNS):
            table.set("this", exp.to_identifier(VIEW, quoted=True))


def sources_of(select: exp.Select) -> list[exp.Expr]:
    """Returns the sources that a SELECT reads: those in its FROM and in its joins."""
    source = select.args.get("from_")
    joined = [join.this for join in select.args.get("joins") or []]
    return [source.this, *joined] if source else joined


def _is_spans(source: exp.Expr, schema: str) -> bool:
    return isinstance(source, exp.Table) and source.db == schema and source.name == SPANS.name


def _lacks_map(source: exp.Expr, schema: str) -> bool:
    """Whether a source certainly has no column with the name of the map."""
    if isinstance(source, exp.Table):
        return source.db == schema and source.name in _WITHOUT_MAP
    alias = source.args.get("alias")
    return (
        isinstance(source, exp.Lateral)
        and alias is not None
        and bool(alias.columns)
        and all(column.name.lower() != MAP for column in alias.columns)
    )
