from __future__ import annotations

from datetime import UTC, datetime, timedelta
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


@given(
    st.sampled_from([-62_135_596_800_000, 253_402_300_799_999, -(2**63), 2**63 - 1, 0])
    | st.integers(-(2**63), 2**63 - 1),
    st.integers(1, 2**40),
)
def test_a_time_without_a_bucket_hides_no_other_row(time: int, interval: int) -> None:
    """A bucket may begin in the years 1 to 9999 only. Whatever else is counted stays in place, also
    within the limit."""
    counted = query(aggregations=[Aggregation("COUNT", None)], interval=interval, limit=1)
    alone = language.points([MetricRow(0, {}, 1)], counted)
    points = language.points([MetricRow(time, {}, 1), MetricRow(0, {}, 1)], counted)
    begin = datetime(1970, 1, 1, tzinfo=UTC)
    try:
        begin += timedelta(seconds=time // (1000 * interval) * interval)
    except OverflowError:
        assert points == alone
    else:
        expected = min(begin, datetime(1970, 1, 1, tzinfo=UTC)).isoformat()
        assert points[0]["dimensions"]["time_bucket"] == expected


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
