"""Column pruning: finds the tables that a statement reads and the columns that it names.

The engine of a query gets only these columns. If a column is missing by mistake, the engine refuses
the statement; a result is never wrong. So a statement reads all columns if its meaning depends on
the columns that a table has: ``*``, ``COLUMNS``, ``PIVOT``, ``NATURAL JOIN``, a table used as a
value, columns that are renamed by position.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from sqlglot import exp

from mltables import event_names, span_attribute_columns, time_travel, trace_metadata_columns
from mltables.dialect import map_lookups
from mltables.dialect.source_columns import sources_of
from mltables.dialect.syntax_nodes import find_all
from mltables.file_pruning import renames_columns
from mltables.table_columns import Table
from mltables.table_definitions import SPANS, TABLES, TRACES
from mltables.views import VIEWS

Columns = frozenset[str]

_OF_ALL: Final = (exp.Columns, exp.Pivot)
_NAMING: Final = (exp.Star, exp.Join, exp.TableAlias, exp.Table, exp.Column)
"""Nodes that decide together whether a query depends on columns that it does not name."""


def columns_read(query: exp.Query, schema: str) -> Mapping[str, Columns]:
    """Returns the columns that an SQL query must read of each view in the schema: of current
    tables, of past versions of tables, and of the views of ``views.py``.

    Args:
        query: its table names already point to DuckDB's views.
    """
    named = {table.name for table in find_all(query, exp.Table) if table.db == schema}
    words = None if needs_all_columns(query) else _identifiers(query)
    reads = {
        view: frozenset(
            name for name, *_ in table.columns if words is None or name.lower() in words
        )
        for table in TABLES
        for view in sorted(named)
        if time_travel.table_of(view)[0] == table.name
    }
    looked_up = map_lookups.columns_of(query)
    if event_names.reads_column(query):
        looked_up |= {span_attribute_columns.EVENT_NAMES}
    for table in (SPANS, TRACES):
        if table.name in reads:
            reads[table.name] |= {name for name in looked_up if _is_of(table, name)}
    for view in sorted(VIEWS.keys() & named):
        columns = VIEWS[view].columns
        read = {name for name in columns if words is None or name in words}
        read |= looked_up & VIEWS[view].hidden
        read -= {
            name
            for name, other in VIEWS[view].left_to.items()
            if (joins := _joins_of(query, view, other))
            and not _is_mentioned(query, view, name, qualified=any(map(_shows_all, joins)))
        }
        _add_view(reads, view, frozenset(read))
    return reads


def all_columns(reads: Mapping[str, Columns]) -> Mapping[str, Columns]:
    """Returns the system tables and views that an SQL statement reads (``reads``), each with all of
    its columns."""
    whole = {
        view: frozenset(name for name, *_ in table.columns)
        for table in TABLES
        for view in reads
        if time_travel.table_of(view)[0] == table.name
    }
    for view in sorted(VIEWS.keys() & reads.keys()):
        _add_view(whole, view, frozenset(VIEWS[view].columns))
    return whole


def _add_view(reads: dict[str, Columns], view: str, columns: Columns) -> None:
    reads[view] = columns
    for table, needed in VIEWS[view].tables_read(columns).items():
        reads[table] = reads.get(table, frozenset()) | needed


def _joins_of(query: exp.Query, view: str, other: str) -> list[exp.Select]:
    """Returns the SELECTs of which two views are sources."""
    return [
        select
        for select in find_all(query, exp.Select)
        if {view, other} <= {source.name for source in sources_of(select)}
    ]


def _shows_all(select: exp.Select) -> bool:
    return any(projection.is_star for projection in select.expressions)


def _is_mentioned(query: exp.Query, view: str, name: str, *, qualified: bool) -> bool:
    """Whether a query names a column of a view: together with the view, as in ``u.endpoint_name``,
    or, unless ``qualified``, alone in a SELECT of the view. (``SELECT *`` of both views must not
    show the column, which the statement may then name alone.)"""
    mentions = (table for table in find_all(query, exp.Table) if table.name == view)
    aliases = {table.alias_or_name.lower() for table in mentions} | (
        {""} if not qualified else set()
    )
    return any(
        column.name.lower() == name
        and column.table.lower() in aliases
        and (column.table or _has_source(column.find_ancestor(exp.Select), view))
        for column in find_all(query, exp.Column)
    )


def _has_source(select: exp.Select | None, view: str) -> bool:
    return select is not None and any(source.name == view for source in sources_of(select))


def _is_of(table: Table, name: str) -> bool:
    """Whether a column that a lookup reads may be one of the table's."""
    if table is SPANS:
        return name.startswith(span_attribute_columns.PREFIX)
    return name in trace_metadata_columns.VIEWED.values()


def _identifiers(query: exp.Query) -> frozenset[str]:
    """Returns the identifiers in a query, except the names of its tables."""
    return frozenset(
        word.name.lower()
        for word in map_lookups.identifiers(query)
        if not isinstance(word.parent, exp.Table)
    )


def needs_all_columns(query: exp.Query) -> bool:
    """Whether the meaning of an SQL query depends on columns that the query does not name, as with
    ``*``."""
    rows, columns = set[str](), set[str]()
    for node in find_all(query, *_OF_ALL, *_NAMING):
        if isinstance(node, _OF_ALL):
            return True
        if isinstance(node, exp.Star):
            if not _is_count_star(node):
                return True
        elif isinstance(node, exp.Join):
            if node.method.upper() == "NATURAL":
                return True
        elif isinstance(node, exp.Table) and renames_columns(node):
            return True
        elif isinstance(node, exp.Table | exp.TableAlias):
            rows.add(node.name.lower())
        elif isinstance(node, exp.Column) and not node.table:
            columns.add(node.name.lower())
    return not rows.isdisjoint(columns)


def _is_count_star(star: exp.Star) -> bool:
    """Whether the star belongs to ``count(*)``. In ``hash(*)``, for example, the result depends on
    the set of columns."""
    call = star.parent
    return isinstance(call, exp.Anonymous) and call.name.lower() == "count"
