"""Rewrites ``window(time, '1 hour')``, which groups rows by stretches of time of equal length.

As in Databricks, the result is a struct with the fields ``start`` and ``end``, ``window`` names it
in a SELECT that calls it, and rows without a time are left out. Windows that overlap are refused:
a row would be in several of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from sqlglot import exp

from mltables.dialect import allowed_syntax
from mltables.dialect.refusal import StatementRefused
from mltables.dialect.source_columns import sources_of
from mltables.dialect.syntax_nodes import find_all
from mltables.dialect.text_functions import literal
from mltables.dialect.time_functions import MICROSECONDS

NAME: Final = "window"

_FIELDS: Final = ("start", "end")
_PART: Final = re.compile(r"\s*([+-]?\d+)\s+([a-z]+?)s?(?=\s|$)")
_LONGEST: Final = 10**17
"""Most microseconds of a window, some 3,000 years."""


def rewrite(query: exp.Query) -> None:
    """Rewrites each SELECT that calls Databricks' ``window()`` (which groups rows by time), in
    place. Raises StatementRefused for windows that overlap, or several windows in one SELECT."""
    for select in list(find_all(query, exp.Select)):
        calls = [
            node for node in _own(select) if isinstance(node, exp.Anonymous) and _is_window(node)
        ]
        if calls:
            _rewrite_select(select, calls)


def length(node: exp.Expr, beginning: str) -> int:
    """Returns the microseconds of an interval that is written as a text, such as ``1 hour`` or
    ``1 day 12 hours``. Raises StatementRefused if it is none; the message begins with
    ``beginning``."""
    text = literal(node, beginning).lower().strip().removeprefix("interval ")
    total, position = 0, 0
    for part in _PART.finditer(text):
        if part.start() != position or part[2] not in MICROSECONDS:
            break
        total += int(part[1][:20]) * MICROSECONDS[part[2]]
        position = part.end()
    if position != len(text) or not position or abs(total) > _LONGEST:
        raise StatementRefused(f"{beginning} is like '15 minutes' or '1 day' here.")
    return total


def _rewrite_select(select: exp.Select, calls: list[exp.Anonymous]) -> None:
    call = calls[0]
    if any(other != call for other in calls):
        raise StatementRefused("A SELECT has one window() here.")
    if not 2 <= len(call.expressions) <= 4:
        raise StatementRefused("window() takes a time and a length, such as '1 hour'.")
    sizes = [length(text, "The length of window()") for text in call.expressions[1:3]]
    if sizes[0] <= 0:
        raise StatementRefused("The length of window() is greater than zero.")
    if sizes[-1] != sizes[0]:
        raise StatementRefused("Windows that overlap are not supported: window() takes one length.")
    first = length(call.expressions[3], "The start of window()") if len(call.expressions) > 3 else 0
    made = exp.Anonymous(
        this=NAME,
        expressions=[
            call.expressions[0].copy(),
            exp.Literal.number(sizes[0]),
            exp.Literal.number(first % sizes[0]),
        ],
    )
    mentions = [node for node in _own(select) if isinstance(node, exp.Column) and _names(node)]
    allowed_syntax.check_copies([(len(mentions) + len(calls) + 1, made)])
    if not _has_source(select):
        for node in list(_own(select)):
            _replace_mention(node, made)
    for node in calls:
        node.set("expressions", [part.copy() for part in made.expressions])
    _name_projections(select)
    select.where(
        exp.Not(this=exp.Is(this=made.expressions[0].copy(), expression=exp.Null())), copy=False
    )


def _replace_mention(node: exp.Expr, made: exp.Anonymous) -> None:
    """Replaces ``window`` and ``window.start``."""
    if not isinstance(node, exp.Column) or not _names(node):
        return
    if node.table:
        node.replace(exp.Dot(this=made.copy(), expression=node.this.copy()))
    else:
        node.replace(made.copy())


def _names(column: exp.Column) -> bool:
    """Whether a column is ``window``, ``window.start`` or ``window.end``."""
    name, table = column.name.lower(), column.table.lower()
    return (name == NAME and not table) or (table == NAME and not column.db and name in _FIELDS)


def _name_projections(select: exp.Select) -> None:
    """Names projections as in Databricks: ``window`` is the column ``window``."""
    projections = []
    for projection in select.expressions:
        name = None
        if _is_window(projection):
            name = NAME
        elif isinstance(projection, exp.Dot) and _is_window(projection.this):
            name = projection.expression.name.lower()
        projections.append(exp.alias_(projection, name, quoted=True) if name else projection)
    select.set("expressions", projections)


def _is_window(node: exp.Expr) -> bool:
    return isinstance(node, exp.Anonymous) and node.name.lower() == NAME


def _has_source(select: exp.Select) -> bool:
    """Whether a table or subquery of a SELECT is named ``window``."""
    sources = [*sources_of(select), *(select.args.get("laterals") or [])]
    return any(source.alias_or_name.lower() == NAME for source in sources)


def _own(select: exp.Select) -> Iterator[exp.Expr]:
    """Yields the nodes of a SELECT without those of the queries in it."""
    waiting: list[exp.Expr] = [select]
    while waiting:
        for node in waiting.pop().iter_expressions():
            if not isinstance(node, exp.Query):
                yield node
                waiting.append(node)
