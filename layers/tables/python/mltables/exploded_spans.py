"""Replaces ``explode(spans)`` over ``trace_unified`` by a join with the table ``spans``.

The view would build the list of each trace's spans only to take it apart again, in memory that does
not suffice for 20,000 traces. The join streams, and reads only the fields that the statement names.
A statement in another form than ``FROM trace_unified LATERAL VIEW explode(spans) t AS s`` or
``SELECT explode(spans) AS s FROM trace_unified`` stays as it is.
"""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from mltables import attribute_lookups, trace_view
from mltables.attribute_lookups import sources_of
from mltables.column_pruning import needs_all_columns
from mltables.dialect import map_lookups
from mltables.dialect.row_generators import EXPLODED, Duck
from mltables.file_pruning import BOUNDED_BY, UNNESTS
from mltables.span_attribute_columns import COLUMNS
from mltables.table_definitions import SPANS

_LIST: Final = "spans"
_SPAN: Final = "inner_span"
_JOINED: Final = "inner_spans_of"
_KEY: Final = {"experiment_id": "inner_experiment_id", "trace_id": "inner_trace_id"}
"""The join's columns, and their names beside those of the statement."""


def join_spans(query: exp.Query, schema: str, *, from_columns: bool) -> None:
    """Rewrites a query in place.

    Args:
        query: its generators are rewritten (``row_generators``), and its table names point to
            DuckDB's views in the schema.
        from_columns: whether attributes are read from columns where they have some.
    """
    if needs_all_columns(query):
        return  # the columns of the join would be shown, too
    for select in list(query.find_all(exp.Select)):
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
    """Replaces the joins with ``LATERAL (SELECT unnest(spans)) AS t(s)``."""
    joins = select.args.get("joins") or []
    for position, join in enumerate(joins):
        lateral = join.this
        alias = lateral.args.get("alias")
        if not isinstance(lateral, exp.Lateral) or not isinstance(lateral.this, exp.Subquery):
            continue
        if alias is None or len(alias.columns) != 1:
            continue
        projections = lateral.this.this.expressions
        if len(projections) == 1 and _explodes(projections[0], traces, joins):
            columns = _columns(query, [select] if from_columns else [], alias.columns[0].name)
            fields = [*_fields(query, alias.columns[0].name), *columns]
            joins[position] = _join(schema, traces, alias.name, alias.columns[0], fields)
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
    """Replaces ``SELECT unnest(spans) AS s``."""
    joins = select.args.get("joins") or []
    if select.args.get("group") or select.args.get("distinct"):
        return
    for projection in select.expressions:
        if isinstance(projection, exp.Alias) and _explodes(projection, traces, joins):
            fields = list(trace_view.SPAN)
            if _names_what_it_reads(select):
                readers = _readers(query, select) if from_columns else []
                columns = _columns(query, readers, projection.alias)
                fields = [*_fields(query, projection.alias), *columns]
            span = exp.to_identifier(_SPAN)
            joins = [*joins, _join(schema, traces, _JOINED, span, fields)]
            select.set("joins", joins)
            projection.set("this", exp.column(_SPAN, table=_JOINED))
            return


def _names_what_it_reads(select: exp.Select) -> bool:
    """Whether a query around a SELECT uses its columns by their names."""
    parent = select.parent
    if not isinstance(parent, exp.Subquery | exp.CTE):
        return False
    alias = parent.args.get("alias")
    if alias is not None and alias.columns:
        return False
    return isinstance(parent, exp.CTE) or isinstance(parent.parent, exp.From | exp.Join)


def _explodes(projection: exp.Expr, traces: exp.Table, joins: list[exp.Join]) -> bool:
    """Whether an expression is ``unnest(spans)`` of a mention of ``trace_unified``."""
    made = projection.this
    if not isinstance(made, Duck) or made.this != EXPLODED:
        return False
    (column,) = made.expressions
    if not isinstance(column, exp.Column) or column.name.lower() != _LIST or column.db:
        return False
    if column.table:
        return column.table.lower() == traces.alias_or_name.lower()
    # Another source may have a column of this name.
    return all(isinstance(join.this, exp.Lateral) for join in joins)


