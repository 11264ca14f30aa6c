"""Compiles the conditions of a filter of traces into functions that test a trace, an assessment
(somebody's judgement of a trace) or a span, and orderings into sort keys.

The meaning is that of MLflow's SQL store on SQLite: a missing field matches only IS NULL; the value
of an assessment is compared as JSON text; an invalid regular expression matches nothing. A span's
node is the list of its few indexed values (:mod:`mlcore.repos.traces.span_packs`).
"""

from __future__ import annotations

import json
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any, Final

from mlcore import paging, reserved_tags
from mlcore.entities.traces import Assessment, Trace
from mlcore.errors import InvalidParameterValue
from mlcore.search import rlike
from mlcore.search.grammar import OrderBy
from mlcore.search.like import ilike, like
from mlcore.search.match import COMPARE
from mlcore.search.rlike import TimeBudget
from mlcore.search.sort_keys import MISSING, PRESENT, Key, sortable_experiment_id, value_field
from mlcore.search.trace_filter import (
    ATTRIBUTE,
    CONTENT,
    ISSUE,
    METADATA,
    SPAN_ATTRIBUTE,
    TAG,
    TraceCondition,
)

Test = Callable[[Any], bool]
Node = list[Any]
"""The few values of a span that most conditions test, in the order of
:func:`mlcore.spans.stored_span.node`."""

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
_NODE_POSITIONS: Final = {"name": _NAME, "type": _TYPE, "status": _STATUS}
TIE_BREAK: Final = (
    OrderBy(ATTRIBUTE, "timestamp_ms", False),
    OrderBy(ATTRIBUTE, "request_id", True),
)


def trace_test(conditions: Sequence[TraceCondition], budget: TimeBudget) -> Callable[[Trace], bool]:
    """Compiles conditions on traces themselves to a function that says whether a trace meets them
    all. ``budget`` limits the time of regular expressions in this search."""
    tests = [_own(condition, budget) for condition in conditions]
    return lambda trace: all(test(trace) for test in tests)


def assessment_test(condition: TraceCondition, budget: TimeBudget) -> Callable[[Assessment], bool]:
    """Compiles a condition on assessments to a function of one assessment.

    The function says whether the assessment meets the condition. For IS NULL it says whether the
    assessment has the name in the condition; a trace with such an assessment does not match.
    """
    kind, key, sign, value = condition
    if sign in ("IS NULL", "IS NOT NULL"):
        return lambda item: item.valid and item.kind == kind and item.name == key
    if sign in ("<", "<=", ">", ">="):
        compare = COMPARE[sign]

        def holds(item: Assessment) -> bool:
            number, numeric = assessment_number(item.value)
            return numeric and compare(number, value)

    elif sign in ("=", "!="):
        texts = (value, json.dumps(value))

        def holds(item: Assessment) -> bool:
            return (json.dumps(item.value) in texts) is (sign == "=")

    else:
        test = _text_test(sign, value, budget)

        def holds(item: Assessment) -> bool:
            return test(json.dumps(item.value))

    return lambda item: item.valid and item.kind == kind and item.name == key and holds(item)


def is_session_assessment(assessment: Assessment) -> bool:
    """Returns whether the assessment applies to all traces of its trace's session."""
    return assessment.metadata is not None and reserved_tags.TRACE_SESSION in assessment.metadata


def assessment_number(value: Any) -> tuple[float | None, bool]:
    """Returns the number that an assessment's value counts as in averages, and whether the value
    itself is a number.

    True and "yes" are 1, false and "no" are 0; all other values that are not finite numbers give
    None.
    """
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


def reads_content(conditions: Sequence[TraceCondition]) -> bool:
    """Returns whether testing these conditions on spans needs the spans' JSON, and not only their
    nodes (the lists of their few indexed values)."""
    return any(condition.key not in _NODE_POSITIONS for condition in conditions)


