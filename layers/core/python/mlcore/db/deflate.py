"""Compresses short data. zlib prepares 256 KB of tables for each call, which takes 50 microseconds
however short the data are; here they are as large as the data need. Any reader of zlib's format
reads the result."""

from __future__ import annotations

import zlib
from typing import Final

_LEVEL: Final = 6
_LEAST_BITS, _MOST_BITS = 9, 15
"""Limits for the logarithm of the window, in bytes."""
_MOST_MEMORY: Final = 8
"""zlib's default."""


def compressed(data: bytes) -> bytes:
    """Returns the data in zlib's format."""
    # The window does not reach back as far as it is long: 262 bytes less.
    bits = min(_MOST_BITS, max(_LEAST_BITS, len(data).bit_length() + 1))
    # A block holds 64 symbols, doubled by each step of memory: all data are one block.
    packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, bits, min(_MOST_MEMORY, bits - 6))
    return packer.compress(data) + packer.flush()
