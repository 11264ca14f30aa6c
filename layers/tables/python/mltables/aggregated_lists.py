"""Replaces calls that make one value of the list of each trace's spans or assessments, such as
``size(filter(spans, s -> …))``, by aggregates over the tables ``spans`` and ``assessments``.

The view ``trace_unified`` would build the list with all fields of all spans. The lists of a million
traces need more memory than a query has; an aggregate keeps one value for each trace. These calls
are replaced, where ``list`` is ``spans`` or ``assessments``:

- ``size(list)``, ``size(filter(list, x -> …))``,
- ``exists(list, x -> …)``, ``forall(list, x -> …)``,
- ``try_element_at(list, 1).field`` and ``get(list, 0).field``, also of ``filter(list, x -> …)``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from sqlglot import exp

from mltables import attribute_lookups, event_names, trace_joins, trace_view
from mltables.column_pruning import needs_all_columns
from mltables.dialect import map_lookups
from mltables.dialect.row_generators import Duck
from mltables.dialect.source_columns import sources_of
from mltables.dialect.syntax_nodes import find_all
from mltables.file_pruning import BOUNDED_BY, UNNESTS, unnested_names
from mltables.inlined_ctes import NONDETERMINISTIC
from mltables.span_attribute_columns import MAP, column_of
from mltables.table_columns import Table
from mltables.table_definitions import ASSESSMENTS, SPANS
from mltables.trace_joins import KEY

VALUE: Final = "inner_aggregated_"
"""The prefix of the names of the aggregates' columns."""

_ROWS: Final = "inner_rows_of_"
_ELEMENTS: Final = "inner_elements"
_OWN: Final = (VALUE, _ROWS, _ELEMENTS, *KEY.values())
"""How the names begin that are put into a query."""
_SIZES: Final = frozenset(("size", "cardinality", "array_size"))
_FIRSTS: Final = {"try_element_at": "1", "get": "0"}
"""Functions that return an element of a list, or NULL, with the index of the first element."""
_KEEPING_SIDES: Final = frozenset(("", "LEFT"))
"""Kinds of joins that never add rows without a trace."""

_IS_ANY: Final = "CASE WHEN bool_or({0}) THEN 2 WHEN bool_or(({0}) IS NULL) THEN 1 ELSE 0 END"
"""Aggregate of a condition: 2 if it is true for an element, else 1 if it is NULL for one."""
_OF_ANY: Final = "CASE coalesce({{0}}, 0) WHEN 2 THEN {0} WHEN 1 THEN NULL ELSE {1} END"
"""The value of ``exists`` or ``forall``, made of this aggregate."""


class _List(NamedTuple):
    """A column of ``trace_unified`` with a list for each trace."""

    table: Table
    """The table with a row for each element. It has the same name as the column."""
    fields: Mapping[str, tuple[str, str, tuple[str, ...]]]
    """The fields of an element: type, expression, and the columns of the table that it reads."""
    order: tuple[str, str]
    """The columns of the table that order the list."""


_LISTS: Final = {
    SPANS.name: _List(SPANS, trace_view.SPAN, ("start_time_unix_nano", "span_id")),
    ASSESSMENTS.name: _List(ASSESSMENTS, trace_view.ASSESSMENT, ("create_time", "assessment_id")),
}


class _Call(NamedTuple):
    """A call that makes one value of a list."""

    node: exp.Expr
    """What is replaced."""
    listed: _List
    aggregate: exp.Expr
    value: str
    """The value as a template of DuckDB's SQL: ``{0}`` stands for the result of the aggregate, NULL
    for an empty list."""
    needed: exp.Expr | None
    """A condition that is true for each element that matters; None if all do."""


def may_aggregate(query: exp.Query) -> bool:
    """Whether calls in a query may be replaced by a join with aggregates: the query has no ``*``,
    which would include the columns of the join, and uses no name that is reserved for them. Must be
    called before other steps put mentions of tables into the query."""
    return not needs_all_columns(query) and not any(
        word.name.lower().startswith(_OWN) for word in find_all(query, exp.Identifier)
    )


def aggregate_lists(query: exp.Query, schema: str) -> None:
    """Replaces calls that make one value of the list of a trace's spans or assessments, such as
    ``size(spans)``, by aggregates over ``spans`` or ``assessments``, in place.

    Args:
        query: its table names point to DuckDB's views in the schema. Its paths into JSON and its
            generators are rewritten (``json_paths``, ``row_generators``), and its exploded lists
            are joins (``exploded_lists``).
    """
    for select in list(find_all(query, exp.Select)):
        source = select.args.get("from_")
        traces = source.this if source else None
        if isinstance(traces, exp.Table) and (traces.db, traces.name) == (schema, trace_view.NAME):
            _aggregate(schema, select, traces)


