"""Rewrites statements that build a list only to count it: ``size(collect_list(x))`` becomes
``count(x)``.

The list may be a column of a common table expression or of a subquery, if everything that names the
column is ``size(…)``. The lists of the spans of all traces do not fit into a query's memory; their
sizes do.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from sqlglot import exp

from mltables.column_pruning import needs_all_columns
from mltables.dialect.row_generators import Duck
from mltables.dialect.syntax_nodes import find_all

_LISTS: Final = frozenset(("collect_list", "array_agg"))
"""Aggregates that make a list of the values that are not NULL."""
_SIZES: Final = frozenset(("size", "cardinality", "array_size"))
_STRUCTS: Final = frozenset(("named_struct", "struct"))
_NUMBER: Final = "CAST({0} AS INTEGER)"
"""Casts a count to the type of ``size()``."""


def count_lists(query: exp.Query) -> None:
    """Replaces lists that a SQL query builds only to count their elements by these counts, in
    place: ``size(collect_list(x))`` becomes ``count(x)``.

    Args: query: its table names point to DuckDB's views or to its common table expressions.
    """
    for size in list(_calls(query, _SIZES)):
        (listed,) = size.expressions
        if _is_list(listed):
            size.replace(_number(_count(listed)))
    expressions = list(find_all(query, exp.CTE))
    names = [expression.alias for expression in expressions]
    if needs_all_columns(query) or any(each.recursive for each in find_all(query, exp.With)):
        return
    for expression in expressions:
        if names.count(expression.alias) == 1:
            _count_columns(query, expression)
    for subquery in list(find_all(query, exp.Subquery)):
        _count_columns(query, subquery)


def _count_columns(query: exp.Query, expression: exp.CTE | exp.Subquery) -> None:
    """Replaces the lists among the columns of a common table expression or subquery."""
    select, alias = expression.this, expression.args.get("alias")
    if not isinstance(alias, exp.TableAlias) or alias.columns:
        return
    if not isinstance(select, exp.Select):
        return
    if select.args.get("distinct") or select.args.get("order"):
        return  # lists compare and sort differently from their sizes
    for projection in select.expressions:
        if isinstance(projection, exp.Alias) and _is_list(projection.this):
            sizes = _sizes(query, expression, projection)
            if sizes:
                projection.set("this", _count(projection.this))
            for size in sizes:
                size.replace(_number(size.expressions[0]))


def _sizes(
    query: exp.Query, expression: exp.CTE | exp.Subquery, projection: exp.Alias
) -> list[exp.Anonymous]:
    """Returns the calls of ``size`` on a column. Empty if the statement may use the column in any
    other way."""
    name = projection.alias.lower()
    sizes: list[exp.Anonymous] = []
    for word in find_all(query, exp.Identifier):
        column = word.parent
        if word.name.lower() != name or column is projection:
            continue
        if isinstance(column, exp.Table | exp.TableAlias):
            continue
        select = word.find_ancestor(exp.Select)
        if not isinstance(column, exp.Column) or select is None:
            return []
        sources = _sources(select)
        names = [source.alias_or_name.lower() for source in sources]
        if column.args.get("table") is word and name in names:
            continue  # the name of a source
        owners = {each.alias_or_name.lower() for each in sources if _is_of(each, expression)}
        qualifier = column.table.lower() or (names[0] if len(names) == 1 else "")
        is_owned = qualifier in owners and names.count(qualifier) == 1
        size = column.parent
        if column.this is not word or column.db or not is_owned:
            return []
        if not isinstance(size, exp.Anonymous) or size.name.lower() not in _SIZES:
            return []
        sizes.append(size)
    return sizes


def _is_of(source: exp.Expr, expression: exp.CTE | exp.Subquery) -> bool:
    """Whether a source in a FROM is this common table expression or subquery."""
    if isinstance(expression, exp.Subquery):
        return source is expression
    alias = source.args.get("alias")
    return (
        isinstance(source, exp.Table)
        and not source.db
        and source.name == expression.alias
        and not (alias and alias.columns)
    )


def _sources(select: exp.Select) -> list[exp.Expr]:
    source = select.args.get("from_")
    return [each.this for each in ([source] if source else []) + (select.args.get("joins") or [])]


def _is_list(node: exp.Expr) -> bool:
    """Whether an expression is ``collect_list`` or the like over plain values. Other values, such
    as a cast, may fail when they are computed; a count does not compute them, so it would hide the
    error."""
    call = node.this if isinstance(node, exp.Filter) else node
    if not isinstance(call, exp.Anonymous) or call.name.lower() not in _LISTS:
        return False
    return len(call.expressions) == 1 and all(map(_is_plain, _values(call)))


def _values(call: exp.Anonymous) -> list[exp.Expr]:
    """Returns the value that a list collects; if that is a struct, its members."""
    (member,) = call.expressions
    return list(member.expressions) if _is_struct(member) else [member]


def _is_plain(value: exp.Expr) -> bool:
    if isinstance(value, exp.Bracket):
        keys = value.expressions
        return _is_plain(value.this) and all(
            isinstance(key, exp.Literal) and key.is_string for key in keys
        )
    return isinstance(value, exp.Column | exp.Literal | exp.Null)


def _is_struct(member: exp.Expr) -> bool:
    return isinstance(member, exp.Anonymous) and member.name.lower() in _STRUCTS


def _count(listed: exp.Expr) -> exp.Expr:
    """Returns the expression for the size of the list that ``listed`` makes."""
    call = listed.this if isinstance(listed, exp.Filter) else listed
    (member,) = call.expressions
    call.replace(counted := exp.Anonymous(this="count", expressions=[member]))
    return counted if listed is call else listed


def _number(count: exp.Expr) -> Duck:
    return Duck(this=_NUMBER, expressions=[count.copy()])


def _calls(tree: exp.Expr, names: frozenset[str]) -> Iterator[exp.Anonymous]:
    for call in find_all(tree, exp.Anonymous):
        if call.name.lower() in names and len(call.expressions) == 1:
            yield call
