"""Statistics of traces, spans and assessments (counts, averages, percentiles by time and
dimension): checks a query and computes its data points from rows.

The rules, the error messages and the interpolation of percentiles are MLflow's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from mlcore.errors import InvalidParameterValue
from mlcore.search import filter_tokens as t
from mlcore.search.clauses import COMPARISON, IDENTIFIER
from mlcore.search.grammar import parse_conditions, strip_quotes, unquote_required

TRACES: Final = "TRACES"
SPANS: Final = "SPANS"
ASSESSMENTS: Final = "ASSESSMENTS"
COUNT: Final = "COUNT"
PERCENTILE: Final = "PERCENTILE"
TIME_BUCKET: Final = "time_bucket"
_FIRST_BUCKET: Final = -62_135_596_800_000
_LAST_BUCKET: Final = 253_402_300_799_000
"""The first and the last whole second of the years 1 to 9999, in milliseconds since the epoch."""

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
"""The allowed aggregations and dimensions of a metric."""
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
"""By view type: the fields to filter by, and whether a field needs a key."""


class Aggregation(NamedTuple):
    type: str
    percentile: float | None

    @property
    def label(self) -> str:
        return self.type if self.percentile is None else f"P{self.percentile}"


class MetricFilter(NamedTuple):
    """A condition of a query of trace metrics: the field ``entity`` (with ``key`` if it is a tag or
    metadata) of a trace, span or assessment (``view``) must equal ``value``."""

    view: str
    entity: str
    key: str
    value: str


class MetricRow(NamedTuple):
    """The time, dimensions and value of a trace, span or assessment in a query of trace metrics."""

    time: float
    """The time in milliseconds, which decides the time bucket."""
    dimensions: Mapping[str, Any]
    value: Any
    """A row with the value None is ignored."""


class MetricQuery(NamedTuple):
    view: str
    metric: str
    aggregations: Sequence[Aggregation]
    dimensions: Sequence[str]
    interval: int
    """Length of a time bucket in seconds; 0 for no buckets."""
    limit: int
    """Maximum number of points; negative for no limit."""


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


def check(query: MetricQuery) -> None:
    """Checks that the trace metric exists and offers the requested aggregations and dimensions.
    Raises InvalidParameterValue otherwise."""
    metrics = METRICS[query.view]
    if query.metric not in metrics:
        raise InvalidParameterValue(
            f"metric_name must be one of {list(metrics)}, got '{query.metric}'"
        )
    aggregations, dimensions = metrics[query.metric]
    wrong = {requested.type for requested in query.aggregations} - {*aggregations}
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


def parse_filter(text: str, view: str) -> MetricFilter:
    """Parses a filter of a query for metrics of traces (aggregates such as counts), which must be
    one ``field = 'value'`` clause on a field of traces or of the queried view (such as spans).

    Raises InvalidParameterValue for anything else.
    """
    items = parse_conditions(text, "{found}")
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
    value = unquote_required(right.text)
    if of != "trace" and of.upper() + "S" != view:
        raise InvalidParameterValue(
            f"Filtering by {of} is only supported for {of.upper()}S view type, got {view}"
        )
    return MetricFilter(of, entity, key, value)


def _field(text: str) -> tuple[str, str, str]:
    of, dot, rest = text.partition(".")
    if not dot:
        raise InvalidParameterValue(
            f"Invalid identifier {text!r}. Columns should be specified as 'trace.<key>', "
            "'span.<key>', 'assessment.<key>'."
        )
    of = strip_quotes(of, "`")
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
    return of, entity, strip_quotes(strip_quotes(key, "'\""), "`")


def points(rows: Iterable[MetricRow], query: MetricQuery) -> list[dict[str, Any]]:
    """Computes the data points of a query of trace metrics from its rows: one for each time bucket
    and combination of dimensions, in that order, at most ``query.limit`` (all if that is
    negative). Rows whose bucket begins outside the years 1 to 9999, which its text cannot name, are
    in none: one such trace must not end the statistics for everybody."""
    groups: dict[tuple[Any, ...], list[Any]] = {}
    if not query.interval and not query.dimensions:
        groups[()] = []
    for row in rows:
        group = tuple(row.dimensions[name] for name in query.dimensions)
        if row.value is None or None in group:
            continue
        if query.interval:
            size = query.interval * 1000
            bucket = math.floor(row.time / size) * size
            if not _FIRST_BUCKET <= bucket <= _LAST_BUCKET:
                continue
            group = (bucket, *group)
        groups.setdefault(group, []).append(row.value)
    result = []
    for group in sorted(groups)[: query.limit if query.limit >= 0 else None]:
        values = {
            requested.label: _aggregated(requested, groups[group], query)
            for requested in query.aggregations
        }
        values = {label: value for label, value in values.items() if value is not None}
        if values:
            point: dict[str, Any] = {"metric_name": query.metric}
            dimensions = _dimensions(group, query)
            if dimensions:
                point["dimensions"] = dimensions
            result.append({**point, "values": values})
    return result


def _dimensions(group: tuple[Any, ...], query: MetricQuery) -> dict[str, str]:
    if not query.interval:
        return dict(zip(query.dimensions, group, strict=True))
    bucket = datetime.fromtimestamp(group[0] / 1000, tz=UTC).isoformat()
    return {TIME_BUCKET: bucket, **dict(zip(query.dimensions, group[1:], strict=True))}


def _aggregated(requested: Aggregation, values: Sequence[Any], query: MetricQuery) -> float | None:
    if requested.type == COUNT:
        return float(len({*values}) if query.metric == SESSION_COUNT else len(values))
    if not values:
        return None
    if requested.percentile is not None:
        return percentile(values, requested.percentile)
    return float(_SIMPLE[requested.type](values))


_SIMPLE: Final[dict[str, Callable[[Sequence[Any]], float]]] = {
    "SUM": sum,
    "AVG": lambda values: sum(values) / len(values),
    "MIN": min,
    "MAX": max,
}


def percentile(values: Sequence[float], percent: float) -> float:
    """Returns the percentile ``percent`` (0 to 100) of values, interpolated linearly between the
    two nearest ones."""
    ordered = sorted(map(float, values))
    position = percent / 100.0 * (len(ordered) - 1)
    below = int(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (position - below) * (ordered[above] - ordered[below])
