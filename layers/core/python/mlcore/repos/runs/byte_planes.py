"""Columns of 8-byte numbers with all first bytes before all second ones, and so on: what differs
little is mostly zeros then, which zlib takes away."""

from __future__ import annotations

from typing import Final

NUMBER_BYTES: Final = 8


def apart(column: bytes) -> bytes:
    """The bytes of a column of numbers, first bytes first."""
    return b"".join([column[at::NUMBER_BYTES] for at in range(NUMBER_BYTES)])


def together(body: bytes, begin: int, total: int) -> bytes:
    """The reverse of :func:`apart`, for the column of so many numbers that begins there."""
    column = bytearray(total * NUMBER_BYTES)
    for at in range(NUMBER_BYTES):
        column[at::NUMBER_BYTES] = body[begin + at * total : begin + (at + 1) * total]
    return bytes(column)
