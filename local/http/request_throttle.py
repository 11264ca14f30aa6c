"""Applies backpressure: while the indexer lags far behind, the local server serves four short
requests at a time, and a further one waits for a quarter of a second at most; otherwise it serves
any number.

The indexer shares the store with the requests. With many clients it would lag more and more, and
searches would become slow, because they read each run that is not yet indexed.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Final

REQUESTS_WHILE_LAGGING: Final = 4
LONGEST_WAIT_SECONDS: Final = 0.25
"""The longest time that a request waits for a slot."""
LONGEST_HOLD_SECONDS: Final = 0.25
"""After this time a request no longer counts against the limit: it waits for something other
than the store, such as a model provider."""


class Slot:
    """One of the places that :class:`RequestThrottle` gives to requests that the local server
    serves at the same time. The caller gives it back with :meth:`RequestThrottle.leave`."""

    __slots__ = ("given", "since")

    def __init__(self) -> None:
        self.since = 0.0
        self.given: threading.Event | None = None


class RequestThrottle:
    """Limits how many requests the local server serves at the same time while the indexer lags far
    behind. Callable from many threads.
    """

    def __init__(self, is_index_lagging: Callable[[], bool] = lambda: False) -> None:
        """Args:
        is_index_lagging: returns whether the limit applies now.
        """
        self._is_index_lagging = is_index_lagging
        self._lock = threading.Lock()
        self._held: set[Slot] = set()
        self._waiting: deque[Slot] = deque()

    def enter(self) -> Slot:
        """Returns a slot for a request; the caller gives it back by :meth:`leave`. Blocks while the
        index lags and all slots are taken, for :data:`LONGEST_WAIT_SECONDS` at most.
        """
        slot = Slot()
        with self._lock:
            if len(self._held) < REQUESTS_WHILE_LAGGING or not self._is_full():
                self._give(slot)
                return slot
            given = slot.given = threading.Event()
            self._waiting.append(slot)
        if not given.wait(LONGEST_WAIT_SECONDS):
            with self._lock:
                if slot in self._waiting:  # otherwise it got a slot at the last moment
                    self._waiting.remove(slot)
                    self._give(slot)
        return slot

    def leave(self, slot: Slot) -> None:
        """Frees the slot of an ended request, and gives it to the request that waits longest."""
        with self._lock:
            self._held.discard(slot)
            if self._waiting:
                following = self._waiting.popleft()
                self._give(following)
                if following.given:
                    following.given.set()

    def _give(self, slot: Slot) -> None:
        slot.since = time.monotonic()
        self._held.add(slot)

    def _is_full(self) -> bool:
        if not self._is_index_lagging():
            return False
        oldest = time.monotonic() - LONGEST_HOLD_SECONDS
        return sum(slot.since > oldest for slot in self._held) >= REQUESTS_WHILE_LAGGING
