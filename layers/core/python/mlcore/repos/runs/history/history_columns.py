"""Points of one metric, ordered by step, as columns (lists of steps, timestamps and values): no
object is created for a point."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from operator import lt

from mlcore.entities.metrics import Metric, MetricColumns
from mlcore.models.runs import RunMetricBatch, RunMetricHistory
from mlcore.repos.runs.history import latest_points, point_columns
from mlcore.repos.runs.history.metric_history import HistoryParts


def in_order(stored: HistoryParts, key: str) -> MetricColumns | None:
    """Returns all points of a metric as columns (lists of steps, timestamps and values). Returns
    None if the stored parts of the history, put one after the other, do not have the points
    strictly ordered by step and timestamp: the caller must sort the points then."""
    parts = [part for part in _parts(stored, key) if part.steps]
    parts.sort(key=lambda part: (part.steps[0], part.timestamps[0]))
    steps: list[int] = []
    timestamps: list[int] = []
    values: list[float] = []
    for part in parts:
        steps += part.steps
        timestamps += part.timestamps
        values += part.values
    return MetricColumns(steps, timestamps, values) if _ascend(steps, timestamps) else None


def holds(columns: MetricColumns, point: Metric) -> bool:
    """Whether ``columns``, the points of a metric by step and timestamp, contain ``point``."""
    steps, timestamps, values = columns
    begin = bisect_left(steps, point.step)
    end = bisect_left(steps, point.step + 1, begin)
    at = bisect_left(timestamps, point.timestamp, begin, end)
    if at == end:
        return False
    return latest_points.same(Metric(point.key, values[at], timestamps[at], steps[at]), point)


def _ascend(steps: Sequence[int], timestamps: Sequence[int]) -> bool:
    if all(map(lt, steps, steps[1:])):
        return True
    moments = list(zip(steps, timestamps, strict=True))
    return all(map(lt, moments, moments[1:]))


def _parts(stored: HistoryParts, key: str) -> Iterator[MetricColumns]:
    for item in stored.batches:
        if (batch := RunMetricBatch.of(item).data) is not None:
            yield _part(batch, key)
    for item in stored.packs:
        yield _part(RunMetricHistory.of(item).data, key)
    for data in stored.segments:
        yield _part(data, key)


def _part(data: bytes, key: str) -> MetricColumns:
    return point_columns.columns(data, key).get(key) or MetricColumns([], [], [])
