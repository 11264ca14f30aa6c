"""Which index entries can lead to the answer of a search; knows no key, no table and no size.

An *access* names a set of entities that is sure to hold every match. Which of several is the
cheapest is not known here: whoever executes them reads them side by side and takes the first that
ends. What an access lets through is tested against the whole filter again, so it may be wider than
its condition and never narrower.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from mlcore.search import lookups, text_fields
from mlcore.search.fields import ATTRIBUTE, DATASET, METRIC, PARAM
from mlcore.search.grammar import Comparison, OrderBy
from mlcore.search.lookups import Lookup


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


class ParamTexts(NamedTuple):
    """Entities with a value of a param that meets a condition; it begins with a text."""

    condition: Comparison
    begin: str


class Text(NamedTuple):
    """Entities one of whose texts is what *all* of some lookups find: any one is enough."""

    field: str
    lookups: tuple[Lookup, ...]


class DatasetLinks(NamedTuple):
    """Entities with a dataset that meets a condition; its context is not looked at."""

    condition: Comparison


Access = MetricRange | ParamValue | ParamTexts | NamePrefix | Status | Text | DatasetLinks


class MetricOrder(NamedTuple):
    """An order whose first field is a metric, which an index has sorted already."""

    key: str
    ascending: bool


_WILDCARDS = ("%", "_")


def accesses(comparisons: Sequence[Comparison]) -> list[Access]:
    """All that an index of runs can answer of the conditions, each of which must hold."""
    return [access for comparison in comparisons for access in _accesses(comparison)]


def metric_order(ordering: Sequence[OrderBy]) -> MetricOrder | None:
    if ordering and ordering[0].kind == METRIC:
        return MetricOrder(ordering[0].key, ordering[0].ascending)
    return None


def metrics(comparisons: Sequence[Comparison], ordering: Sequence[OrderBy]) -> list[str]:
    """The metrics whose ranks the conditions, or the order, may ask for."""
    ranges = [one.key for one in accesses(comparisons) if isinstance(one, MetricRange)]
    ordered = metric_order(ordering)
    return list(dict.fromkeys([*ranges, *([ordered.key] if ordered else [])]))


def newest_first(ordering: Sequence[OrderBy]) -> bool:
    """Whether the order is that of the start time, latest first, then the id: the default order."""
    return not ordering or (
        len(ordering) == 1
        and (ordering[0].kind, ordering[0].key, ordering[0].ascending)
        == (ATTRIBUTE, "start_time", False)
    )


def _accesses(comparison: Comparison) -> Iterator[Access]:
    kind, key, operator, value = comparison
    if kind == METRIC and isinstance(value, int | float):
        yield from _range(key, operator, float(value))
    elif kind == DATASET:
        yield DatasetLinks(comparison)
    elif kind == PARAM and operator != "IS NULL":
        yield from _param(comparison)
    elif kind == ATTRIBUTE and key == "status" and operator == "=" and isinstance(value, str):
        yield Status(value)
    elif kind == ATTRIBUTE and key == "run_name" and isinstance(value, str):
        yield from _name(operator, value)
        if operator == "=" or value.rstrip("%") == literal_begin(value):
            # The index of names holds just these, and its tokens would only be read beside it.
            return
    field = text_fields.field_of(comparison)
    if field is not None and isinstance(value, str):
        found = lookups.of(field, operator, value)
        if found:
            yield Text(field, found)


def _param(comparison: Comparison) -> Iterator[Access]:
    value = comparison.value
    if comparison.operator == "=" and isinstance(value, str):
        yield ParamValue(comparison.key, value)
    else:
        like = comparison.operator == "LIKE" and isinstance(value, str)
        yield ParamTexts(comparison, literal_begin(str(value)) if like else "")


def _range(key: str, operator: str, value: float) -> Iterator[Access]:
    value += 0.0  # -0.0 is stored as 0.0
    match operator:
        case "=":
            yield MetricRange(key, value, value)
        case ">" | ">=":
            yield MetricRange(key, value, math.inf)
        case "<" | "<=":
            yield MetricRange(key, -math.inf, value)


def _name(operator: str, value: str) -> Iterator[Access]:
    if operator == "=":
        yield NamePrefix(value, whole=True)
    if operator == "LIKE":
        literal = literal_begin(value)
        if literal:
            yield NamePrefix(literal, whole=literal == value)


def literal_begin(pattern: str) -> str:
    """What every text begins with that LIKE finds."""
    for wildcard in _WILDCARDS:
        pattern = pattern.partition(wildcard)[0]
    return pattern
