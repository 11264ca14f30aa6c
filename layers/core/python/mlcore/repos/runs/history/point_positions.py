"""Positions of points in the history of a metric. A position is timestamp, step and value in
order-preserving hexadecimal, 48 digits, in the order of MLflow's history."""

from __future__ import annotations

import math

from mlcore.db.sortable import double, int64_hex, parse_point
from mlcore.entities.metrics import Metric

Order = tuple[int, int, float, bool]
"""Timestamp, step, value (NaN as 0) and whether it is NaN; together they identify a point."""


def order(point: Metric) -> Order:
    if math.isnan(point.value):
        return (point.timestamp, point.step, 0.0, True)
    return (point.timestamp, point.step, point.value, False)


def position_of(at: Order) -> str:
    """Returns the position of a point in the history of its metric, as text.

    Args:
        at: the point's timestamp, step and value; NaN has the position of 0.
    """
    return position_prefix(at[0], at[1]) + double(at[2] + 0.0)


def position_prefix(timestamp: int, step: int) -> str:
    """Returns the prefix of the positions of a metric's points with this time and step."""
    return int64_hex(timestamp) + int64_hex(step)


def step_of(text: str) -> str:
    """Returns the first 32 of the 48 hexadecimal digits of a metric point's position in the
    history: its timestamp and step."""
    return text[:32]


def parse(text: str) -> tuple[int, int, float]:
    """Returns timestamp, step and value of a metric point's position given as text; the value is
    -inf if the text lacks it."""
    if len(text) == 48:
        return parse_point(text)
    timestamp, step, _ = parse_point(text + "8" + "0" * 15)
    return timestamp, step, -math.inf