def _join(
    schema: str, traces: exp.Table, alias: str, span: exp.Expr, fields: list[str]
) -> exp.Join:
    """Returns a join of a mention of ``trace_unified`` with its spans, as structs."""
    packed = ", ".join(f"'{field}': {{{number}}}" for number, field in enumerate(fields))
    struct = Duck(this=f"{{{{{packed}}}}}", expressions=[exp.column(field) for field in fields])
    spans = exp.Table(
        this=exp.to_identifier(SPANS.name, quoted=True),
        db=exp.to_identifier(schema, quoted=True),
        alias=exp.TableAlias(this=exp.to_identifier("inner_spans")),
    )
    spans.meta[BOUNDED_BY] = traces
    if not set(fields).issubset(trace_view.SPAN):
        attribute_lookups.mark(spans)
    keys = [exp.alias_(exp.column(name), inner) for name, inner in _KEY.items()]
    rows = exp.Select(expressions=[*keys, exp.alias_(struct, _SPAN)]).from_(spans, copy=False)
    columns = [*(exp.to_identifier(name) for name in _KEY.values()), span.copy()]
    name = traces.alias_or_name
    conditions = [
        exp.EQ(this=exp.column(column, table=name), expression=exp.column(inner, table=alias))
        for column, inner in _KEY.items()
    ]
    joined = exp.Join(
        this=exp.Subquery(
            this=rows, alias=exp.TableAlias(this=exp.to_identifier(alias), columns=columns)
        ),
        on=exp.and_(*conditions),
    )
    joined.meta[UNNESTS] = True
    return joined


def _columns(query: exp.Query, readers: list[exp.Select], span: str) -> list[str]:
    """Lets lookups of attributes of an exploded span read columns, and returns these. They become
    fields of the span, so a span that is used as a value has none.

    Args:
        readers: the SELECTs in which the name of the span means a column of the exploded spans,
            unless a source or a column of their own has this name.
        span: its name.
    """
    name = span.lower()
    columns: set[str] = set()
    if _is_value(query, span):
        return []
    for select in readers:
        names = {source.alias_or_name.lower() for source in sources_of(select)}
        if name in names or attribute_lookups.has_alias(select, {name}):
            continue
        for lookup in attribute_lookups.own_lookups(select):
            if lookup.column.table.lower() == name:
                column = COLUMNS[lookup.key]
                lookup.read_from(column)
                columns.add(column)
    return sorted(columns)


def _readers(query: exp.Query, select: exp.Select) -> list[exp.Select]:
    """Returns the SELECTs that read only the rows of a SELECT, which is a subquery or a common
    table expression."""
    parent = select.parent
    mentions: list[exp.Expr] = [parent] if isinstance(parent, exp.Subquery) else []
    if isinstance(parent, exp.CTE):
        name = parent.alias
        if [each.alias for each in query.find_all(exp.CTE)].count(name) == 1:
            tables = query.find_all(exp.Table)
            mentions += [table for table in tables if not table.db and table.name == name]
    readers = [mention.parent_select for mention in mentions]
    return [
        reader
        for reader, mention in zip(readers, mentions, strict=True)
        if reader is not None and sources_of(reader) == [mention]
    ]


def _is_value(query: exp.Query, span: str) -> bool:
    return any(column.name.lower() == span.lower() for column in query.find_all(exp.Column))


def _fields(query: exp.Query, span: str) -> list[str]:
    """Returns the fields of the spans that the query may use: those that it names, or all if it
    uses a span as a value.

    Args:
        span: the name of a span in the query.
    """
    if _is_value(query, span):
        return list(trace_view.SPAN)
    words = {word.name.lower() for word in map_lookups.identifiers(query)}
    return [name for name in trace_view.SPAN if name in words] or ["span_id"]
