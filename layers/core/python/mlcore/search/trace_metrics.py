"""Metrics of traces: which there are, what may be asked of them, and how points are made of rows;
never reads anything.

The rules and the texts of refusals are MLflow's, and so is the interpolation of percentiles.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from mlcore.errors import InvalidParameterValue
from mlcore.search import tokens as t
from mlcore.search.clauses import COMPARISON, IDENTIFIER
from mlcore.search.grammar import conditions_of, quoted, without_quotes

TRACES: Final = "TRACES"
SPANS: Final = "SPANS"
ASSESSMENTS: Final = "ASSESSMENTS"
COUNT: Final = "COUNT"
PERCENTILE: Final = "PERCENTILE"
TIME_BUCKET: Final = "time_bucket"

TRACE_COUNT: Final = "trace_count"
SESSION_COUNT: Final = "session_count"
LATENCY: Final = "latency"
TOKENS: Final = (
    *("input_tokens", "output_tokens", "total_tokens"),
    *("cache_read_input_tokens", "cache_creation_input_tokens"),
)
SPAN_COUNT: Final = "span_count"
COSTS: Final = ("input_cost", "output_cost", "total_cost")
ASSESSMENT_COUNT: Final = "assessment_count"
ASSESSMENT_VALUE: Final = "assessment_value"

_SPREAD: Final = ("AVG", "MIN", "MAX", PERCENTILE)
_AMOUNT: Final = ("SUM", *_SPREAD)
_MODELS: Final = ("span_model_name", "span_model_provider")

Rules = tuple[Sequence[str], Sequence[str]]
"""The aggregations and the dimensions of a metric."""
METRICS: Final[dict[str, dict[str, Rules]]] = {
    TRACES: {
        TRACE_COUNT: ((COUNT,), ("trace_name", "trace_status")),
        SESSION_COUNT: ((COUNT,), ()),
        LATENCY: (_SPREAD, ("trace_name",)),
        **dict.fromkeys(TOKENS, (_AMOUNT, ("trace_name",))),
    },
    SPANS: {
        SPAN_COUNT: ((COUNT,), ("span_name", "span_type", "span_status", *_MODELS)),
        LATENCY: (_SPREAD, ("span_name", "span_status")),
        **dict.fromkeys(COSTS, (_AMOUNT, _MODELS)),
    },
    ASSESSMENTS: {
        ASSESSMENT_COUNT: ((COUNT,), ("assessment_name", "assessment_value")),
        ASSESSMENT_VALUE: (_SPREAD, ("assessment_name",)),
    },
}
_FILTERS: Final[dict[str, dict[str, bool]]] = {
    "trace": {"status": False, "tag": True, "metadata": True},
    "span": {"name": False, "status": False, "type": False},
    "assessment": {"name": False, "type": False},
}
"""By view: what can be filtered by, and whether it takes a key."""


class Aggregation(NamedTuple):
    type: str
    percentile: float | None

    @property
    def label(self) -> str:
        return self.type if self.percentile is None else f"P{self.percentile}"


class Filter(NamedTuple):
    """A value that must be equal: of a trace's, a span's or an assessment's field."""

    view: str
    entity: str
    key: str
    value: str


class Row(NamedTuple):
    """One thing to count or to aggregate."""

    time: float
    """Milliseconds, for the bucket."""
    dimensions: Mapping[str, Any]
    value: Any
    """None counts for nothing."""


class Query(NamedTuple):
    view: str
    metric: str
    aggregations: Sequence[Aggregation]
    dimensions: Sequence[str]
    interval: int
    """Seconds of a bucket; 0 for none."""
    limit: int
    """Of points; negative for none."""


def aggregation(kind: str, percentile: float | None) -> Aggregation:
    if kind == PERCENTILE:
        if percentile is None:
            raise InvalidParameterValue("Percentile value is required for PERCENTILE aggregation")
        if not 0 <= percentile <= 100:
            raise InvalidParameterValue(
                f"Percentile value must be between 0 and 100, got {percentile}"
            )
    elif percentile is not None:
        raise InvalidParameterValue(
            f"Percentile value is only allowed for PERCENTILE aggregation type, got {kind}"
        )
    return Aggregation(kind, percentile)


def check(query: Query) -> None:
    """Raises InvalidParameterValue: the metric has no such aggregation or dimension."""
    metrics = METRICS[query.view]
    if query.metric not in metrics:
        raise InvalidParameterValue(
            f"metric_name must be one of {list(metrics)}, got '{query.metric}'"
        )
    aggregations, dimensions = metrics[query.metric]
    wrong = {one.type for one in query.aggregations} - {*aggregations}
    if wrong:
        raise InvalidParameterValue(
            f"Found invalid aggregation_type(s): {sorted(wrong)}. "
            f"Supported aggregation types: {sorted(aggregations)}"
        )
    unknown = {*query.dimensions} - {*dimensions}
    if unknown:
        raise InvalidParameterValue(
            f"Found invalid dimension(s): {sorted(unknown)}. "
            f"Supported dimensions: {sorted(dimensions)}"
        )


