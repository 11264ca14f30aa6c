"""What the conditions of a filter of traces mean, and orders as sort keys; never parses or reads.

The meaning is that of MLflow's SQL store on SQLite: what a trace lacks matches nothing but IS NULL;
the text of an assessment's value is its JSON; an expression that cannot be compiled matches
nothing.
"""

from __future__ import annotations

import json
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any, Final

from mlcore import paging
from mlcore.entities.traces import Assessment, Trace
from mlcore.errors import InvalidParameterValue
from mlcore.search import rlike
from mlcore.search.grammar import OrderBy
from mlcore.search.like import ilike, like
from mlcore.search.match import COMPARE
from mlcore.search.order import MISSING, PRESENT, Key, identifier, value_field
from mlcore.search.rlike import Budget
from mlcore.search.trace_filter import (
    ATTRIBUTE,
    CONTENT,
    ISSUE,
    METADATA,
    PROMPTS_TAG,
    SESSION,
    SPAN_ATTRIBUTE,
    TAG,
    Condition,
)

Test = Callable[[Any], bool]
Node = list[Any]
"""As in :mod:`mlcore.repos.traces.span_packs`."""

_COLUMNS: Final[dict[str, Callable[[Trace], Any]]] = {
    "request_id": operator.attrgetter("trace_id"),
    "experiment_id": operator.attrgetter("experiment_id"),
    "client_request_id": operator.attrgetter("client_request_id"),
    "status": operator.attrgetter("state"),
    "timestamp_ms": operator.attrgetter("request_time"),
    "execution_time_ms": operator.attrgetter("execution_duration"),
    "end_time_ms": lambda trace: trace.request_time + (trace.execution_duration or 0),
}
_TIMES: Final = ("timestamp_ms", "execution_time_ms", "end_time_ms")
_MAPS: Final[dict[str, Callable[[Trace], dict[str, str]]]] = {
    TAG: operator.attrgetter("tags"),
    METADATA: operator.attrgetter("trace_metadata"),
}
_START, _NAME, _TYPE, _STATUS = 3, 6, 7, 8
_PLACES: Final = {"name": _NAME, "type": _TYPE, "status": _STATUS}
TIE_BREAK: Final = (
    OrderBy(ATTRIBUTE, "timestamp_ms", False),
    OrderBy(ATTRIBUTE, "request_id", True),
)


def own_test(conditions: Sequence[Condition], budget: Budget) -> Callable[[Trace], bool]:
    """A test of conditions about the trace itself; the budget is the search's."""
    tests = [_own(condition, budget) for condition in conditions]
    return lambda trace: all(test(trace) for test in tests)


def assessment_test(condition: Condition, budget: Budget) -> Callable[[Assessment], bool]:
    """Whether an assessment is one that the condition asks for; of IS NULL, one that it forbids."""
    kind, key, sign, value = condition
    if sign in ("IS NULL", "IS NOT NULL"):
        return lambda one: one.valid and one.kind == kind and one.name == key
    if sign in ("<", "<=", ">", ">="):
        compare = COMPARE[sign]

        def holds(one: Assessment) -> bool:
            number, numeric = aggregate(one.value)
            return numeric and compare(number, value)

    elif sign in ("=", "!="):
        texts = (value, json.dumps(value))

        def holds(one: Assessment) -> bool:
            return (json.dumps(one.value) in texts) is (sign == "=")

    else:
        test = _text_test(sign, value, budget)

        def holds(one: Assessment) -> bool:
            return test(json.dumps(one.value))

    return lambda one: one.valid and one.kind == kind and one.name == key and holds(one)


def of_session(one: Assessment) -> bool:
    """Whether an assessment is of all traces of its trace's session."""
    return one.metadata is not None and SESSION in one.metadata


def aggregate(value: Any) -> tuple[float | None, bool]:
    """The number that an assessment's value counts as, and whether it is a number itself."""
    if isinstance(value, bool):
        return float(value), False
    if isinstance(value, int | float):
        try:
            number = float(value)
        except OverflowError:
            return None, False
        return (number, True) if math.isfinite(number) else (None, False)
    if isinstance(value, str) and value.strip().lower() in ("yes", "no"):
        return float(value.strip().lower() == "yes"), False
    return None, False


def reads_content(conditions: Sequence[Condition]) -> bool:
    """Whether conditions on spans look at more than their nodes."""
    return any(condition.key not in _PLACES for condition in conditions)


def span_test(
    conditions: Sequence[Condition], spans_from: int | None, budget: Budget
) -> Callable[[Node, str], bool]:
    """A test of a span's node and JSON: all conditions hold for it."""
    tests = [_span(condition, budget) for condition in conditions]
    return lambda node, content: (
        (spans_from is None or node[_START] >= spans_from)
        and all(test(node, content) for test in tests)
    )