def _aggregate(schema: str, select: exp.Select, traces: exp.Table) -> None:
    joins = select.args.get("joins") or []
    alias = traces.alias_or_name.lower()
    taken = {alias, *_LISTS}
    if any(join.side.upper() not in _KEEPING_SIDES for join in joins):
        return
    if attribute_lookups.has_alias(select, taken) or any(
        parameter.name.lower() in taken
        for function in find_all(select, exp.Lambda)
        for parameter in function.expressions
    ):
        return
    # A column name without a table is that of the trace if all joins only unnest lists.
    beside = unnested_names(select)
    is_alone = beside is not None and not beside & _LISTS.keys()
    if [each.alias_or_name.lower() for each in sources_of(select)].count(alias) != 1:
        return
    names = {alias, ""} if is_alone else {alias}
    calls = list(_calls(select, names))
    joined = []
    for listed in _LISTS.values():
        own = [call for call in calls if call.listed is listed]
        if own:
            joined.append(_join(schema, traces, listed, own))
    if joined:
        select.set("joins", [*joined, *joins])


def _calls(select: exp.Select, names: set[str]) -> Iterator[_Call]:
    """Yields the calls in a SELECT that can be replaced, except those in its subqueries."""
    for column in list(find_all(select, exp.Column)):
        listed = _LISTS.get(column.name.lower())
        if listed is None or column.db or column.table.lower() not in names:
            continue
        if column.find_ancestor(exp.Query, exp.Lambda) is not select:
            continue
        call = _call(column, listed)
        if call is not None:
            yield call


def _call(column: exp.Column, listed: _List) -> _Call | None:
    """Returns the call whose list is a column; None if its value cannot be an aggregate."""
    call, condition = _call_on(column), None
    if call is None:
        return None
    if call.name.lower() in ("exists", "forall"):
        return _of_all(call, listed)
    if call.name.lower() == "filter":
        condition = _condition(call, listed)
        call = _call_on(call) if condition is not None else None
    needed = condition.copy() if condition is not None else None
    if call is None:
        return None
    if call.name.lower() in _SIZES and len(call.expressions) == 1:
        counted = Duck(this="count(*)")
        if condition is not None:
            counted = Duck(this="count(CASE WHEN {0} THEN 1 END)", expressions=[condition])
        return _Call(call, listed, counted, "CAST(coalesce({0}, 0) AS INTEGER)", needed)
    field = _field_of_first(call)
    if field is not None and field.name in listed.fields:
        first = _first(listed, field.name, condition)
        return _Call(field.node, listed, first, "{0}", needed)
    return None


def _call_on(argument: exp.Expr) -> exp.Anonymous | None:
    """Returns the call whose first argument this is; None if it is anything else."""
    call = argument.parent
    if isinstance(call, exp.Anonymous) and call.expressions[0] is argument:
        return call
    return None


def _of_all(call: exp.Anonymous, listed: _List) -> _Call | None:
    """Returns a call of ``exists`` or ``forall``. The aggregate of ``forall`` searches for an
    element that refutes the condition."""
    condition = _condition(call, listed)
    if condition is None:
        return None
    is_any = call.name.lower() == "exists"
    if is_any and _is_demanded(call):
        # For WHERE, NULL is as good as false, so elements with NULL do not matter.
        found = Duck(this="bool_or({0})", expressions=[condition])
        return _Call(call, listed, found, "coalesce({0}, false)", condition.copy())
    searched = condition if is_any else exp.Not(this=exp.Paren(this=condition))
    value = _OF_ANY.format(*(("true", "false") if is_any else ("false", "true")))
    needed = Duck(this="({0}) IS NOT FALSE", expressions=[searched.copy()])
    return _Call(call, listed, Duck(this=_IS_ANY, expressions=[searched]), value, needed)


def _is_demanded(condition: exp.Expr) -> bool:
    """Whether a WHERE selects only rows for which a condition is true."""
    parent = condition.parent
    while isinstance(parent, exp.Paren | exp.And):
        parent = parent.parent
    return isinstance(parent, exp.Where)


class _Field(NamedTuple):
    node: exp.Dot
    name: str


def _field_of_first(call: exp.Anonymous) -> _Field | None:
    """Returns the field that is read of the first element of a call's list; None if the call does
    anything else."""
    dot = call.parent
    if call.name.lower() not in _FIRSTS or len(call.expressions) != 2:
        return None
    index = call.expressions[1]
    is_first = isinstance(index, exp.Literal) and not index.is_string
    if not is_first or index.name != _FIRSTS[call.name.lower()]:
        return None
    if not isinstance(dot, exp.Dot) or dot.this is not call:
        return None
    return _Field(dot, dot.expression.name.lower())


