"""Plans a search of runs: translates a filter into accesses, each of which alone finds all matches
of the filter.

An *access* describes a set of runs that an index can list and that contains every match of the
filter. The set may contain more runs, because each candidate is tested against the whole filter
afterwards. The planner does not know which access is the cheapest: the search reads them in
parallel, page by page, and uses the cheapest that is complete.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final, NamedTuple

from mlcore.search import text_fields, text_lookups
from mlcore.search.fields import ATTRIBUTE, DATASET, METRIC, PARAM
from mlcore.search.grammar import Comparison, OrderBy
from mlcore.search.text_lookups import FullTextLookup


class MetricRange(NamedTuple):
    """An access path of a search: the runs whose latest value of the metric ``key`` is in a closed
    range. NaN is in no range."""

    key: str
    lowest: float
    highest: float


class ParamValue(NamedTuple):
    """An access path of a search: the runs with exactly this value of the param ``key``."""

    key: str
    value: str


class NamePrefix(NamedTuple):
    """An access path of a search: the runs or traces whose name begins with ``text`` or, if
    ``whole`` is true, equals it."""

    text: str
    whole: bool


class Status(NamedTuple):
    """An access path of a search: the runs with this status."""

    status: str


class ParamTexts(NamedTuple):
    """An access path of a search: the runs with a value of a param that begins with ``begin`` and
    meets ``condition``."""

    condition: Comparison
    begin: str


class TextLookups(NamedTuple):
    """An access path of a search: the runs or traces that the full-text index finds. Each of
    ``lookups`` alone finds all matches, so one is enough."""

    field: str
    lookups: tuple[FullTextLookup, ...]


class DatasetLinks(NamedTuple):
    """An access path of a search: the runs with an input dataset that meets ``condition``, whatever
    the dataset was used for."""

    condition: Comparison


Access = MetricRange | ParamValue | ParamTexts | NamePrefix | Status | TextLookups | DatasetLinks


class MetricOrder(NamedTuple):
    """The first field of a run search's order if it is a metric (``key``), and its direction. The
    metric's index lists runs in the order of this field."""

    key: str
    ascending: bool


_WILDCARDS = ("%", "_")


MAX_ACCESSES: Final = 20
"""Maximum number of accesses of one search, since each costs a request in each experiment, and a
filter may have 1,000 comparisons. Any one access is enough to find all matches."""


def accesses(comparisons: Sequence[Comparison]) -> list[Access]:
    """Returns the accesses (sets of runs that an index can list) that the comparisons of a filter
    of runs allow, at most :data:`MAX_ACCESSES`. Each access alone contains all matches."""
    allowed = (access for comparison in comparisons for access in _accesses(comparison))
    return list(islice(allowed, MAX_ACCESSES))


def metric_order(ordering: Sequence[OrderBy]) -> MetricOrder | None:
    """Returns the metric by which runs are ordered first, and the direction; None if the first
    field is no metric."""
    if ordering and ordering[0].kind == METRIC:
        return MetricOrder(ordering[0].key, ordering[0].ascending)
    return None


def ranked_metrics(comparisons: Sequence[Comparison], ordering: Sequence[OrderBy]) -> list[str]:
    """Returns the keys of the metrics whose index of values the filter or the order of a search of
    runs can use."""
    ranges = [access.key for access in accesses(comparisons) if isinstance(access, MetricRange)]
    ordered = metric_order(ordering)
    return list(dict.fromkeys([*ranges, *([ordered.key] if ordered else [])]))


def newest_first(ordering: Sequence[OrderBy]) -> bool:
    """Returns whether a search for runs has the default order: latest start first, then by id."""
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
        if operator == "=" or value.rstrip("%") == literal_prefix(value):
            # The index of names finds exactly the matches; a full-text lookup would add nothing.
            return
    field = text_fields.field_of(comparison)
    if field is not None and isinstance(value, str):
        lookups = text_lookups.lookups_for(field, operator, value)
        if lookups:
            yield TextLookups(field, lookups)


def _param(comparison: Comparison) -> Iterator[Access]:
    value = comparison.value
    if comparison.operator == "=" and isinstance(value, str):
        yield ParamValue(comparison.key, value)
    else:
        like = comparison.operator == "LIKE" and isinstance(value, str)
        yield ParamTexts(comparison, literal_prefix(str(value)) if like else "")


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
        literal = literal_prefix(value)
        if literal:
            yield NamePrefix(literal, whole=literal == value)


def literal_prefix(pattern: str) -> str:
    """Returns the text before the first wildcard of a LIKE pattern; every match begins with it."""
    for wildcard in _WILDCARDS:
        pattern = pattern.partition(wildcard)[0]
    return pattern
