"""Removes the join with ``traces`` from statements that explode a list and name no other column of
the trace than its ids and time.

``FROM trace_unified LATERAL VIEW explode(spans) t AS s`` is a join of the rows of traces with those
of spans (``exploded_lists.py``). A row of ``spans`` or ``assessments`` has the ids and the time of
its trace, and belongs to a trace that has a row. So the join would only find one trace for each
row, and the rows are read without it. For ten million spans the join takes two thirds of the
processor time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from sqlglot import exp

from mltables import trace_view
from mltables.dialect import map_lookups
from mltables.dialect.source_columns import sources_of
from mltables.dialect.syntax_nodes import find_all
from mltables.file_pruning import UNNESTS

ELEMENT: Final = "inner_unjoined"
"""The column with the element, in rows that also have the ids of its trace."""
_OF_ELEMENTS: Final = ("experiment_id", "request_time", "trace_id")
"""The columns of a trace that the rows of its elements have, too."""
_NAMED_OTHERWISE: Final = frozenset((*trace_view.COLUMNS, ELEMENT)) - set(_OF_ELEMENTS)
"""Names that may refer to a column that only the join with ``traces`` has."""
_KEEPING_SIDES: Final = frozenset(("", "LEFT"))
"""Kinds of joins in which a row of an element never lacks its trace."""


def drop_joins(query: exp.Query, schema: str) -> None:
    """Removes from an SQL query, in place, a join of ``traces`` with the rows of an exploded list
    (``spans`` or ``assessments``) if the query uses only columns of the trace that these rows have.

    Args:
        query: its exploded lists are joins (``exploded_lists.join_lists``). The bounds on the
            columns of its tables must be computed before (``file_pruning.where_bounds``), because
            ``trace_unified`` may vanish from the query.
    """
    mentions = [
        table
        for table in find_all(query, exp.Table)
        if table.db == schema and table.name in (trace_view.NAME, trace_view.METADATA_NAME)
    ]
    if len(mentions) != 1:
        return
    (traces,) = mentions
    select = traces.parent_select
    if not isinstance(select, exp.Select) or sources_of(select)[:1] != [traces]:
        return
    words = set(_words(query))
    if map_lookups.columns_of(query) & trace_view.HIDDEN:
        return
    if traces.name != trace_view.NAME or _NAMED_OTHERWISE & words:
        return
    joins = select.args.get("joins") or []
    if any(join.side.upper() not in _KEEPING_SIDES for join in joins):
        return
    unnesting = next((join for join in joins if join.meta.get(UNNESTS) and not join.side), None)
    if unnesting is not None:
        _drop(traces, unnesting, [name for name in _OF_ELEMENTS if name in words])


def _words(query: exp.Query) -> Iterator[str]:
    """Yields the identifiers in a query in lower case, except the names of its tables."""
    for word in map_lookups.identifiers(query):
        if not isinstance(word.parent, exp.Table):
            yield word.name.lower()


def _drop(traces: exp.Table, join: exp.Join, named: list[str]) -> None:
    """Replaces ``traces`` by the rows of a joined list, with the columns of the trace that the
    statement names."""
    joined = join.this
    alias = joined.args["alias"]
    element = alias.columns[-1]
    rows = joined.this
    struct = rows.expressions[-1].this
    rows.set("expressions", [*map(exp.column, named), exp.alias_(struct, ELEMENT)])
    name = traces.args["alias"]
    traces.replace(exp.Subquery(this=rows, alias=name.copy()))
    projected = exp.Select(expressions=[exp.column(ELEMENT, table=name.name)])
    join.set("on", None)
    join.set("kind", "CROSS")
    join.set(
        "this",
        exp.Lateral(
            this=exp.Subquery(this=projected),
            alias=exp.TableAlias(this=alias.this.copy(), columns=[element.copy()]),
        ),
    )
