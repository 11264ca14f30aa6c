"""The points of one metric, of one run or of many, and sampled for charts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

from mlcore.db.table import table
from mlcore.entities import Metric
from mlcore.limits import runs as limits
from mlcore.repos import history, runs
from mlcore.responses import runs as responses


def history_interval(
    run_ids: Sequence[str], key: str, low: int | None, high: int | None, limit: int
) -> dict[str, Any]:
    """At most ``limit`` points of each run from step ``low`` to ``high``, spread evenly over its
    points, the last one always among them."""
    limits.check_step_range(low, high)
    sampled = [
        responses.metric_of_run(point, run_id)
        for run_id, series in zip(run_ids, read_many(run_ids, key), strict=True)
        for point in sample(_between(series, low, high), limit)
    ]
    return {"metrics": sampled} if sampled else {}


def sample(points: Sequence[Metric], limit: int) -> list[Metric]:
    """The first point of each of ``limit`` buckets over the points by step, and the last point.

    Buckets are those of SQL's NTILE: of N points in n buckets, the first N mod n hold one more.
    When the sample is full already, the last point takes the place of the last one sampled.
    """
    ordered = sorted(points, key=lambda p: (p.step, p.timestamp, *value_order(p)))
    if len(ordered) <= limit:
        return ordered
    size, larger = divmod(len(ordered), limit)
    firsts = [bucket * size + min(bucket, larger) for bucket in range(limit)]
    chosen = [ordered[position] for position in firsts]
    if firsts[-1] != len(ordered) - 1:
        chosen[-1] = ordered[-1]
    return chosen


def _between(series: list[Metric], low: int | None, high: int | None) -> list[Metric]:
    if low is None or high is None:
        return series
    return [point for point in series if low <= point.step <= high]


def read(run_id: str, key: str) -> list[Metric]:
    experiment_id = runs.locate(run_id)
    return [] if experiment_id is None else history.read(experiment_id, run_id, key)


def read_many(run_ids: Sequence[str], key: str) -> list[list[Metric]]:
    return table.parallel([partial(read, run_id, key) for run_id in run_ids])


def value_order(point: Metric) -> tuple[float, int]:
    """NaN takes its place as 0, after a real 0."""
    return (0.0, 1) if math.isnan(point.value) else (point.value, 0)
