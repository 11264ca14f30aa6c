"""A point of a metric, the double that is stored of it, and which of two points is later."""

from __future__ import annotations

import math
from typing import NamedTuple

MAX_DOUBLE = 1.7976931348623157e308


class Metric(NamedTuple):
    """One point of a metric. ``value`` may be NaN, never infinite (see :func:`stored_value`)."""

    key: str
    value: float
    timestamp: int
    step: int


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
