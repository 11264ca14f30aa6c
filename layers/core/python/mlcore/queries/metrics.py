"""The points of one metric, of one run or of many, and sampled for charts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

from mlcore.db.table import table
from mlcore.entities import Metric
from mlcore.limits import runs as limits
from mlcore.repos import experiments, history, latest_points, runs
from mlcore.responses import runs as responses
from mlcore.settings import workspaces_enabled


def history_interval(
    workspace: str,
    run_ids: Sequence[str],
    key: str,
    low: int | None,
    high: int | None,
    limit: int,
) -> dict[str, Any]:
    """At most ``limit`` points of each run from step ``low`` to ``high``, spread evenly over its
    points, the last one always among them."""
    limits.check_step_range(low, high)
    sampled = [
        responses.metric_of_run(point, run_id)
        for run_id, series in zip(
            run_ids, read_many(workspace, run_ids, key, refuse=True), strict=True
        )
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


def read(workspace: str, run_id: str, key: str) -> list[Metric]:
    return read_many(workspace, [run_id], key, refuse=True)[0]


def read_many(
    workspace: str, run_ids: Sequence[str], key: str, *, refuse: bool = False
) -> list[list[Metric]]:
    """The points of each run; none for runs of another workspace. Whose an experiment is is read
    beside the points, and so is the latest value, which is one of them.

    Args:
        refuse: where there are workspaces, runs that are not there are no runs without points.

    Raises:
        ResourceDoesNotExist: as ``refuse`` says.
    """
    homes = table.parallel([partial(runs.locate, run_id) for run_id in run_ids])
    distinct = list(dict.fromkeys(home for home in homes if home is not None))
    owned: set[str] = set()

    def own() -> list[Metric]:
        for found in experiments.find_many(distinct):
            if found is not None and found.workspace == workspace:
                owned.add(found.experiment_id)
        return []

    latest: dict[str, Metric] = {}

    def look() -> list[Metric]:
        owners = [(home, run_id) for home, run_id in zip(homes, run_ids, strict=True) if home]
        latest.update(latest_points.of(owners, key))
        return []

    calls = [
        partial(history.read, home, run_id, key) if home is not None else list[Metric]
        for home, run_id in zip(homes, run_ids, strict=True)
    ]
    _, _, *series = table.parallel([own, look, *calls])
    if refuse and workspaces_enabled():
        for home, run_id in zip(homes, run_ids, strict=True):
            if home not in owned:
                raise runs.missing(run_id)
    return [
        latest_points.completed(points, latest.get(run_id)) if home in owned else []
        for home, run_id, points in zip(homes, run_ids, series, strict=True)
    ]


def value_order(point: Metric) -> tuple[float, int]:
    """NaN takes its place as 0, after a real 0."""
    return (0.0, 1) if math.isnan(point.value) else (point.value, 0)
