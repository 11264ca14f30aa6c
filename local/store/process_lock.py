"""Lets the processes that write to one file wait for each other.

SQLite's own wait for a lock sleeps for milliseconds between its attempts; the kernel wakes a waiter
at once.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from types import TracebackType


class ProcessLock:
    """A lock among processes; threads of one process need a lock of their own around it."""

    def __init__(self, path: Path) -> None:
        """Opens the lock's file, which is made if it is missing.

        Raises:
            OSError: it can be neither opened nor made.
        """
        self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)

    def __enter__(self) -> None:
        fcntl.flock(self._file, fcntl.LOCK_EX)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        fcntl.flock(self._file, fcntl.LOCK_UN)

    def close(self) -> None:
        """Closes the file. Further use fails."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
