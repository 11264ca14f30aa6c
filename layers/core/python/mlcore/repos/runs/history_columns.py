"""The points of a metric in the order of their steps as columns: none of them is made."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from operator import lt

from mlcore.entities.metrics import Columns, Metric
from mlcore.models.runs import RunMetricBatch, RunMetricHistory
from mlcore.repos.runs import history, latest_points, point_columns
from mlcore.repos.runs.history import Kept


def in_order(found: Kept, key: str) -> Columns | None:
    """The distinct points by step and timestamp. None where that is not how they were logged: two
    have the same step and timestamp, or parts of the history overlap."""
    parts = [part for part in _parts(found, key) if part.steps]
    parts.sort(key=lambda part: (part.steps[0], part.timestamps[0]))
    steps: list[int] = []
    timestamps: list[int] = []
    values: list[float] = []
    for part in parts:
        steps += part.steps
        timestamps += part.timestamps
        values += part.values
    return Columns(steps, timestamps, values) if _ascend(steps, timestamps) else None


def holds(columns: Columns, point: Metric) -> bool:
    """Whether a point is among those of columns in order."""
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


def _parts(found: Kept, key: str) -> Iterator[Columns]:
    for item in found.batches:
        data = RunMetricBatch.of(item).data
        yield Columns.of(history.points_of_batch(item, key)) if data is None else _part(data, key)
    for item in found.packs:
        data = RunMetricHistory.of(item).data
        yield Columns.of(history.points_of_pack(item, key)) if data is None else _part(data, key)
    for data in found.segments:
        yield _part(data, key)


def _part(data: bytes, key: str) -> Columns:
    return point_columns.columns(data, key).get(key) or Columns([], [], [])
