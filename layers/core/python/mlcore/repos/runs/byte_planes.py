"""Columns of 8-byte numbers with all first bytes before all second ones, and so on: what differs
little is mostly zeros then, which zlib takes away. The same of wider columns."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

NUMBER_BYTES: Final = 8


def differences(column: Sequence[int]) -> list[int]:
    """The first number, then of each what it is more than the one before."""
    return [*column[:1], *[later - earlier for earlier, later in pairwise(column)]]


def apart(column: bytes, width: int = NUMBER_BYTES) -> bytes:
    """The bytes of a column, first bytes first."""
    return b"".join([column[at::width] for at in range(width)])


def together(body: bytes, begin: int, total: int, width: int = NUMBER_BYTES) -> bytes:
    """The reverse of :func:`apart`, for the column of so many entries that begins there."""
    column = bytearray(total * width)
    for at in range(width):
        column[at::width] = body[begin + at * total : begin + (at + 1) * total]
    return bytes(column)
