"""Positions of points in the history of a metric, and the ranges of positions that items cover.

A position is timestamp, step and value in order-preserving hexadecimal, 48 digits, in the order of
MLflow's history. The ranges of items may overlap in any way. To find the items that reach a
position, a reader must know how far before it they may begin. So each item belongs to a class of
spans: an item of class ``n`` ends less than ``2 ** SPANS[n]`` after its first point, with positions
read as numbers of 192 bits.
"""

from __future__ import annotations

import math
from typing import Final

from mlcore.db.sortable import double, int64_hex, parse_point
from mlcore.entities.metrics import Metric

_STEP: Final = 64
_TIMESTAMP: Final = 128
"""Number of bits below the step in a position, and below the timestamp."""
SPANS: Final = (
    0,
    _STEP,
    *range(_STEP + 4, _STEP + 28, 4),
    _STEP + 32,
    _TIMESTAMP,
    *range(_TIMESTAMP + 4, _TIMESTAMP + 44, 4),
    _TIMESTAMP + 48,
    192,
)
"""In bits: one point; all values of a step; 2^4, 2^8 … steps; all steps of a timestamp; 2^4, 2^8 …
milliseconds; everything. If items do not overlap, a reader reads at most 16 that do not reach the
position."""

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


def span(first: str, last: str) -> int:
    """Returns the class of an item of metric history by its length: the index in :data:`SPANS` for
    the distance of the item's last point from its first.

    Args:
        first: position of the first point; it may lack the value.
        last: position of the last point.
    """
    bits = (int(last, 16) - int(first.ljust(48, "0"), 16)).bit_length()
    return next(number for number, most in enumerate(SPANS) if bits <= most)


def latest(first: str, span: int) -> str:
    """Returns an upper bound of the positions of the metric points in an item (a batch or a pack).

    Args:
        first: position of the item's first point; it may lack the value.
        span: index in :data:`SPANS` of the bound of the distance between first and last point.
    """
    bits = max(SPANS[span], _STEP) if len(first) == 32 else SPANS[span]
    return f"{min(int(first.ljust(48, '0'), 16) + (1 << bits), 1 << 192) - 1:048x}"


def earliest(at: str, span: int) -> str:
    """Returns the earliest position that the first point of an item of metric history can have if
    the item's last point is at the position ``at`` or later.

    Args:
        span: the item's class in :data:`SPANS`.
    """
    return f"{max(0, int(at, 16) - (1 << SPANS[span]) + 1):048x}"
