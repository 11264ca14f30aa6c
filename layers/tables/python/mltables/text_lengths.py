"""Reads the length of a trace's ``request`` or ``response`` from a column of its own
(``trace_view.LENGTHS``) where a statement needs no more of the text, as in
``avg(length(response))``.

The view joins traces with their root spans, which have these texts. The column is computed before
the join, so the join carries numbers in place of texts, which take most of its time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from sqlglot import exp

from mltables import trace_view
from mltables.column_pruning import needs_all_columns
from mltables.dialect import map_lookups
from mltables.dialect.source_columns import COLUMNS, sources_of
from mltables.dialect.syntax_nodes import find_all

_CALLS: Final = frozenset(("length", "len", "char_length", "character_length"))
_NAMED: Final = frozenset(
    name
    for name, columns in COLUMNS.items()
    if not set(columns).isdisjoint(trace_view.LENGTHS.values())
)
"""The tables and views that have a column with the name of one of these texts."""


def read_lengths(query: exp.Query, schema: str) -> None:
    """Changes an SQL query, in place: calls such as ``length(response)`` read the column of
    ``trace_unified`` with this length. A text that the query uses in any other way stays as it is.

    Args:
        query: its table names already point to the views in the DuckDB schema ``schema``.
    """
    mentions = [
        table
        for table in find_all(query, exp.Table)
        if (table.db, table.name) == (schema, trace_view.NAME)
    ]
    if len(mentions) != 1 or needs_all_columns(query):
        return
    for length, text in trace_view.LENGTHS.items():
        calls = [_call(word, mentions[0]) for word in _words(query, text)]
        if None in calls:
            continue
        for call in filter(None, calls):
            map_lookups.read_from(call, call.expressions[0], length)


def _words(query: exp.Query, text: str) -> Iterator[exp.Identifier]:
    return (word for word in find_all(query, exp.Identifier) if word.name.lower() == text)


def _call(word: exp.Identifier, traces: exp.Table) -> exp.Expr | None:
    """Returns the call that computes the length of a text of ``traces``; None if an identifier
    certainly or possibly means something else."""
    column = word.parent
    if not isinstance(column, exp.Column) or column.this is not word or column.db:
        return None
    call = column.parent
    if not isinstance(call, exp.Anonymous) or call.name.lower() not in _CALLS:
        return None
    select = call.find_ancestor(exp.Query, exp.Lambda)
    if call.expressions != [column] or not isinstance(select, exp.Select):
        return None
    sources = sources_of(select)
    names = [source.alias_or_name.lower() for source in sources]
    own = traces.alias_or_name.lower()
    if not any(source is traces for source in sources) or names.count(own) != 1:
        return None
    # Subqueries have no such column, or the query would name it once more.
    is_alone = all(source is traces or source.name not in _NAMED for source in sources)
    if column.table.lower() == own or (not column.table and is_alone):
        return call
    return None
