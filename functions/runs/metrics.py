"""The rules of reading metric history: whole, in pages, for many runs, and sampled for charts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, TypeGuard

from mlcore import errors, paging
from mlcore.entities.metrics import Columns, Metric
from mlcore.http import Request
from mlcore.limits import runs as limits
from mlcore.queries import metrics
from mlcore.repos.runs import point_places
from mlcore.repos.runs.point_places import Order
from mlcore.responses import runs as responses
from runs import messages as m

MAX_SAMPLED_POINTS = 2_500
MAX_POINTS_OF_A_RESPONSE = 25_000
MAX_RESPONSE_BYTES = 5_000_000
"""A Lambda response ends at 6 MB. Clients follow the page token."""
POINT_BYTES = 150
"""At most, without the metric's key."""

_FLAGS = range(8)


def get_metric_history(message: m.GetMetricHistory, request: Request) -> dict[str, Any]:
    """The points of one metric ordered by timestamp, step and value; nothing for an unknown key,
    nor, where workspaces are off, for an unknown run."""
    wanted = message.max_results if message.has("max_results") else None
    if wanted is not None:
        limits.check_history_page(wanted)
    run_id = message.run_id or message.run_uuid
    query = [run_id, message.metric_key]
    after, large = _position_of(paging.position_of(message.page_token, query))
    most = _most_points(message.metric_key)
    page = metrics.read_page(
        request.workspace, run_id, message.metric_key, after, min(wanted or most, most), large
    )
    answer: dict[str, Any] = {}
    if page.points:
        answer["metrics"] = responses.encoded_points(message.metric_key, page.points)
    if page.more:
        answer["next_page_token"] = _token(page.points[-1], page.large, query)
    return answer


def get_metric_history_bulk(message: m.GetMetricHistoryBulk, request: Request) -> dict[str, Any]:
    """The points of one metric for up to 100 runs, ordered by run, timestamp, step and value."""
    run_ids = message.run_id
    limits.check_history_bulk(run_ids, message.has("metric_key"))
    limit = min(limits.MAX_BULK_RESULTS, _most_points(message.metric_key))
    if message.has("max_results"):
        limit = min(message.max_results, limit)
    ordered = sorted(set(run_ids))
    found: list[tuple[str, Columns]] = []
    count = 0
    for run_id, series in zip(
        ordered,
        metrics.read_beginnings(
            request.workspace, ordered, message.metric_key, limit if limit >= 0 else None
        ),
        strict=True,
    ):
        fitting = series if limit < 0 else series[: limit - count]
        found.append((run_id, Columns.of(fitting)))
        count += len(fitting)
    return {"metrics": responses.encoded_points_of_runs(message.metric_key, found)}


def get_metric_history_bulk_interval(
    message: m.GetMetricHistoryBulkInterval, request: Request
) -> dict[str, Any]:
    limit = message.max_results if message.has("max_results") else MAX_SAMPLED_POINTS
    low = message.start_step if message.has("start_step") else None
    high = message.end_step if message.has("end_step") else None
    found = metrics.history_interval(
        request.workspace, message.run_ids, message.metric_key, low, high, limit
    )
    sampled = responses.encoded_points_of_runs(message.metric_key, found)
    return {"metrics": sampled} if sampled else {}


def _most_points(key: str) -> int:
    """How many points of a metric fit a response; each repeats the key."""
    fitting = MAX_RESPONSE_BYTES // (POINT_BYTES + len(json.dumps(key)))
    return min(fitting, MAX_POINTS_OF_A_RESPONSE)


def _position_of(values: Sequence[object] | None) -> tuple[Order | None, int]:
    """The point that a token names, and how the history was read that led to it; tokens of earlier
    versions tell nothing of the latter."""
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
    timestamp, step, value, is_nan = point_places.order(point)
    return paging.token([timestamp, step, value, is_nan + 2 * large], query)


def _is_int64(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and -(2**63) <= value < 2**63
