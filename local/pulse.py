"""What the processes of one runner know of each other: when a request was answered last, and
whether the index is far behind. Knows no request and no record."""

from __future__ import annotations

import mmap
import os
import struct
import tempfile
import time
from typing import Final

BUSY_SECONDS: Final = 0.1
BEHIND_SECONDS: Final = 30.0
"""Whoever said that the index is behind, and nothing since, has died."""
_MOMENT: Final = struct.Struct("=d")
_ANSWERED, _BEHIND, _BYTES = 0, _MOMENT.size, 2 * _MOMENT.size


class Pulse:
    """Two moments in memory that a child process may share: it is given ``descriptor``."""

    def __init__(self, descriptor: int | None = None) -> None:
        """Memory of its own, or that of another process behind a descriptor."""
        self.descriptor = _new() if descriptor is None else descriptor
        self._memory = mmap.mmap(self.descriptor, _BYTES)

    def beat(self) -> None:
        """A request was answered."""
        _MOMENT.pack_into(self._memory, _ANSWERED, time.monotonic())

    def busy(self) -> bool:
        """Whether a request was answered just now, so that the next one is likely on its way."""
        return self._is_since(_ANSWERED, BUSY_SECONDS)

    def tell_behind(self, behind: bool) -> None:
        """Whether the index is far behind, as far as one look at the stream told."""
        _MOMENT.pack_into(self._memory, _BEHIND, time.monotonic() if behind else 0.0)

    def behind(self) -> bool:
        """What was told last."""
        return self._is_since(_BEHIND, BEHIND_SECONDS)

    def _is_since(self, place: int, seconds: float) -> bool:
        last: float = _MOMENT.unpack_from(self._memory, place)[0]
        return last > 0.0 and time.monotonic() - last < seconds

    def close(self) -> None:
        """Gives the memory up."""
        self._memory.close()
        os.close(self.descriptor)


def _new() -> int:
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("pulse")
    else:
        with tempfile.TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    # Written, so that no full disk can take the page away.
    os.write(descriptor, bytes(_BYTES))
    return descriptor
