from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlcore.errors import InvalidParameterValue
from mlcore.search import trace_metrics as language
from mlcore.search.trace_metrics import Aggregation, MetricFilter, MetricQuery, MetricRow

NUMBERS = st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=9)


def query(**changed: Any) -> MetricQuery:
    base = MetricQuery("TRACES", "latency", [Aggregation("AVG", None)], (), 0, 1000)
    return base._replace(**changed)


def test_points_by_time_and_dimension() -> None:
    rows = [
        MetricRow(1_500, {"trace_name": "b"}, 4),
        MetricRow(1_000, {"trace_name": "b"}, 2),
        MetricRow(-1, {"trace_name": "a"}, 8),
        MetricRow(1_000, {"trace_name": None}, 1),
        MetricRow(1_000, {"trace_name": "a"}, None),
    ]
    metric_query = query(dimensions=("trace_name",), interval=1)
    assert language.points(rows, metric_query) == [
        {
            "metric_name": "latency",
            "dimensions": {"time_bucket": "1969-12-31T23:59:59+00:00", "trace_name": "a"},
            "values": {"AVG": 8.0},
        },
        {
            "metric_name": "latency",
            "dimensions": {"time_bucket": "1970-01-01T00:00:01+00:00", "trace_name": "b"},
            "values": {"AVG": 3.0},
        },
    ]
    assert len(language.points(rows, metric_query._replace(limit=1))) == 1


def test_nothing() -> None:
    assert language.points([], query()) == []
    counted = query(metric="trace_count", aggregations=[Aggregation("COUNT", None)])
    assert language.points([], counted) == [
        {"metric_name": "trace_count", "values": {"COUNT": 0.0}}
    ]


@given(NUMBERS, st.floats(0, 100))
def test_percentiles_are_between_values(values: list[float], wanted: float) -> None:
    percentile = language.percentile(values, wanted)
    assert min(values) - 1e-6 <= percentile <= max(values) + 1e-6
    assert language.percentile(values, 0) == min(values)
    assert language.percentile(values, 100) == pytest.approx(max(values))


def test_filters() -> None:
    parsed = language.parse_filter("trace.metadata.`a.b` = 'x'", "SPANS")
    assert parsed == MetricFilter("trace", "metadata", "a.b", "x")
    for text in (
        "status = 'a'",
        "trace.tag = 'a'",
        "assessment.name = 'a'",
        "",
        "span.type LIKE 'a'",
    ):
        with pytest.raises(InvalidParameterValue):
            language.parse_filter(text, "SPANS")


def test_checks() -> None:
    with pytest.raises(InvalidParameterValue, match="metric_name must be one of"):
        language.check(query(metric="m"))
    with pytest.raises(InvalidParameterValue, match="invalid aggregation_type"):
        language.check(query(aggregations=[Aggregation("SUM", None)]))
    with pytest.raises(InvalidParameterValue, match="invalid dimension"):
        language.check(query(dimensions=("trace_status",)))
    for kind, value in (("PERCENTILE", None), ("PERCENTILE", 101.0), ("AVG", 1.0)):
        with pytest.raises(InvalidParameterValue):
            language.aggregation(kind, value)
