"""Replaces ``explode(spans)`` and ``explode(assessments)`` over ``trace_unified`` by joins with the
tables ``spans`` and ``assessments``.

The view would build the list of each trace's spans only to take it apart again, which needs too
much memory for 20,000 traces. The join streams, and reads only the fields that the statement names.
Only statements of two forms are rewritten: ``FROM trace_unified LATERAL VIEW explode(spans) t AS
s`` or ``SELECT explode(spans) AS s FROM trace_unified``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from sqlglot import exp

from mltables import attribute_lookups, span_attribute_columns, trace_joins, trace_view
from mltables.column_pruning import needs_all_columns
from mltables.dialect import map_lookups
from mltables.dialect.row_generators import EXPLODED, Duck
from mltables.dialect.source_columns import sources_of
from mltables.dialect.syntax_nodes import find_all
from mltables.file_pruning import BOUNDED_BY, UNNESTS
from mltables.table_columns import Table
from mltables.table_definitions import ASSESSMENTS, SPANS
from mltables.trace_joins import KEY

_ELEMENT: Final = "inner_element"
_JOINED: Final = "inner_elements_of"


class _ListColumn(NamedTuple):
    """A column of ``trace_unified`` with a list for each trace."""

    table: Table
    """The table with a row for each element. It has the same name as the column."""
    fields: Mapping[str, tuple[str, tuple[str, ...]]]
    """The fields of an element: the expression, and the columns of the table that it reads."""


_LISTS: Final = (
    _ListColumn(SPANS, {name: of[1:] for name, of in trace_view.SPAN.items()}),
    _ListColumn(ASSESSMENTS, {name: of[1:] for name, of in trace_view.ASSESSMENT.items()}),
)


def join_lists(query: exp.Query, schema: str, *, from_columns: bool) -> None:
    """Replaces ``explode()`` of the lists of ``trace_unified`` in a query by joins with the tables
    ``spans`` and ``assessments``, in place.

    Args:
        query: its generators such as ``explode()`` were already rewritten by ``row_generators``,
            and its table names point to DuckDB's views in ``schema``.
        from_columns: whether attributes of spans are read from columns where they have some.
    """
    if needs_all_columns(query):
        return  # the result would show the columns of the join, too
    for select in list(find_all(query, exp.Select)):
        source = select.args.get("from_")
        traces = source.this if source else None
        if not isinstance(traces, exp.Table) or traces.db != schema:
            continue
        if traces.name == trace_view.NAME:
            _join_laterals(query, schema, select, traces, from_columns=from_columns)
            _join_projection(query, schema, select, traces, from_columns=from_columns)


def _join_laterals(
    query: exp.Query,
    schema: str,
    select: exp.Select,
    traces: exp.Table,
    *,
    from_columns: bool,
) -> None:
    """Replaces joins such as ``LATERAL (SELECT unnest(spans)) AS t(s)`` by joins with the table of
    the list."""
    joins = select.args.get("joins") or []
    for position, join in enumerate(joins):
        lateral = join.this
        alias = lateral.args.get("alias")
        if not isinstance(lateral, exp.Lateral) or not isinstance(lateral.this, exp.Subquery):
            continue
        if alias is None or len(alias.columns) != 1:
            continue
        projections = lateral.this.this.expressions
        exploded = _exploded(projections[0], traces, joins) if len(projections) == 1 else None
        if exploded is not None:
            element = alias.columns[0]
            fields = _fields(query, exploded, [select] if from_columns else [], element.name)
            joins[position] = _join(schema, traces, exploded, alias.name, element, fields)
            joins[position].set("side", join.side or None)
    select.set("joins", joins)


def _join_projection(
    query: exp.Query,
    schema: str,
    select: exp.Select,
    traces: exp.Table,
    *,
    from_columns: bool,
) -> None:
    """Replaces a projection such as ``SELECT unnest(spans) AS s`` by a join with the table of the
    list."""
    joins = select.args.get("joins") or []
    if select.args.get("group") or select.args.get("distinct"):
        return
    for projection in select.expressions:
        if not isinstance(projection, exp.Alias):
            continue
        exploded = _exploded(projection, traces, joins)
        if exploded is not None:
            fields = list(exploded.fields)
            if _names_what_it_reads(select):
                readers = _readers(query, select) if from_columns else []
                fields = _fields(query, exploded, readers, projection.alias)
            element = exp.to_identifier(_ELEMENT)
            joins = [*joins, _join(schema, traces, exploded, _JOINED, element, fields)]
            select.set("joins", joins)
            projection.set("this", exp.column(_ELEMENT, table=_JOINED))
            return


def _names_what_it_reads(select: exp.Select) -> bool:
    """Whether a SELECT is a common table expression, or a subquery in FROM, whose columns keep
    their names, so that the query around it uses them by name."""
    parent = select.parent
    if not isinstance(parent, exp.Subquery | exp.CTE):
        return False
    alias = parent.args.get("alias")
    if alias is not None and alias.columns:
        return False
    return isinstance(parent, exp.CTE) or isinstance(parent.parent, exp.From | exp.Join)


def _exploded(projection: exp.Expr, traces: exp.Table, joins: list[exp.Join]) -> _ListColumn | None:
    """Returns the list column of ``traces`` (a table node of ``trace_unified``) that an expression
    such as ``unnest(spans)`` explodes; None if it explodes anything else."""
    made = projection.this
    if not isinstance(made, Duck) or made.this != EXPLODED:
        return None
    (column,) = made.expressions
    if not isinstance(column, exp.Column) or column.db:
        return None
    if column.table:
        is_of_traces = column.table.lower() == traces.alias_or_name.lower()
    else:  # another source may have a column of this name
        is_of_traces = all(isinstance(join.this, exp.Lateral) for join in joins)
    name = column.name.lower()
    return next((each for each in _LISTS if is_of_traces and each.table.name == name), None)


def _join(
    schema: str,
    traces: exp.Table,
    exploded: _ListColumn,
    alias: str,
    element: exp.Expr,
    fields: list[str],
) -> exp.Join:
    """Returns a join of a table node of ``trace_unified`` with the elements of a list, as structs.

    Args:
        fields: fields of the elements, or columns of the table that become fields.
    """
    packed, read = [], {}
    for field in fields:
        sql, columns = exploded.fields.get(field, (field, (field,)))
        packed.append(f"'{field}': {sql}")
        read.update(dict.fromkeys(columns))
    # The template does not use these columns. They are here so that column pruning sees them.
    template = f"{{{', '.join(packed)}}}".replace("{", "{{").replace("}", "}}")
    struct = Duck(this=template, expressions=[exp.column(name) for name in read])
    rows_of = exp.Table(
        this=exp.to_identifier(exploded.table.name, quoted=True),
        db=exp.to_identifier(schema, quoted=True),
        alias=exp.TableAlias(this=exp.to_identifier("inner_elements")),
    )
    rows_of.meta[BOUNDED_BY] = traces
    if not exploded.fields.keys() >= set(fields):
        attribute_lookups.mark(rows_of)
    keys = [exp.alias_(exp.column(name), inner) for name, inner in KEY.items()]
    rows = exp.Select(expressions=[*keys, exp.alias_(struct, _ELEMENT)]).from_(rows_of, copy=False)
    joined = trace_joins.joined(traces, rows, alias, [element.copy()])
    joined.meta[UNNESTS] = True
    return joined


def _fields(
    query: exp.Query, exploded: _ListColumn, readers: list[exp.Select], element: str
) -> list[str]:
    """Returns the fields of the elements that the query may use: those that it names, or all if it
    uses an element as a value. For lookups that read attribute columns, these columns are returned
    in place of the map.

    Args:
        readers: the SELECTs that read the exploded elements. Attributes are read from columns only
            in these, and only if no source or column of the SELECT itself has the name of the
            element.
        element: the name of an element in the query.
    """
    if any(column.name.lower() == element.lower() for column in find_all(query, exp.Column)):
        return list(exploded.fields)
    columns = _columns(readers, element) if exploded.table is SPANS else []
    words = {word.name.lower() for word in map_lookups.identifiers(query)}
    return [*([name for name in exploded.fields if name in words] or ["span_id"]), *columns]


def _columns(readers: list[exp.Select], span: str) -> list[str]:
    """Makes lookups of attributes of an exploded span read attribute columns. Returns the names of
    these columns, which become fields of the span.

    Args:
        readers: see :func:`_fields`.
        span: the name of the span.
    """
    name = span.lower()
    columns: set[str] = set()
    for select in readers:
        names = {source.alias_or_name.lower() for source in sources_of(select)}
        if name in names or attribute_lookups.has_alias(select, {name}):
            continue
        for lookup in attribute_lookups.own_lookups(select):
            has_column = span_attribute_columns.column_of(lookup.key) is not None
            if lookup.column.table.lower() == name and has_column:
                columns.add(attribute_lookups.read_from_column(lookup))
    return sorted(columns)


def _readers(query: exp.Query, select: exp.Select) -> list[exp.Select]:
    """Returns the SELECTs that read only the rows of a SELECT, which is a subquery or a common
    table expression."""
    parent = select.parent
    mentions: list[exp.Expr] = [parent] if isinstance(parent, exp.Subquery) else []
    if isinstance(parent, exp.CTE):
        name = parent.alias
        if [each.alias for each in find_all(query, exp.CTE)].count(name) == 1:
            tables = find_all(query, exp.Table)
            mentions += [table for table in tables if not table.db and table.name == name]
    readers = [mention.parent_select for mention in mentions]
    return [
        reader
        for reader, mention in zip(readers, mentions, strict=True)
        if reader is not None and sources_of(reader) == [mention]
    ]
