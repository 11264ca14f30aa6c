"""Limits how many bytes of request bodies are in memory at the same time."""

from __future__ import annotations

import threading
from typing import Final

BODIES_BYTES: Final = 256 * 1024 * 1024
"""The memory limit for all request bodies together: 42 bodies of 6 MB, Lambda's limit. Bodies that
arrive together with their headers are not counted."""


class NoRoom(Exception):
    """Raised if, with a request's body, all bodies in the local server's memory would exceed their
    limit. The request was not processed.
    """


class BodyBudget:
    """Counts the bytes of request bodies in memory against a limit. Callable from many threads."""

    def __init__(self, limit: int = BODIES_BYTES) -> None:
        self._lock = threading.Lock()
        self._left = limit

    def take(self, size: int) -> bool:
        """Reserves ``size`` bytes for request bodies in memory; False if fewer are left."""
        with self._lock:
            if size > self._left:
                return False
            self._left -= size
            return True

    def give_back(self, size: int) -> None:
        """Frees ``size`` bytes that :meth:`take` has reserved for a request's body."""
        with self._lock:
            self._left += size
