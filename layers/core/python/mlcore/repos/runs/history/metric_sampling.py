"""Samples the points of a metric in a range of steps, for charts: the points are divided into
groups of consecutive points, and one point of each group is taken.

A history that was logged step by step, the usual case, is sampled as columns, and only sampled
points become objects.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from mlcore.entities.metrics import Metric, MetricColumns, recency
from mlcore.repos.runs.history import history_columns, latest_points, metric_history
from mlcore.repos.runs.history.latest_points import Latest
from mlcore.repos.runs.history.metric_history import HistoryParts


class SampleRequest(NamedTuple):
    """The sample to take: at most ``limit`` points of a metric from step ``low`` to ``high``; of
    all steps if either is None."""

    key: str
    low: int | None
    high: int | None
    limit: int


def of(stored: HistoryParts, latest: Latest | None, wanted: SampleRequest) -> MetricColumns:
    """Returns a sample of a metric's stored history, as columns ordered by step, timestamp and
    value. It is taken from the history as readers see it: with the metric's latest value, and
    without points later than that (:mod:`.latest_points`).

    Args:
        stored: the history as :func:`mlcore.repos.runs.history.metric_history.read_stored` read it.
        latest: the latest value in the run item; None if the run does not have the metric.
        wanted: the metric, the range of steps and the maximum number of points.
    """
    columns = history_columns.in_order(stored, wanted.key)
    if columns is None or not _agree(columns, latest, wanted.key):
        points = latest_points.completed(metric_history.points_of(stored, wanted.key), latest)
        return MetricColumns.of(_of_points(points, wanted))
    steps, timestamps, values = columns
    begin, end = 0, len(steps)
    if wanted.low is not None and wanted.high is not None:
        begin, end = bisect_left(steps, wanted.low), bisect_right(steps, wanted.high)
    chosen = [begin + offset for offset in places(max(0, end - begin), wanted.limit)]
    return MetricColumns(
        [steps[at] for at in chosen],
        [timestamps[at] for at in chosen],
        [values[at] for at in chosen],
    )


def places(count: int, limit: int) -> Sequence[int]:
    """Returns the indexes of the sampled points among ``count`` ordered points: the first of each
    of ``limit`` buckets, and the last.

    Buckets are those of SQL's NTILE: of N points in n buckets, the first N mod n buckets hold one
    more. In a full sample the last point replaces that of the last bucket.
    """
    if count <= limit:
        return range(count)
    size, larger = divmod(count, limit)
    boundary = larger * (size + 1)
    starts = [*range(0, boundary, size + 1), *range(boundary, count, size)]
    return [*starts[: limit - 1], count - 1]


def _agree(columns: MetricColumns, latest: Latest | None, key: str) -> bool:
    """Whether the points agree with the metric's latest value, so that they can be shown as they
    were read: none is later, and the latest value is among them if the history must contain it."""
    steps, timestamps, values = columns
    if latest is None or not steps:
        return latest is None and not steps
    last = Metric(key, values[-1], timestamps[-1], steps[-1])
    return recency(last) <= recency(latest.point) and (
        not latest.in_history or history_columns.holds(columns, latest.point)
    )


def _of_points(points: Sequence[Metric], wanted: SampleRequest) -> list[Metric]:
    low, high = wanted.low, wanted.high
    if low is not None and high is not None:
        points = [point for point in points if low <= point.step <= high]
    ordered = sorted(points, key=_step_order)
    return [ordered[at] for at in places(len(ordered), wanted.limit)]


def _step_order(point: Metric) -> tuple[int, int, float, bool]:
    """Returns the sort key of a point: step, timestamp, value. NaN is ordered as 0, after a real
    0."""
    nan = math.isnan(point.value)
    return point.step, point.timestamp, 0.0 if nan else point.value, nan
