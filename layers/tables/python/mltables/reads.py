"""Which tables a statement reads, and which of their columns, as far as its tree tells it.

A query gets these columns and no others. A column that is left out by mistake makes the engine
refuse the statement; it never changes an answer. So whatever takes its meaning from the columns
that a table has (``*``, ``COLUMNS``, ``PIVOT``, ``NATURAL JOIN``, a table as a value, columns that
are renamed by position) reads all of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from sqlglot import exp

from mltables.tables import TABLES

Columns = frozenset[str]

_OF_ALL: Final = (exp.Columns, exp.Pivot)


def columns_read(query: exp.Query, schema: str) -> Mapping[str, Columns]:
    """The tables of a schema that the query names, each with its columns that it names.

    Args:
        query: with the names of its tables as DuckDB has them.
    """
    named = {table.name for table in query.find_all(exp.Table) if table.db == schema}
    words = None if _depends_on_all(query) else _words(query)
    return {
        table.name: frozenset(
            name for name, *_ in table.columns if words is None or name.lower() in words
        )
        for table in TABLES
        if table.name in named
    }


def _words(query: exp.Query) -> frozenset[str]:
    return frozenset(word.name.lower() for word in query.find_all(exp.Identifier))


def _depends_on_all(query: exp.Query) -> bool:
    if any(True for _ in query.find_all(*_OF_ALL)):
        return True
    if not all(map(_is_counted, query.find_all(exp.Star))):
        return True
    if any(join.method.upper() == "NATURAL" for join in query.find_all(exp.Join)):
        return True
    aliases = list(query.find_all(exp.TableAlias))
    if any(alias.args.get("columns") and isinstance(alias.parent, exp.Table) for alias in aliases):
        return True
    rows = {alias.name.lower() for alias in aliases}
    rows |= {table.name.lower() for table in query.find_all(exp.Table)}
    return any(
        not column.table and column.name.lower() in rows for column in query.find_all(exp.Column)
    )


def _is_counted(star: exp.Star) -> bool:
    """Whether it is that of ``count(*)``, and not of ``hash(*)``, which has a value for each set of
    columns."""
    call = star.parent
    return isinstance(call, exp.Anonymous) and call.name.lower() == "count"