def span_test(
    conditions: Sequence[TraceCondition], spans_from: int | None, budget: TimeBudget
) -> Callable[[Node, str], bool]:
    """Compiles conditions on spans to a function that says whether a span meets them all. The
    function takes the span's node (the list of its few indexed values) and its JSON.

    ``spans_from``: the earliest start of a matching span in nanoseconds; None for any.
    """
    tests = [_span(condition, budget) for condition in conditions]
    return lambda node, content: (
        (spans_from is None or node[_START] >= spans_from)
        and all(test(node, content) for test in tests)
    )


def newest_first(ordering: Sequence[OrderBy]) -> bool:
    """Whether a search's order of traces is the default: latest request time first, then by id."""
    return not ordering or (
        ordering[0] == TIE_BREAK[0] and tuple(ordering[1:]) in ((), TIE_BREAK[1:])
    )


def sort_key(ordering: Sequence[OrderBy]) -> Callable[[Trace], Key]:
    """Returns a function that makes the sort key of a trace, for the requested order followed by
    the tie-break. Missing values sort last. Keys are described in
    :mod:`mlcore.search.sort_keys`."""
    fields = [(_value_of(order), order) for order in _total(ordering)]

    def key(trace: Trace) -> Key:
        elements: list[str | int | float] = []
        for get, order in fields:
            elements += value_field(get(trace), ascending=order.ascending)
        return tuple(elements)

    return key


def restore_key(values: object, ordering: Sequence[OrderBy]) -> Key:
    """Checks that the values in a trace search's page token fit this order, and returns them as the
    key by which traces are sorted. Raises InvalidParameterValue otherwise."""
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
        return lambda trace: sortable_experiment_id(trace.experiment_id)
    if order.kind == ATTRIBUTE:
        return _COLUMNS[order.key]
    entries, key = _MAPS[order.kind], order.key
    return lambda trace: entries(trace).get(key)


def _own(condition: TraceCondition, budget: TimeBudget) -> Callable[[Trace], bool]:
    kind, key, sign, value = condition
    if kind == ISSUE:
        return lambda trace: any(
            item.kind == ISSUE and item.name == value for item in trace.assessments
        )
    if kind == ATTRIBUTE:
        get = _COLUMNS[key]
        test = _number_test(sign, value) if key in _TIMES else _text_test(sign, value, budget)
        return lambda trace: (own_value := get(trace)) is not None and test(own_value)
    if key == reserved_tags.LINKED_PROMPTS and kind == TAG:
        return lambda trace: value in trace.prompts
    entries = _MAPS[kind]
    if sign in ("IS NULL", "IS NOT NULL"):
        return lambda trace: (key in entries(trace)) is (sign == "IS NOT NULL")
    test = _text_test(sign, value, budget)
    return lambda trace: (text := entries(trace).get(key)) is not None and test(text)


def _span(condition: TraceCondition, budget: TimeBudget) -> Callable[[Node, str], bool]:
    _, key, sign, value = condition
    if key in _NODE_POSITIONS:
        at, test = _NODE_POSITIONS[key], _text_test(sign, value, budget)
        return lambda node, _: isinstance(node[at], str) and test(node[at])
    if key != CONTENT:
        name = key.removeprefix(SPAN_ATTRIBUTE)
        name = name[1:-1] if len(name) > 1 and name[0] == name[-1] == "`" else name
        if isinstance(value, tuple):
            raise InvalidParameterValue(f"Invalid comparator '{sign}' for span.{key}")
        pattern = str(value)
        if sign == "RLIKE":
            # The values of attributes are JSON texts inside the span's JSON.
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
            # SQLite sorts every text after every number.
            holds = sign in ("<", "<=", "!=")
            return lambda _: holds
    return lambda number: compare(number, value)


def _text_test(sign: str, value: Any, budget: TimeBudget) -> Test:
    if sign == "LIKE":
        return like(value)
    if sign == "ILIKE":
        return ilike(value)
    if sign == "RLIKE":
        return rlike.matcher(value, budget)
    if sign in ("IN", "NOT IN"):
        members = frozenset(value)
        return members.__contains__ if sign == "IN" else lambda text: text not in members
    compare = COMPARE[sign]
    return lambda text: compare(text, value)
