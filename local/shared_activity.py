"""Shares two facts between the local server and its stream process (the child process that runs the
indexer): when the last request was answered, and when the indexer last reported that it lags far
behind. Both are timestamps in shared memory."""

from __future__ import annotations

import mmap
import os
import struct
import tempfile
import time
from typing import Final

BUSY_SECONDS: Final = 0.1
LAG_REPORT_SECONDS: Final = 30.0
"""A report of lag older than this is ignored: the process that wrote it has ended."""
_MOMENT: Final = struct.Struct("=d")
_ANSWERED, _BEHIND, _BYTES = 0, _MOMENT.size, 2 * _MOMENT.size


class SharedActivity:
    """When a request was last answered, and when the indexer last reported a lag: timestamps in
    memory that this process and its child, the stream process, share (by ``descriptor``).
    """

    def __init__(self, descriptor: int | None = None) -> None:
        """Args:
        descriptor: the descriptor of memory that another process created; None creates new
            memory.
        """
        self.descriptor = _new() if descriptor is None else descriptor
        self._memory = mmap.mmap(self.descriptor, _BYTES)

    def record_request(self) -> None:
        """Records that the local server answered a request now."""
        _MOMENT.pack_into(self._memory, _ANSWERED, time.monotonic())

    def is_serving(self) -> bool:
        """Returns whether the local server answered an HTTP request within the last
        :data:`BUSY_SECONDS`; then another request will probably follow.
        """
        return self._is_since(_ANSWERED, BUSY_SECONDS)

    def set_index_lagging(self, lagging: bool) -> None:
        """Records whether the indexer lags far behind, as the last page of records shows that it
        read from the table's stream."""
        _MOMENT.pack_into(self._memory, _BEHIND, time.monotonic() if lagging else 0.0)

    def is_index_lagging(self) -> bool:
        """Returns whether the indexer lagged far behind at the last report, if that report is
        younger than :data:`LAG_REPORT_SECONDS`."""
        return self._is_since(_BEHIND, LAG_REPORT_SECONDS)

    def _is_since(self, offset: int, seconds: float) -> bool:
        last: float = _MOMENT.unpack_from(self._memory, offset)[0]
        return last > 0.0 and time.monotonic() - last < seconds

    def close(self) -> None:
        """Unmaps the memory that the server shares with its child, and closes the descriptor."""
        self._memory.close()
        os.close(self.descriptor)


def _new() -> int:
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("shared-activity")
    else:
        with tempfile.TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    # Writing allocates the page now: a full disk cannot make a later access fail.
    os.write(descriptor, bytes(_BYTES))
    return descriptor
