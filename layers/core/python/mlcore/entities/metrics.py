"""Points of metrics, the double that is stored of one, and which of two is later."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import repeat
from typing import Final, NamedTuple

MAX_DOUBLE = 1.7976931348623157e308


class Metric(NamedTuple):
    """One point of a metric. ``value`` may be NaN, never infinite (see :func:`stored_value`)."""

    key: str
    value: float
    timestamp: int
    step: int


_metric: Final = partial(tuple.__new__, Metric)
"""What ``Metric._make`` does, for points by the ten thousand."""


class Columns(NamedTuple):
    """Points of one metric that are not made yet: the steps, timestamps and values of all."""

    steps: Sequence[int]
    timestamps: Sequence[int]
    values: Sequence[float]

    @classmethod
    def of(cls, points: Sequence[Metric]) -> Columns:
        """Those of points that are there."""
        return cls(
            [point.step for point in points],
            [point.timestamp for point in points],
            [point.value for point in points],
        )

    def points(self, key: str) -> Iterator[Metric]:
        """The points as those of a metric."""
        return map(
            _metric, zip(repeat(key), self.values, self.timestamps, self.steps, strict=False)
        )


def stored_value(value: float) -> float:
    """The double that MLflow stores for a logged value: infinities are clamped, -0.0 becomes
    0.0."""
    if math.isinf(value):
        return MAX_DOUBLE if value > 0 else -MAX_DOUBLE
    return value + 0.0


def recency(metric: Metric) -> tuple[int, int, float]:
    """Orders points of one metric: the greatest is the latest. NaN takes part as 0, as in MLflow's
    SQL store."""
    return (metric.step, metric.timestamp, 0.0 if math.isnan(metric.value) else metric.value)
