"""Rewrites lookups such as ``attributes['k']`` and ``trace_metadata['k']`` in a statement, so that
they read a column that holds only this value (``span_attribute_columns.py``,
``trace_metadata_columns.py``) and not the whole map.

A lookup is rewritten only if it certainly means the map of a table or view in the FROM of its own
SELECT. A rewritten statement that fails is run again with the map (``query_server.py``), so that no
error message names a column that the caller did not write.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final, NamedTuple

from sqlglot import exp

from mltables import span_attribute_columns, trace_metadata_columns, trace_view
from mltables.column_pruning import needs_all_columns
from mltables.dialect.map_lookups import MapLookup, lookups
from mltables.dialect.source_columns import sources_of
from mltables.dialect.syntax_nodes import find_all
from mltables.file_pruning import selects_roots
from mltables.table_definitions import SPANS, TABLES, TRACES
from mltables.views import VIEWS


class _Map(NamedTuple):
    """A map of which some keys have columns."""

    name: str
    sources: Mapping[str, Callable[[str], str | None]]
    """The tables and views with this map. The function returns the column of a key, or None."""
    lacking: frozenset[str]
    """The tables and views that have no column with the name of the map."""


def _map(name: str, sources: Mapping[str, Callable[[str], str | None]]) -> _Map:
    lacking = {
        table.name for table in TABLES if name not in {column for column, *_ in table.columns}
    }
    lacking |= {view for view, of in VIEWS.items() if name not in of.columns}
    return _Map(name, sources, frozenset(lacking))


_ATTRIBUTES: Final = _map(
    span_attribute_columns.MAP, {SPANS.name: span_attribute_columns.column_of}
)
_METADATA: Final = _map(
    trace_metadata_columns.MAP,
    {
        TRACES.name: trace_metadata_columns.column_of,
        trace_view.NAME: trace_metadata_columns.viewed_column_of,
        trace_view.METADATA_NAME: trace_metadata_columns.viewed_column_of,
    },
)
_PREFIXES: Final = (
    span_attribute_columns.PREFIX,
    trace_metadata_columns.PREFIX,
    trace_view.LENGTH,
)
_READS_COLUMNS: Final = "reads_columns"
"""Key in the ``meta`` of a table node: True if the statement reads columns of it that only its view
``Table.derived_view`` has."""
_DERIVED_VIEWS: Final = {table.name: table.derived_view for table in (SPANS, TRACES)}


def spells_columns(query: exp.Query) -> bool:
    """Whether a SQL statement contains a name with the prefix of the columns for single keys of a
    map, or for lengths of texts. Such a statement must not be rewritten, because the name could
    then mean such a column."""
    return any(word.name.lower().startswith(_PREFIXES) for word in find_all(query, exp.Identifier))


def read_columns(query: exp.Query, schema: str) -> None:
    """Changes an SQL query, in place: lookups such as ``attributes['k']`` in ``spans``, ``traces``
    and the views of traces read the column of the key, where it has one, and not the whole map.

    Args:
        query: its table names already point to the views in the DuckDB schema ``schema``.
    """
    for select in find_all(query, exp.Select):
        for looked_up in (_ATTRIBUTES, _METADATA):
            _read_columns_of(select, schema, looked_up)


def _read_columns_of(select: exp.Select, schema: str, looked_up: _Map) -> None:
    sources = sources_of(select)
    having = [source for source in sources if _has_map(source, schema, looked_up)]
    names = [source.alias_or_name.lower() for source in sources]
    if not having or needs_all_columns(select) or has_alias(select, {looked_up.name, *names}):
        return
    by_name = {
        table.alias_or_name.lower(): table
        for table in having
        if names.count(table.alias_or_name.lower()) == 1
    }
    if len(having) == 1 and all(
        source is having[0] or _lacks_map(source, schema, looked_up) for source in sources
    ):
        by_name[""] = having[0]
    for lookup in own_lookups(select, looked_up.name):
        mention = by_name.get(lookup.column.table.lower())
        column = mention and _column(mention, looked_up, lookup.key)
        if mention is not None and column:
            if not lookup.column.table:
                # An alias of the SELECT, or a column merged by USING, may have the column's name.
                lookup.column.set("table", exp.to_identifier(mention.alias_or_name, quoted=True))
            lookup.read_from(column)
            if mention.name in _DERIVED_VIEWS:
                mark(mention)


def _column(mention: exp.Expr, looked_up: _Map, key: str) -> str | None:
    """Returns the column in which a mention of a table has the values of a key."""
    of_roots = span_attribute_columns.ROOT_COLUMNS.get(key)
    is_of_spans = mention.name == SPANS.name
    if of_roots and is_of_spans and isinstance(mention, exp.Table) and selects_roots(mention):
        return of_roots
    return looked_up.sources[mention.name](key)


def own_lookups(select: exp.Select, name: str = span_attribute_columns.MAP) -> Iterable[MapLookup]:
    """Yields the lookups in a SELECT that read a map of this name, such as ``attributes['k']``.
    Lookups in subqueries and lambdas of the SELECT are left out, because names may mean something
    else there."""
    for lookup in lookups(select):
        if lookup.column.name.lower() != name or lookup.column.db:
            continue
        if lookup.node.find_ancestor(exp.Query, exp.Lambda) is select:
            yield lookup


def read_from_column(lookup: MapLookup) -> str:
    """Makes a lookup such as ``attributes['k']`` read the column of this attribute in place of the
    map. Returns the column's name."""
    column = str(span_attribute_columns.column_of(lookup.key))
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
    """Marks a mention of the table ``spans`` or ``traces`` in a syntax tree, because the statement
    reads single keys of its maps, which have columns. :func:`point_to_columns` then replaces it."""
    table.meta[_READS_COLUMNS] = True


def point_to_columns(query: exp.Query) -> None:
    """Replaces the tables ``spans`` and ``traces`` by their views that also have the columns of
    single keys, wherever :func:`mark` has marked them. Must be called after
    ``file_pruning.where_bounds``, which finds tables by their names."""
    for table in find_all(query, exp.Table):
        if table.meta.get(_READS_COLUMNS):
            table.set("this", exp.to_identifier(_DERIVED_VIEWS[table.name], quoted=True))


def _has_map(source: exp.Expr, schema: str, looked_up: _Map) -> bool:
    is_table = isinstance(source, exp.Table) and source.db == schema
    return is_table and source.name in looked_up.sources


def _lacks_map(source: exp.Expr, schema: str, looked_up: _Map) -> bool:
    """Whether a source certainly has no column with the name of the map."""
    if isinstance(source, exp.Table):
        return source.db == schema and source.name in looked_up.lacking
    alias = source.args.get("alias")
    return (
        isinstance(source, exp.Lateral)
        and alias is not None
        and bool(alias.columns)
        and all(column.name.lower() != looked_up.name for column in alias.columns)
    )
