"""When a request was answered last, for the processes of one runner; knows no request."""

from __future__ import annotations

import mmap
import os
import struct
import tempfile
import time
from typing import Final

BUSY_SECONDS: Final = 0.1
_MOMENT: Final = struct.Struct("=d")


class Pulse:
    """A moment in memory that a child process may share: it is given ``descriptor``."""

    def __init__(self, descriptor: int | None = None) -> None:
        """Memory of its own, or that of another process behind a descriptor."""
        self.descriptor = _new() if descriptor is None else descriptor
        self._memory = mmap.mmap(self.descriptor, _MOMENT.size)

    def beat(self) -> None:
        """A request was answered."""
        _MOMENT.pack_into(self._memory, 0, time.monotonic())

    def busy(self) -> bool:
        """Whether a request was answered just now, so that the next one is likely on its way."""
        last: float = _MOMENT.unpack_from(self._memory)[0]
        return last > 0.0 and time.monotonic() - last < BUSY_SECONDS

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
    os.write(descriptor, bytes(_MOMENT.size))
    return descriptor
