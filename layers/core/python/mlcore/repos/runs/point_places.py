"""Where points stand in the history of a metric, and how far the points of one item reach.

A place is timestamp, step and value in order-preserving hexadecimal, 48 digits: the order of
MLflow's history. Items of history overlap as their writers like, so to find those that reach a
place one must know how far before it they may begin. Each item therefore belongs to a class of
spans: one of class ``n`` reaches less than ``2 ** SPANS[n]`` beyond its first point, a place being
a number of 192 bits.
"""

from __future__ import annotations

import math
from typing import Final

from mlcore.db.sortable import double, int64_hex, parse_point
from mlcore.entities.metrics import Metric

_STEP: Final = 64
_TIMESTAMP: Final = 128
"""Bits of a place below its step, and below its timestamp."""
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
"""In bits: one point, the values of a step, then 2^4, 2^8 … steps and all of a timestamp, 2^4,
2^8 … milliseconds and all. Of items that do not overlap at most 16 are met in vain."""

Order = tuple[int, int, float, bool]
"""Timestamp, step, value (NaN as 0) and whether it is NaN: the identity of a point too."""


def order(point: Metric) -> Order:
    if math.isnan(point.value):
        return (point.timestamp, point.step, 0.0, True)
    return (point.timestamp, point.step, point.value, False)


def place(at: Order) -> str:
    """Of two places that differ in nothing but NaN there is one."""
    return moment(at[0], at[1]) + double(at[2] + 0.0)


def moment(timestamp: int, step: int) -> str:
    """The beginning of a place that timestamp and step make."""
    return int64_hex(timestamp) + int64_hex(step)


def step_of(text: str) -> str:
    """The beginning that all points of one timestamp and step share."""
    return text[:32]


def parse(text: str) -> tuple[int, int, float]:
    """Timestamp, step and value of a place; without a value the least one."""
    if len(text) == 48:
        return parse_point(text)
    timestamp, step, _ = parse_point(text + "8" + "0" * 15)
    return timestamp, step, -math.inf


def span(first: str, last: str) -> int:
    """The class of an item with these outermost places; :func:`step_of` the first one will do."""
    bits = (int(last, 16) - int(first.ljust(48, "0"), 16)).bit_length()
    return next(number for number, most in enumerate(SPANS) if bits <= most)


def latest(first: str, span: int) -> str:
    """The last place that an item of a class may reach which begins at a place, or at the moment of
    a timestamp and step."""
    bits = max(SPANS[span], _STEP) if len(first) == 32 else SPANS[span]
    return f"{min(int(first.ljust(48, '0'), 16) + (1 << bits), 1 << 192) - 1:048x}"


def earliest(at: str, span: int) -> str:
    """The first place at which an item of a class may begin that reaches ``at``."""
    return f"{max(0, int(at, 16) - (1 << SPANS[span]) + 1):048x}"
