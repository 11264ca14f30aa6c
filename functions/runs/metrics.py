"""The rules of reading metric history: whole, in pages, for many runs, and sampled for charts."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from functools import partial
from typing import Any

from mlcore import errors, paging
from mlcore.db.table import table
from mlcore.entities import Metric
from mlcore.http import Request
from mlcore.limits import runs as limits
from mlcore.repos import history, runs
from runs import messages as m
from runs import responses

MAX_SAMPLED_POINTS = 2_500
MAX_POINTS_OF_A_RESPONSE = 25_000
MAX_RESPONSE_BYTES = 5_000_000
"""A Lambda response ends at 6 MB. Clients follow the page token."""
POINT_BYTES = 150
"""At most, without the metric's key."""


def get_metric_history(message: m.GetMetricHistory, request: Request) -> dict[str, Any]:
    """The points of one metric ordered by timestamp, step and value; nothing for an unknown run or
    key."""
    wanted = message.max_results if message.has("max_results") else None
    if wanted is not None:
        limits.check_history_page(wanted)
    run_id = message.run_id or message.run_uuid
    query = [run_id, message.metric_key]
    after = paging.position_of(message.page_token, query)
    if after is not None:
        _check_position(after)
    found = _read(run_id, message.metric_key)
    if after is not None:
        found = [point for point in found if _position(point) > tuple(after)]
    most = _most_points(message.metric_key)
    size = min(wanted or most, most)
    page = found[:size]
    answer: dict[str, Any] = {}
    if page:
        answer["metrics"] = [responses.metric(point) for point in page]
    if len(found) > size:
        answer["next_page_token"] = paging.token(_position(page[-1]), query)
    return answer


def get_metric_history_bulk(message: m.GetMetricHistoryBulk, request: Request) -> dict[str, Any]:
    """The points of one metric for up to 100 runs, ordered by run, timestamp, step and value."""
    run_ids = message.run_id
    limits.check_history_bulk(run_ids, message.has("metric_key"))
    limit = min(limits.MAX_BULK_RESULTS, _most_points(message.metric_key))
    if message.has("max_results"):
        limit = min(message.max_results, limit)
    ordered = sorted(set(run_ids))
    found = [
        responses.metric_of_run(point, run_id)
        for run_id, series in zip(ordered, _read_many(ordered, message.metric_key), strict=True)
        for point in series
    ]
    return {"metrics": found[:limit] if limit >= 0 else found}


def get_metric_history_bulk_interval(
    message: m.GetMetricHistoryBulkInterval, request: Request
) -> dict[str, Any]:
    """At most ``max_results`` points of each run, spread evenly over its points, the last one
    always among them."""
    limit = message.max_results if message.has("max_results") else MAX_SAMPLED_POINTS
    low = message.start_step if message.has("start_step") else None
    high = message.end_step if message.has("end_step") else None
    limits.check_step_range(low, high)
    sampled = [
        responses.metric_of_run(point, run_id)
        for run_id, series in zip(
            message.run_ids, _read_many(message.run_ids, message.metric_key), strict=True
        )
        for point in sample(_between(series, low, high), limit)
    ]
    return {"metrics": sampled} if sampled else {}


def sample(points: Sequence[Metric], limit: int) -> list[Metric]:
    """The first point of each of ``limit`` buckets over the points by step, and the last point.

    Buckets are those of SQL's NTILE: of N points in n buckets, the first N mod n hold one more.
    When the sample is full already, the last point takes the place of the last one sampled.
    """
    ordered = sorted(points, key=lambda p: (p.step, p.timestamp, *_value_order(p)))
    if len(ordered) <= limit:
        return ordered
    size, larger = divmod(len(ordered), limit)
    firsts = [bucket * size + min(bucket, larger) for bucket in range(limit)]
    chosen = [ordered[position] for position in firsts]
    if firsts[-1] != len(ordered) - 1:
        chosen[-1] = ordered[-1]
    return chosen


def _most_points(key: str) -> int:
    """How many points of a metric fit a response; each repeats the key."""
    fitting = MAX_RESPONSE_BYTES // (POINT_BYTES + len(json.dumps(key)))
    return min(fitting, MAX_POINTS_OF_A_RESPONSE)


def _check_position(values: Sequence[object]) -> None:
    numbers = [value for value in values if isinstance(value, int | float)]
    if len(values) != 4 or len(numbers) != 4:
        raise errors.InvalidParameterValue("Invalid page token")


def _between(series: list[Metric], low: int | None, high: int | None) -> list[Metric]:
    if low is None or high is None:
        return series
    return [point for point in series if low <= point.step <= high]


def _read(run_id: str, key: str) -> list[Metric]:
    experiment_id = runs.locate(run_id)
    return [] if experiment_id is None else history.read(experiment_id, run_id, key)


def _read_many(run_ids: Sequence[str], key: str) -> list[list[Metric]]:
    return table.parallel([partial(_read, run_id, key) for run_id in run_ids])


def _position(point: Metric) -> tuple[object, ...]:
    return (point.timestamp, point.step, *_value_order(point))


def _value_order(point: Metric) -> tuple[float, int]:
    """NaN takes its place as 0, after a real 0."""
    return (0.0, 1) if math.isnan(point.value) else (point.value, 0)
