"""Compiles the comparisons of a filter into a test of one entity.

The meaning is that of MLflow's SQL store on SQLite: a missing field matches no operator but IS NULL
(not even ``!=``); a metric that is NaN matches only ``!=``; two conditions on datasets may be met
by two different inputs of a run.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from mlcore import reserved_tags
from mlcore.search.fields import ATTRIBUTE, DATASET, METRIC, PARAM, SearchableEntity
from mlcore.search.grammar import Comparison
from mlcore.search.like import ilike, like
from mlcore.search.sort_keys import sort_key

__all__ = ["Predicate", "predicate", "sort_key"]

Predicate = Callable[[Any], bool]

COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def predicate(comparisons: Sequence[Comparison], entity: SearchableEntity) -> Predicate:
    """Compiles the comparisons of a filter to a function that says whether an entity meets all of
    them. ``entity`` describes the fields of this kind of entity."""
    tests = [_test(comparison, entity) for comparison in comparisons]
    if not tests:
        return lambda _: True
    if len(tests) == 1:
        return tests[0]
    if len(tests) == 2:
        first, second = tests
        return lambda item: first(item) and second(item)

    def all_hold(item: Any) -> bool:
        for test in tests:  # noqa: SIM110 - a loop is twice as fast as all() here
            if not test(item):
                return False
        return True

    return all_hold


def _test(comparison: Comparison, entity: SearchableEntity) -> Predicate:
    if comparison.kind == METRIC:
        return _metric(comparison)
    if comparison.kind == DATASET:
        return _dataset(comparison)
    holds = value_test(comparison)
    if comparison.kind == ATTRIBUTE:
        attribute = entity.attributes[comparison.key]
        if not attribute.tag:
            get = operator.attrgetter(attribute.name)
            return lambda item: (value := get(item)) is not None and holds(value)
        return _entry("tags", attribute.tag, holds)
    container = "params" if comparison.kind == PARAM else "tags"
    if comparison.operator in ("IS NULL", "IS NOT NULL"):
        key, absent, entries = (
            comparison.key,
            comparison.operator == "IS NULL",
            operator.attrgetter(container),
        )
        return lambda item: (key not in entries(item)) is absent
    return _entry(container, comparison.key, holds)


def _entry(container: str, key: str, holds: Predicate) -> Predicate:
    entries = operator.attrgetter(container)
    return lambda item: (value := entries(item).get(key)) is not None and holds(value)


def _metric(comparison: Comparison) -> Predicate:
    key, operand, compare = comparison.key, comparison.value, COMPARE[comparison.operator]
    # Every comparison of a Python NaN but != is false, as in MLflow.
    return lambda item: (
        (metric := item.metrics.get(key)) is not None and compare(metric.value, operand)
    )


def _dataset(comparison: Comparison) -> Predicate:
    holds = value_test(comparison)
    if comparison.key == "context":
        return lambda run: any(
            tag.key == reserved_tags.DATASET_CONTEXT and holds(tag.value)
            for dataset_input in run.dataset_inputs
            for tag in dataset_input.tags
        )
    get = operator.attrgetter(comparison.key)
    return lambda run: any(
        holds(get(dataset_input.dataset)) for dataset_input in run.dataset_inputs
    )


def value_test(comparison: Comparison) -> Callable[[Any], bool]:
    """Returns a function that says whether a value (not None) meets a comparison of a filter."""
    operand = comparison.value
    match comparison.operator:
        case "LIKE":
            return like(str(operand))
        case "ILIKE":
            return ilike(str(operand))
        case "IN" | "NOT IN":
            members = frozenset(operand) if isinstance(operand, tuple) else frozenset()
            if comparison.operator == "IN":
                return members.__contains__
            return lambda value: value not in members
        case "IS NULL" | "IS NOT NULL":
            return lambda _: True
        case sign:
            compare = COMPARE[sign]
            return lambda value: compare(value, operand)
