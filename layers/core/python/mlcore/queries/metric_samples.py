"""Points of a metric that are spread evenly over a range of its steps, as charts want them.

A history that was logged step by step, as most are, is sampled as columns, and only what is in the
sample is made of it.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from mlcore.entities.metrics import Columns, Metric, recency
from mlcore.repos.runs import history, history_columns, latest_points
from mlcore.repos.runs.history import Kept
from mlcore.repos.runs.latest_points import Latest


class Wanted(NamedTuple):
    """At most ``limit`` points of a metric from step ``low`` to ``high``, of all steps where either
    is None."""

    key: str
    low: int | None
    high: int | None
    limit: int


def of(found: Kept, latest: Latest | None, wanted: Wanted) -> Columns:
    """The sample of a history that ends with the latest value, by step, timestamp and value."""
    columns = history_columns.in_order(found, wanted.key)
    if columns is None or not _agree(columns, latest, wanted.key):
        points = latest_points.completed(history.points_of(found, wanted.key), latest)
        return Columns.of(_of_points(points, wanted))
    steps, timestamps, values = columns
    begin, end = 0, len(steps)
    if wanted.low is not None and wanted.high is not None:
        begin, end = bisect_left(steps, wanted.low), bisect_right(steps, wanted.high)
    chosen = [begin + place for place in places(max(0, end - begin), wanted.limit)]
    return Columns(
        [steps[at] for at in chosen],
        [timestamps[at] for at in chosen],
        [values[at] for at in chosen],
    )


def places(count: int, limit: int) -> Sequence[int]:
    """Of ``count`` points in order, which are sampled: the first of each of ``limit`` buckets, and
    the last.

    Buckets are those of SQL's NTILE: of N points in n buckets, the first N mod n hold one more.
    When the sample is full already, the last point takes the place of the last one sampled.
    """
    if count <= limit:
        return range(count)
    size, larger = divmod(count, limit)
    return [*[bucket * size + min(bucket, larger) for bucket in range(limit - 1)], count - 1]


def _agree(columns: Columns, latest: Latest | None, key: str) -> bool:
    """Whether none of the points is later than the latest value, and it is one of them if it must
    be."""
    steps, timestamps, values = columns
    if latest is None or not steps:
        return latest is None and not steps
    last = Metric(key, values[-1], timestamps[-1], steps[-1])
    return recency(last) <= recency(latest.point) and (
        not latest.in_history or history_columns.holds(columns, latest.point)
    )


def _of_points(points: Sequence[Metric], wanted: Wanted) -> list[Metric]:
    low, high = wanted.low, wanted.high
    if low is not None and high is not None:
        points = [point for point in points if low <= point.step <= high]
    ordered = sorted(points, key=_step_order)
    return [ordered[at] for at in places(len(ordered), wanted.limit)]


def _step_order(point: Metric) -> tuple[int, int, float, bool]:
    """NaN takes its place as 0, after a real 0."""
    nan = math.isnan(point.value)
    return point.step, point.timestamp, 0.0 if nan else point.value, nan
