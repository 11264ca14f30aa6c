"""Compresses short data faster than :func:`zlib.compress`, which prepares 256 KB of tables for each
call and so takes at least 50 microseconds. This module chooses tables of the size that the data
need. The result is in zlib's format."""

from __future__ import annotations

import zlib
from typing import Final

_LEVEL: Final = 6
_LEAST_BITS, _MOST_BITS = 9, 15
"""zlib's limits for ``wbits``, the base-two logarithm of the window in bytes."""
_MOST_MEMORY: Final = 8
"""zlib's default for ``memLevel``."""


def compressed(data: bytes) -> bytes:
    """Returns the data compressed, in zlib's format."""
    # One bit more than the length needs: zlib refers back at most 262 bytes less than the window.
    bits = min(_MOST_BITS, max(_LEAST_BITS, len(data).bit_length() + 1))
    # memLevel n lets a block hold 64 * 2**n symbols, so data below 16 KB fit into one block.
    packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, bits, min(_MOST_MEMORY, bits - 6))
    return packer.compress(data) + packer.flush()