def parse_filter(text: str, view: str) -> Filter:
    """Raises InvalidParameterValue; a view knows its own fields and those of traces."""
    items = conditions_of(text, "{found}")
    strays = [item.text for item in items if item.kind != COMPARISON]
    if strays:
        raise InvalidParameterValue(f"Invalid clause(s) in filter string: {', '.join(strays)}")
    if len(items) != 1:
        raise InvalidParameterValue(f"Invalid filter: '{text}'. Expected one filter clause.")
    left, sign, right = items[0].parts
    if left.kind != IDENTIFIER:
        raise InvalidParameterValue(
            f"Invalid comparison clause. Expected 'Identifier' found '{left.text}'"
        )
    of, entity, key = _field(left.text)
    if sign.text != "=":
        raise InvalidParameterValue(
            f"Invalid comparator: '{sign.text}', only '=' operator is supported"
        )
    if right.kind not in (t.STRING, IDENTIFIER):
        raise InvalidParameterValue(
            f"Expected a quoted string value for {entity} value (e.g. 'my-value'). "
            f"Got value {right.text}"
        )
    value = quoted(right.text)
    if of != "trace" and of.upper() + "S" != view:
        raise InvalidParameterValue(
            f"Filtering by {of} is only supported for {of.upper()}S view type, got {view}"
        )
    return Filter(of, entity, key, value)


def _field(text: str) -> tuple[str, str, str]:
    of, dot, rest = text.partition(".")
    if not dot:
        raise InvalidParameterValue(
            f"Invalid identifier {text!r}. Columns should be specified as 'trace.<key>', "
            "'span.<key>', 'assessment.<key>'."
        )
    of = without_quotes(of, "`")
    if of not in _FILTERS:
        raise InvalidParameterValue(
            f"Invalid view type '{of}'. Valid values are dict_keys({list(_FILTERS)})"
        )
    entity, dot, key = rest.partition(".")
    if entity not in _FILTERS[of]:
        raise InvalidParameterValue(
            f"Invalid entity '{entity}' specified for view type '{of}'. "
            f"Valid entities are {list(_FILTERS[of])}"
        )
    if _FILTERS[of][entity] and not dot:
        raise InvalidParameterValue(
            f"Filtering by {entity} requires a key, e.g. '{of}.{entity}.<key> = <value>'"
        )
    if dot and not _FILTERS[of][entity]:
        raise InvalidParameterValue(
            f"Filtering by {entity} does not require a key, use '{of}.{entity}' instead"
        )
    return of, entity, without_quotes(without_quotes(key, "'\""), "`")


def points(rows: Iterable[Row], query: Query) -> list[dict[str, Any]]:
    """The points of rows, in the order of time and dimensions."""
    groups: dict[tuple[Any, ...], list[Any]] = {}
    if not query.interval and not query.dimensions:
        groups[()] = []
    for row in rows:
        place = tuple(row.dimensions[name] for name in query.dimensions)
        if row.value is None or None in place:
            continue
        if query.interval:
            size = query.interval * 1000
            place = (math.floor(row.time / size) * size, *place)
        groups.setdefault(place, []).append(row.value)
    found = []
    for place in sorted(groups)[: query.limit if query.limit >= 0 else None]:
        values = {one.label: _aggregated(one, groups[place], query) for one in query.aggregations}
        values = {label: value for label, value in values.items() if value is not None}
        if values:
            point: dict[str, Any] = {"metric_name": query.metric}
            dimensions = _dimensions(place, query)
            if dimensions:
                point["dimensions"] = dimensions
            found.append({**point, "values": values})
    return found


def _dimensions(place: tuple[Any, ...], query: Query) -> dict[str, str]:
    if not query.interval:
        return dict(zip(query.dimensions, place, strict=True))
    try:
        bucket = datetime.fromtimestamp(place[0] / 1000, tz=UTC).isoformat()
    except (ValueError, OverflowError, OSError):
        raise InvalidParameterValue("A time is out of range for buckets.") from None
    return {TIME_BUCKET: bucket, **dict(zip(query.dimensions, place[1:], strict=True))}


def _aggregated(one: Aggregation, values: Sequence[Any], query: Query) -> float | None:
    if one.type == COUNT:
        return float(len({*values}) if query.metric == SESSION_COUNT else len(values))
    if not values:
        return None
    if one.percentile is not None:
        return percentile(values, one.percentile)
    return float(_SIMPLE[one.type](values))


_SIMPLE: Final[dict[str, Callable[[Sequence[Any]], float]]] = {
    "SUM": sum,
    "AVG": lambda values: sum(values) / len(values),
    "MIN": min,
    "MAX": max,
}


def percentile(values: Sequence[float], percent: float) -> float:
    """Between the two values next to the place, in proportion."""
    ordered = sorted(map(float, values))
    place = percent / 100.0 * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])
