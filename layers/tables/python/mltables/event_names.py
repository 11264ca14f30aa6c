"""Reads the names of a span's events from a column of their own, where a condition needs no more
of the events, as in ``exists(s.events, e -> e.name = 'exception')``.

Few spans have events. To read the lists of structs of all spans takes longer than most questions
about them; the column (``span_attribute_columns.EVENT_NAMES``) is NULL for spans without events.
"""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from mltables.dialect.row_generators import Duck
from mltables.dialect.syntax_nodes import find_all
from mltables.span_attribute_columns import EVENT_NAMES

FIELD: Final = "events"
_NAME: Final = "name"
_OF_ALL: Final = frozenset(("exists", "forall"))
_OF_ONE: Final = frozenset(("get", "try_element_at"))
_LIST: Final = (
    "CASE WHEN {0} IS NULL THEN [] ELSE list_transform(from_json({0}, '[\"VARCHAR\"]'), "
    "lambda inner_name: struct_pack(name := inner_name)) END"
)
"""The events with their names only."""
_IS_EVENTS: Final = "is_events"
"""Key in the ``meta`` of what replaces the events."""
_COMPARISONS: Final = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Like)


def replacement(events: exp.Expr) -> Duck | None:
    """Returns what replaces the events of a span, an argument of a call: their names, from the
    column. None if the call reads more of the events than names."""
    call = events.parent
    arguments = call.expressions if isinstance(call, exp.Anonymous) else []
    if call is None or len(arguments) != 2 or arguments[0] is not events:
        return None
    name = call.name.lower()
    if name in _OF_ALL:
        reads_names = _reads_names(arguments[1])
    else:
        reads_names = name in _OF_ONE and _is_name(call.parent, call)
    if not reads_names:
        return None
    names = Duck(this=_LIST, expressions=[exp.column(EVENT_NAMES)])
    names.meta[_IS_EVENTS] = True
    return names


def needs_events(condition: exp.Expr) -> bool:
    """Whether a condition, in which :func:`replacement` has replaced events, is not true for any
    span without events."""
    if isinstance(condition, exp.Paren):
        return needs_events(condition.this)
    if isinstance(condition, exp.And):
        return any(map(needs_events, condition.flatten()))
    if isinstance(condition, exp.Or):
        return all(map(needs_events, condition.flatten()))
    if isinstance(condition, _COMPARISONS):
        return _is_of_events(condition.this) or _is_of_events(condition.expression)
    is_any = isinstance(condition, exp.Anonymous) and condition.name.lower() == "exists"
    return is_any and _begins_with_events(condition)


def has_events() -> exp.Expr:
    """Returns the condition that a span has events."""
    return exp.Not(this=exp.Is(this=exp.column(EVENT_NAMES), expression=exp.Null()))


def reads_column(tree: exp.Expr) -> bool:
    """Whether SQL reads the column of names."""
    return any(column.name == EVENT_NAMES for column in find_all(tree, exp.Column))


def _reads_names(function: exp.Expr) -> bool:
    """Whether a lambda reads only the name of its argument."""
    if not isinstance(function, exp.Lambda) or len(function.expressions) != 1:
        return False
    parameter = function.expressions[0].name.lower()
    if any(True for _ in find_all(function.this, exp.Lambda)):
        return False
    return all(
        _is_name(word.parent, word) or _is_field(word)
        for word in find_all(function.this, exp.Identifier)
        if word.name.lower() == parameter
    )


def _is_field(word: exp.Identifier) -> bool:
    return isinstance(word.parent, exp.Dot) and word.parent.expression is word


def _is_name(dot: exp.Expr | None, event: exp.Expr) -> bool:
    """Whether an expression is the name of an event."""
    return isinstance(dot, exp.Dot) and dot.this is event and dot.expression.name.lower() == _NAME


def _is_of_events(value: exp.Expr) -> bool:
    """Whether a value is the name of one event, which is NULL if there is no such event."""
    if isinstance(value, exp.Paren):
        return _is_of_events(value.this)
    call = value.this if isinstance(value, exp.Dot) else None
    return isinstance(call, exp.Anonymous) and _begins_with_events(call)


def _begins_with_events(call: exp.Expr) -> bool:
    """Whether the first argument of a call is what :func:`replacement` has returned."""
    return any(_IS_EVENTS in argument.meta for argument in call.expressions[:1])
