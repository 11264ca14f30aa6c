"""Points of metrics, their stored value, and their order in time."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import repeat
from typing import Final, NamedTuple

MAX_DOUBLE = 1.7976931348623157e308


class Metric(NamedTuple):
    """A point of a metric. ``value`` may be NaN but is never infinite (see
    :func:`stored_value`)."""

    key: str
    value: float
    timestamp: int
    step: int


_new_metric: Final = partial(tuple.__new__, Metric)
"""Does the same as ``Metric._make``, faster for tens of thousands of points."""


class MetricColumns(NamedTuple):
    """Points of one metric as parallel columns, which need less memory and time than ``Metric``
    objects."""

    steps: Sequence[int]
    timestamps: Sequence[int]
    values: Sequence[float]

    @classmethod
    def of(cls, points: Sequence[Metric]) -> MetricColumns:
        """Returns the steps, timestamps and values of points of one metric as columns."""
        return cls(
            [point.step for point in points],
            [point.timestamp for point in points],
            [point.value for point in points],
        )

    def points(self, key: str) -> Iterator[Metric]:
        """Yields the points in these columns (values, times, steps) as points of metric ``key``."""
        return map(
            _new_metric, zip(repeat(key), self.values, self.timestamps, self.steps, strict=False)
        )


def stored_value(value: float) -> float:
    """Returns the double that MLflow stores for a logged metric value: infinities are clamped, -0.0
    becomes 0.0."""
    if math.isinf(value):
        return MAX_DOUBLE if value > 0 else -MAX_DOUBLE
    return value + 0.0


def recency(metric: Metric) -> tuple[int, int, float]:
    """Returns a key by which points of a metric sort; the greatest one is the latest, whose value
    the run shows. NaN counts as 0, as in MLflow's SQL store."""
    return (metric.step, metric.timestamp, 0.0 if math.isnan(metric.value) else metric.value)
