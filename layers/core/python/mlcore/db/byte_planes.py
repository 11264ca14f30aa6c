"""Rearranges columns of fixed-width numbers for compression: all first bytes, then all second
bytes, and so on. Numbers that differ little then give long sequences of equal bytes, which zlib
compresses well."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

NUMBER_BYTES: Final = 8


def differences(column: Sequence[int]) -> list[int]:
    """Returns the first number, followed by the differences between successive numbers."""
    return [*column[:1], *[later - earlier for earlier, later in pairwise(column)]]


def apart(column: bytes, width: int = NUMBER_BYTES) -> bytes:
    """Returns the bytes of a column of numbers, grouped by position: the first byte of each number,
    then the second bytes, and so on.

    Args:
        width: bytes in a number.
    """
    return b"".join([column[at::width] for at in range(width)])


def together(body: bytes, begin: int, total: int, width: int = NUMBER_BYTES) -> bytes:
    """Restores a column of numbers whose bytes :func:`apart` grouped by position in the number.

    Args:
        begin: index in ``body`` at which the column begins.
        total: how many numbers the column has.
        width: bytes in a number.
    """
    column = bytearray(total * width)
    for at in range(width):
        column[at::width] = body[begin + at * total : begin + (at + 1) * total]
    return bytes(column)
