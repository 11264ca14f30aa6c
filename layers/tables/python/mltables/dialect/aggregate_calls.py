"""Translates calls of aggregates and window functions with DISTINCT, FILTER, ORDER BY, IGNORE
NULLS, WITHIN GROUP and OVER. Skips NULL where Databricks skips it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

from sqlglot import exp

from mltables.dialect import function_list, grouping, macros
from mltables.dialect.aggregate_functions import (
    AGGREGATES,
    FIRST_OR_LAST,
    OF_NUMBERS,
    WITHIN,
    Aggregate,
)
from mltables.dialect.refusal import StatementRefused
from mltables.dialect.syntax_nodes import find_all

if TYPE_CHECKING:
    from mltables.dialect.sql_generator import Generator

_MOST_GROUPED: Final = 64
"""Most arguments of ``grouping_id()``, whose result has a bit for each."""
_ORDERED: Final = frozenset(("string_agg", "listagg"))


class _Parts(NamedTuple):
    """The clauses around a call of an aggregate: FILTER, OVER and others."""

    condition: str | None
    within: exp.Order | None
    window: exp.Window | None
    ignore_nulls: bool


class _Given(NamedTuple):
    """The translated arguments of a call, with DISTINCT and ORDER BY."""

    arguments: list[str]
    distinct: str
    order: str


def is_aggregate(call: exp.Anonymous) -> bool:
    """Whether a call is one of an aggregate or of a window function."""
    name = call.name.lower()
    return name in AGGREGATES or name in WITHIN or name in function_list.WINDOW


def aggregate(writer: Generator, call: exp.Anonymous, root: exp.Expr | None) -> str:
    """Returns the DuckDB SQL of an aggregate's call with the clauses around it. Raises
    StatementRefused if the call or a clause is not supported.

    Args:
        root: the outermost of FILTER, WITHIN GROUP, IGNORE NULLS and OVER; None if the call has
            none.
    """
    name = call.name.lower()
    parts = _parts(writer, call, root)
    if name in function_list.WINDOW:
        return _window_function(writer, call, parts)
    if name == "grouping_id":
        return _grouping_id(writer, call, parts)
    if name in WITHIN:
        return _within(writer, call, parts)
    if name not in AGGREGATES:
        raise StatementRefused(f"{call.name}() is no aggregate that exists here.")
    definition = AGGREGATES[name]
    arguments = list(call.expressions)
    if name == "count" and len(arguments) == 1 and isinstance(arguments[0], exp.Star):
        return _with_filter_and_window(writer, "count(*)", parts, None)
    distinct = ""
    if arguments and isinstance(arguments[0], exp.Distinct):
        distinct, arguments = "DISTINCT ", list(arguments[0].expressions)
    if name == "count" and len(arguments) > 1:
        arguments = [_all_present(writer, arguments, is_distinct=bool(distinct))]
    writer.count(
        exp.Anonymous(this=call.name, expressions=arguments), definition.least, definition.most
    )
    order, arguments = _order(writer, arguments)
    if name in FIRST_OR_LAST and len(arguments) == 2:
        ignore = isinstance(arguments[1], exp.Boolean) and bool(arguments[1].this)
        parts = parts._replace(ignore_nulls=ignore)
        arguments = arguments[:1]
    if name in _ORDERED and len(arguments) == 1:
        arguments.append(exp.Literal.string(""))
    if parts.within:
        if name not in _ORDERED:
            raise StatementRefused(f"{call.name}() takes no WITHIN GROUP.")
        order = _ordering(writer, parts.within)
    given = _Given([writer.text(argument) for argument in arguments], distinct, order)
    given = _of_kept_rows(arguments, given, parts.condition)
    if name in OF_NUMBERS:
        given = _with_numbers(arguments[0], given, parts.condition)
    return _aggregate_sql(writer, name, given, parts)


def _with_numbers(argument: exp.Expr, given: _Given, condition: str | None) -> _Given:
    """Returns the argument so that a text becomes a number, in rows that FILTER keeps."""
    if not _may_be_text(argument):
        return given
    (summand,) = given.arguments
    if condition and not summand.startswith("CASE WHEN "):
        summand = f"CASE WHEN {condition} THEN {summand} END"
    return given._replace(arguments=[f"inner_summand({summand})"])


def _may_be_text(argument: exp.Expr) -> bool:
    """Whether an argument may be a text whose type DuckDB knows. DuckDB does not know the type of
    an aggregate."""
    if not isinstance(argument, exp.Column | exp.Bracket | exp.Anonymous):
        return False
    return argument.find(exp.Column) is not None and not any(
        map(is_aggregate, find_all(argument, exp.Anonymous))
    )


def _of_kept_rows(arguments: list[exp.Expr], given: _Given, condition: str | None) -> _Given:
    """Returns the arguments so that those that may fail are computed only for rows that FILTER
    keeps. DuckDB computes arguments before FILTER, Databricks after it."""
    if condition is None:
        return given
    texts, order = [], given.order
    for argument, text in zip(arguments, given.arguments, strict=True):
        kept = text
        if argument.find(exp.Column, exp.Var) and macros.may_fail(text):
            kept = f"CASE WHEN {condition} THEN {text} END"
            order = order.replace(text, kept)  # DISTINCT sorts only by its own argument.
        texts.append(kept)
    return _Given(texts, given.distinct, order)


def _aggregate_sql(writer: Generator, name: str, given: _Given, parts: _Parts) -> str:
    """Returns the SQL of an aggregate whose arguments are already translated, with its clauses."""
    definition, first = AGGREGATES[name], given.arguments[0]
    if parts.window and name in FIRST_OR_LAST:
        inner = f"{name.removesuffix('_value')}_value".replace("any_value", "first_value")
        ignoring = " IGNORE NULLS" if parts.ignore_nulls else ""
        return _with_filter_and_window(writer, f"{inner}({first}{ignoring})", parts, None)
    if definition.without_null or parts.ignore_nulls:
        present = f"{first} IS NOT NULL"
        condition = f"({parts.condition}) AND {present}" if parts.condition else present
        parts = parts._replace(condition=condition)
    beside = {
        name: _inside(template, given)
        for name, template in (("least", "min({0})"), ("rows", "regr_count({0}, {1})"))
        if f"{{{name}}}" in definition.outer
    }
    return _with_filter_and_window(
        writer, _inside(definition.inner, given), parts, definition, beside
    )


def _all_present(writer: Generator, arguments: list[exp.Expr], *, is_distinct: bool) -> exp.Expr:
    """Returns an expression that is NULL if one of the arguments is NULL, so that ``count(a, b)``
    skips such a row."""
    given = [writer.text(argument) for argument in arguments]
    present = " AND ".join(f"{text} IS NOT NULL" for text in given)
    value = f"row({', '.join(given)})" if is_distinct else "1"
    return exp.Var(this=f"CASE WHEN {present} THEN {value} END")


def _inside(template: str, given: _Given) -> str:
    """Returns the content of the parentheses, such as ``list(DISTINCT x ORDER BY y)``."""
    sql = template.format(*given.arguments)
    if given.distinct and "(DISTINCT " not in sql:
        opened = sql.index("(") + 1
        sql = sql[:opened] + given.distinct + sql[opened:]
    return sql[:-1] + given.order + sql[-1] if given.order else sql


def _with_filter_and_window(
    writer: Generator,
    inside: str,
    parts: _Parts,
    definition: Aggregate | None,
    beside: Mapping[str, str] = MappingProxyType({}),
) -> str:
    def with_clauses(argument: str) -> str:
        if parts.condition:
            argument = f"{argument} FILTER (WHERE {parts.condition})"
        return writer.over(parts.window, argument) if parts.window else argument

    if definition is None or definition.outer == "{a}":
        return with_clauses(inside)
    others = {name: with_clauses(argument) for name, argument in beside.items()}
    return definition.outer.format(a=with_clauses(inside), **others)


def _within(writer: Generator, call: exp.Anonymous, parts: _Parts) -> str:
    writer.count(call, 1, 1)
    if parts.within is None or len(parts.within.expressions) != 1:
        raise StatementRefused(f"{call.name}() needs WITHIN GROUP (ORDER BY one expression).")
    (ordered,) = parts.within.expressions
    share = writer.text(call.expressions[0])
    if ordered.args.get("desc"):
        if call.name.lower() == "percentile_disc":
            raise StatementRefused("percentile_disc() takes no DESC here.")
        share = f"(1 - {share})"
    sql = WITHIN[call.name.lower()].format(writer.text(ordered.this), share)
    return _with_filter_and_window(writer, sql, parts, None)


def _window_function(writer: Generator, call: exp.Anonymous, parts: _Parts) -> str:
    if parts.window is None:
        raise StatementRefused(f"{call.name}() needs OVER.")
    if parts.condition or parts.within:
        raise StatementRefused(f"{call.name}() takes neither FILTER nor WITHIN GROUP.")
    given = ", ".join(writer.text(expression) for expression in call.expressions)
    if parts.ignore_nulls:
        given += " IGNORE NULLS"
    sql = writer.over(parts.window, f"{call.name.lower()}({given})")
    kind = function_list.WINDOW[call.name.lower()]
    return f"CAST({sql} AS {kind})" if kind else sql


def _grouping_id(writer: Generator, call: exp.Anonymous, parts: _Parts) -> str:
    """Returns the SQL of ``grouping_id(a, b)``: without arguments, of all expressions by which the
    SELECT groups."""
    arguments = list(call.expressions)
    if not arguments:
        select = call.find_ancestor(exp.Select)
        group = select.args.get("group") if select else None
        arguments = grouping.expressions_of(group) if group else []
    written = all(
        not isinstance(by, exp.Tuple | exp.GroupingSets | exp.Literal) for by in arguments
    )
    if not 0 < len(arguments) <= _MOST_GROUPED or not written or parts.window or parts.condition:
        raise StatementRefused("grouping_id() takes the expressions of a GROUP BY.")
    given = ", ".join(writer.text(argument) for argument in arguments)
    return f"CAST(grouping_id({given}) AS BIGINT)"


def _parts(writer: Generator, call: exp.Anonymous, root: exp.Expr | None) -> _Parts:
    parts = _Parts(None, None, None, ignore_nulls=False)
    node = root
    while node is not None and node is not call:
        if isinstance(node, exp.Window):
            parts = parts._replace(window=node)
        elif isinstance(node, exp.Filter):
            parts = parts._replace(condition=writer.text(node.expression.this))
        elif isinstance(node, exp.WithinGroup):
            parts = parts._replace(within=node.expression)
        elif isinstance(node, exp.IgnoreNulls):
            parts = parts._replace(ignore_nulls=True)
        node = node.this
    return parts


def _order(writer: Generator, arguments: list[exp.Expr]) -> tuple[str, list[exp.Expr]]:
    """Splits the arguments of a call. Returns the SQL of the ORDER BY inside the parentheses ("" if
    there is none), and the arguments without it."""
    if not arguments or not isinstance(arguments[-1], exp.Order):
        return "", arguments
    last = arguments[-1]
    return _ordering(writer, last), [*arguments[:-1], last.this]


def _ordering(writer: Generator, order: exp.Order) -> str:
    return " ORDER BY " + ", ".join(writer.text(expression) for expression in order.expressions)
