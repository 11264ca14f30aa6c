"""Reads the history of a metric: all points, in pages, of many runs, or sampled for charts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, TypeGuard

from mlcore import errors, paging
from mlcore.entities.metrics import Metric, MetricColumns
from mlcore.http import Request
from mlcore.limits import runs as limits
from mlcore.repos.runs.core import metric_queries
from mlcore.repos.runs.history import point_positions
from mlcore.repos.runs.history.point_positions import Order
from mlcore.responses import runs as responses
from runs import messages as m

MAX_SAMPLED_POINTS = 2_500
MAX_POINTS_OF_A_RESPONSE = 25_000
MAX_RESPONSE_BYTES = 5_000_000
"""Points beyond this come with the next page token; a Lambda response is limited to 6 MB."""
POINT_BYTES = 150
"""The most bytes of JSON that one point takes, without the metric's key."""

_FLAGS = range(8)


def get_metric_history(message: m.GetMetricHistory, request: Request) -> dict[str, Any]:
    """Returns a page of the points of one metric of a run, ordered by timestamp, step and value. An
    unknown key has no points; nor has an unknown run if workspaces are off."""
    page_size = message.max_results if message.has("max_results") else None
    if page_size is not None:
        limits.check_history_page(page_size)
    run_id = message.run_id or message.run_uuid
    query = [run_id, message.metric_key]
    after, large = _position_of(paging.position_of(message.page_token, query))
    limit = _points_per_response(message.metric_key)
    page = metric_queries.read_page(
        request.workspace, run_id, message.metric_key, after, min(page_size or limit, limit), large
    )
    answer: dict[str, Any] = {}
    if page.points:
        answer["metrics"] = responses.encoded_points(message.metric_key, page.points)
    if page.more:
        answer["next_page_token"] = _token(page.points[-1], page.large, query)
    return answer


def get_metric_history_bulk(message: m.GetMetricHistoryBulk, request: Request) -> dict[str, Any]:
    """Returns one metric's points of up to 100 runs, ordered by run, timestamp, step and value.
    Points after the first ``max_results`` (by default and at most 25,000, fewer for a metric with a
    long key) are left out; a negative ``max_results`` leaves out none."""
    run_ids = message.run_id
    limits.check_history_bulk(run_ids, message.has("metric_key"))
    limit = min(limits.MAX_BULK_RESULTS, _points_per_response(message.metric_key))
    if message.has("max_results"):
        limit = min(message.max_results, limit)
    sorted_run_ids = sorted(set(run_ids))
    series_of_runs: list[tuple[str, MetricColumns]] = []
    count = 0
    for run_id, series in zip(
        sorted_run_ids,
        metric_queries.read_beginnings(
            request.workspace, sorted_run_ids, message.metric_key, limit if limit >= 0 else None
        ),
        strict=True,
    ):
        fitting = series if limit < 0 else series[: limit - count]
        series_of_runs.append((run_id, MetricColumns.of(fitting)))
        count += len(fitting)
    return {"metrics": responses.encoded_points_of_runs(message.metric_key, series_of_runs)}


def get_metric_history_bulk_interval(
    message: m.GetMetricHistoryBulkInterval, request: Request
) -> dict[str, Any]:
    limit = message.max_results if message.has("max_results") else MAX_SAMPLED_POINTS
    low = message.start_step if message.has("start_step") else None
    high = message.end_step if message.has("end_step") else None
    series_of_runs = metric_queries.history_interval(
        request.workspace, message.run_ids, message.metric_key, low, high, limit
    )
    sampled = responses.encoded_points_of_runs(message.metric_key, series_of_runs)
    return {"metrics": sampled} if sampled else {}


def _points_per_response(key: str) -> int:
    """Returns how many points of a metric fit in a response. Each point repeats the key."""
    fitting = MAX_RESPONSE_BYTES // (POINT_BYTES + len(json.dumps(key)))
    return min(fitting, MAX_POINTS_OF_A_RESPONSE)


def _position_of(values: Sequence[object] | None) -> tuple[Order | None, int]:
    """Parses a page token: returns the position of the last point of the previous page, and the
    ``large`` argument for :func:`mlcore.repos.runs.core.metric_queries.read_page`. None and 0
    without a token."""
    if values is None:
        return None, 0
    if len(values) == 4:
        timestamp, step, value, flags = values
        if (
            _is_int64(timestamp)
            and _is_int64(step)
            and isinstance(value, int | float)
            and isinstance(flags, int)
            and flags in _FLAGS
        ):
            is_nan, large = bool(flags & 1), flags >> 1
            return (timestamp, step, float(value), is_nan), large
    raise errors.InvalidParameterValue("Invalid page token")


def _token(point: Metric, large: int, query: object) -> str:
    timestamp, step, value, is_nan = point_positions.order(point)
    return paging.token([timestamp, step, value, is_nan + 2 * large], query)


def _is_int64(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and -(2**63) <= value < 2**63
