"""A lock by which the processes that write to the same file take turns.

SQLite's own wait for a lock sleeps for milliseconds between its attempts; the kernel wakes a
process that waits for this lock at once.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from types import TracebackType


class ProcessLock:
    """A lock between processes. Threads of one process need another lock in addition."""

    def __init__(self, path: Path) -> None:
        """Opens the file that is locked, and creates it if it is missing.

        Raises:
            OSError: the file can neither be opened nor created.
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
        """Closes the locked file. The lock cannot be used afterwards."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