def newest_first(ordering: Sequence[OrderBy]) -> bool:
    """Whether the order is that of the request time, latest first, then the id: the default."""
    return not ordering or (
        ordering[0] == TIE_BREAK[0] and tuple(ordering[1:]) in ((), TIE_BREAK[1:])
    )


def sort_key(ordering: Sequence[OrderBy]) -> Callable[[Trace], Key]:
    """A total order, as in :mod:`mlcore.search.order`: what is missing comes last."""
    fields = [(_value_of(order), order) for order in _total(ordering)]

    def key(trace: Trace) -> Key:
        elements: list[str | int | float] = []
        for get, order in fields:
            elements += value_field(get(trace), ascending=order.ascending)
        return tuple(elements)

    return key


def restore_key(values: object, ordering: Sequence[OrderBy]) -> Key:
    """A key that came back in a page token; one of another order, or a forged one, is refused."""
    total = _total(ordering)
    if not isinstance(values, list) or len(values) != 2 * len(total):
        raise InvalidParameterValue("Invalid page token")
    for order, rank, value in zip(total, values[::2], values[1::2], strict=True):
        number = rank == MISSING or (order.kind == ATTRIBUTE and order.key in _TIMES)
        fits = isinstance(value, int) if number else isinstance(value, str)
        if rank not in (PRESENT, MISSING) or not fits or not paging.is_scalar(value):
            raise InvalidParameterValue("Invalid page token")
    return tuple(values)


def _total(ordering: Sequence[OrderBy]) -> list[OrderBy]:
    named = {order.key for order in ordering if order.kind == ATTRIBUTE}
    return [*ordering, *(order for order in TIE_BREAK if order.key not in named)]


def _value_of(order: OrderBy) -> Callable[[Trace], Any]:
    if order.kind == ATTRIBUTE and order.key == "experiment_id":
        return lambda trace: identifier(trace.experiment_id)
    if order.kind == ATTRIBUTE:
        return _COLUMNS[order.key]
    entries, key = _MAPS[order.kind], order.key
    return lambda trace: entries(trace).get(key)


def _own(condition: Condition, budget: Budget) -> Callable[[Trace], bool]:
    kind, key, sign, value = condition
    if kind == ISSUE:
        return lambda trace: any(
            one.kind == ISSUE and one.name == value for one in trace.assessments
        )
    if kind == ATTRIBUTE:
        get = _COLUMNS[key]
        test = _number_test(sign, value) if key in _TIMES else _text_test(sign, value, budget)
        return lambda trace: (found := get(trace)) is not None and test(found)
    if key == PROMPTS_TAG and kind == TAG:
        return lambda trace: value in trace.prompts
    entries = _MAPS[kind]
    if sign in ("IS NULL", "IS NOT NULL"):
        return lambda trace: (key in entries(trace)) is (sign == "IS NOT NULL")
    test = _text_test(sign, value, budget)
    return lambda trace: (found := entries(trace).get(key)) is not None and test(found)


def _span(condition: Condition, budget: Budget) -> Callable[[Node, str], bool]:
    _, key, sign, value = condition
    if key in _PLACES:
        place, test = _PLACES[key], _text_test(sign, value, budget)
        return lambda node, _: isinstance(node[place], str) and test(node[place])
    if key != CONTENT:
        name = key.removeprefix(SPAN_ATTRIBUTE)
        name = name[1:-1] if len(name) > 1 and name[0] == name[-1] == "`" else name
        if isinstance(value, tuple):
            raise InvalidParameterValue(f"Invalid comparator '{sign}' for span.{key}")
        pattern = str(value)
        if sign == "RLIKE":
            # Values of attributes are JSON texts inside JSON.
            begin = r'"\\"' if pattern.startswith("^") else r'"\\".*'
            end = r'\\"' if pattern.endswith("$") else ""
            pattern = pattern.removeprefix("^").removesuffix("$")
            value = f'"{name}": {begin}{pattern}{end}'
        else:
            value = f'%"{name}"{pattern}%'
    holds = _text_test(sign, value, budget)
    return lambda _, content: holds(content)


def _number_test(sign: str, value: Any) -> Test:
    compare = COMPARE[sign]
    if isinstance(value, str):
        try:
            value = float(value) if any(mark in value for mark in ".eE") else int(value)
        except ValueError:
            # Any text is more than any number.
            holds = sign in ("<", "<=", "!=")
            return lambda _: holds
    return lambda found: compare(found, value)


def _text_test(sign: str, value: Any, budget: Budget) -> Test:
    if sign == "LIKE":
        return like(value)
    if sign == "ILIKE":
        return ilike(value)
    if sign == "RLIKE":
        return rlike.test(value, budget)
    if sign in ("IN", "NOT IN"):
        members = frozenset(value)
        return members.__contains__ if sign == "IN" else lambda text: text not in members
    compare = COMPARE[sign]
    return lambda text: compare(text, value)
