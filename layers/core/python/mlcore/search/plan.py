"""Which index entries can lead to the answer of a search; knows no key, no table and no size.

An *access* names a set of entities that is sure to hold every match. Which of several is the
cheapest is not known here: whoever executes them reads them side by side and takes the first that
ends. What an access lets through is tested against the whole filter again, so it may be wider than
its condition and never narrower.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from mlcore.search.fields import ATTRIBUTE, METRIC, PARAM
from mlcore.search.grammar import Comparison, OrderBy


class MetricRange(NamedTuple):
    """Entities whose latest value of a metric is in a closed range; NaN is in none."""

    key: str
    lowest: float
    highest: float


class ParamValue(NamedTuple):
    key: str
    value: str


class NamePrefix(NamedTuple):
    """Entities whose name begins with a text; ``whole`` when it is that text."""

    text: str
    whole: bool


class Status(NamedTuple):
    status: str


Access = MetricRange | ParamValue | NamePrefix | Status


class MetricOrder(NamedTuple):
    """An order whose first field is a metric, which an index has sorted already."""

    key: str
    ascending: bool


_WILDCARDS = ("%", "_")


def accesses(comparisons: Sequence[Comparison]) -> list[Access]:
    """One for each condition that an index of runs can answer."""
    found = [_access(comparison) for comparison in comparisons]
    return [access for access in found if access is not None]


def metric_order(ordering: Sequence[OrderBy]) -> MetricOrder | None:
    if ordering and ordering[0].kind == METRIC:
        return MetricOrder(ordering[0].key, ordering[0].ascending)
    return None


def newest_first(ordering: Sequence[OrderBy]) -> bool:
    """Whether the order is that of the start time, latest first, then the id: the default order."""
    return not ordering or (
        len(ordering) == 1
        and (ordering[0].kind, ordering[0].key, ordering[0].ascending)
        == (ATTRIBUTE, "start_time", False)
    )


def _access(comparison: Comparison) -> Access | None:
    kind, key, operator, value = comparison
    if kind == METRIC and isinstance(value, int | float):
        return _range(key, operator, float(value))
    if kind == PARAM and operator == "=" and isinstance(value, str):
        return ParamValue(key, value)
    if kind == ATTRIBUTE and key == "status" and operator == "=" and isinstance(value, str):
        return Status(value)
    if kind == ATTRIBUTE and key == "run_name" and isinstance(value, str):
        return _name(operator, value)
    return None


def _range(key: str, operator: str, value: float) -> MetricRange | None:
    value += 0.0  # -0.0 is stored as 0.0
    match operator:
        case "=":
            return MetricRange(key, value, value)
        case ">" | ">=":
            return MetricRange(key, value, math.inf)
        case "<" | "<=":
            return MetricRange(key, -math.inf, value)
    return None


def _name(operator: str, value: str) -> NamePrefix | None:
    if operator == "=":
        return NamePrefix(value, whole=True)
    if operator == "LIKE":
        literal = value
        for wildcard in _WILDCARDS:
            literal = literal.partition(wildcard)[0]
        if literal:
            return NamePrefix(literal, whole=literal == value)
    return None
