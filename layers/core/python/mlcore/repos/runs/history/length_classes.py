"""Classes of batches and packs of a metric's points by their length: how far the last point is from
the first.

The ranges of positions (:mod:`.point_positions`) that these items cover may overlap in any way. To
find the items that reach a position, a reader must know how far before it they may begin. So each
item belongs to a class, called *span* in keys: an item of class ``n`` ends less than
``2 ** SPANS[n]`` after its first point, with positions read as numbers of 192 bits.
"""

from __future__ import annotations

from typing import Final

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
milliseconds; everything. If items do not overlap, a reader reads, of a class whose number is 4
greater than the one before, at most 16 that do not reach the position."""


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
    """Returns an upper bound of the positions of the metric points in a batch. The class 0 gives an
    upper bound of the positions that begin with a timestamp and a step, such as that of the last
    point of a segment of a file. (The key of a pack has the position of its last point.)

    Args:
        first: position of the batch's first point, or only its timestamp and step.
        span: the batch's class, an index in :data:`SPANS`.
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