def _condition(call: exp.Anonymous, listed: _List) -> exp.Expr | None:
    """Returns the condition of a call's lambda over the columns of the list's table; None if it
    cannot be written so, as when it uses more than fields of the element."""
    function = call.expressions[1] if len(call.expressions) == 2 else None
    if not isinstance(function, exp.Lambda) or len(function.expressions) != 1:
        return None
    parameter = function.expressions[0].name.lower()
    holder = exp.Paren(this=function.this.copy())
    if any(True for _ in find_all(holder, exp.Column, exp.Query)):
        return None
    # WHERE repeats the condition.
    if any(node.name.lower() in NONDETERMINISTIC for node in find_all(holder, exp.Anonymous)):
        return None
    if any(
        inner.name.lower() == parameter
        for nested in find_all(holder, exp.Lambda)
        for inner in nested.expressions
    ):
        return None
    for word in list(find_all(holder, exp.Identifier)):
        if word.name.lower() != parameter or _is_field(word):
            continue
        dot = word.parent
        if not isinstance(dot, exp.Dot) or dot.this is not word:
            return None
        field = dot.expression.name.lower()
        if field not in listed.fields:
            return None
        names = event_names.replacement(dot) if field == event_names.FIELD else None
        dot.replace(names or (exp.column(MAP) if _is_looked_up(dot) else _field(listed, field)))
    for lookup in map_lookups.lookups(holder):
        attribute_lookups.read_from_column(lookup)
    condition: exp.Expr = holder.this
    return condition


def _is_field(word: exp.Identifier) -> bool:
    return isinstance(word.parent, exp.Dot) and word.parent.expression is word


def _is_looked_up(dot: exp.Dot) -> bool:
    """Whether a field is the map of attributes, of which an attribute is read that may have a
    column (``span_attribute_columns.py``)."""
    bracket = dot.parent
    if dot.expression.name.lower() != MAP or not isinstance(bracket, exp.Bracket):
        return False
    keys = bracket.expressions
    is_key = len(keys) == 1 and isinstance(keys[0], exp.Literal) and keys[0].is_string
    return bracket.this is dot and is_key and column_of(keys[0].name) is not None


def _field(listed: _List, name: str) -> Duck:
    """Returns a field of an element as an expression over the columns of the list's table."""
    _, sql, read = listed.fields[name]
    # The template does not use these columns. They are here so that column pruning sees them.
    return Duck(this=_escaped(sql), expressions=[exp.column(column) for column in read])


def _escaped(sql: str) -> str:
    return f"({sql})".replace("{", "{{").replace("}", "}}")


def _first(listed: _List, field: str, condition: exp.Expr | None) -> exp.Expr:
    """Returns the aggregate for a field of the first element."""
    template = f"arg_min_null({{0}}, ({', '.join(listed.order)}))"
    order = [exp.column(name) for name in listed.order]
    if condition is None:
        return Duck(this=template, expressions=[_field(listed, field), *order])
    template += " FILTER (WHERE {1})"
    return Duck(this=template, expressions=[_field(listed, field), condition, *order])


def _join(schema: str, traces: exp.Table, listed: _List, calls: list[_Call]) -> exp.Join:
    """Returns a join of a table node of ``trace_unified`` with the aggregates, and puts their
    results in place of the calls."""
    rows = exp.Table(
        this=exp.to_identifier(listed.table.name, quoted=True),
        db=exp.to_identifier(schema, quoted=True),
        alias=exp.TableAlias(this=exp.to_identifier(_ELEMENTS)),
    )
    rows.meta[BOUNDED_BY] = traces
    alias = _ROWS + listed.table.name
    by_sql: dict[str, str] = {}
    aggregates = []
    for call in calls:
        text = repr(call.aggregate)
        if text not in by_sql:
            by_sql[text] = f"{VALUE}{len(by_sql)}"
            aggregates.append(exp.alias_(call.aggregate, by_sql[text]))
        result = exp.column(by_sql[text], table=alias)
        call.node.replace(Duck(this=call.value, expressions=[result]))
    keys = [exp.alias_(exp.column(name), inner) for name, inner in KEY.items()]
    grouped = exp.Select(expressions=[*keys, *aggregates]).from_(rows, copy=False)
    needed = [call.needed for call in calls if call.needed is not None]
    if len(needed) == len(calls):
        grouped = grouped.where(exp.or_(*needed), copy=False)
        if all(map(event_names.needs_events, needed)):
            grouped = grouped.where(event_names.has_events(), copy=False)
    grouped.set("group", exp.Group(expressions=[exp.column(name) for name in KEY]))
    if map_lookups.columns_of(grouped) or event_names.reads_column(grouped):
        attribute_lookups.mark(rows)
    joined = trace_joins.joined(
        traces, grouped, alias, list(map(exp.to_identifier, by_sql.values()))
    )
    joined.set("side", "LEFT")
    joined.meta[UNNESTS] = True
    return joined
