"""What a process remembers between requests: all of it is here, within one bound, and nothing that
only this process knows.

A request must be right without it: what is remembered never changes, or may be behind for the
seconds that its memory says.
"""

from __future__ import annotations

import itertools
import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, Final, Generic, NamedTuple, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

MOST_BYTES: Final = 12_000_000
"""Of everything together, estimated: a tenth of what the runner takes, a thousand runs that go on.
Then what was remembered first is forgotten."""

ENTRY_BYTES: Final = 400
"""Of an entry without what its value weighs: two short texts, and the place in a dict."""


class _Entry(NamedTuple):
    value: Any
    until: float
    """By the clock of :func:`time.monotonic`."""
    weight: int
    number: int
    """Ascending in the order of being remembered."""


_Entries = OrderedDict[Hashable, _Entry]
"""Of one memory, the first remembered first, which is the first that ends. A dict would do, if it
did not walk over all that was taken from its beginning whenever it is asked for its first."""

_memories: dict[str, _Entries] = {}
"""By noun."""
_held = [0]
"""Bytes of all entries."""
_numbers = itertools.count()
_writing = threading.Lock()
_alone: dict[str, tuple[Hashable, Any]] = {}
"""The one value of each memory that is outside the bound."""


class Memory(Generic[K, V]):
    """Values by key. Threads may share it."""

    def __init__(
        self,
        noun: str,
        *,
        seconds: float = math.inf,
        weigh: Callable[[V], int] = lambda _: 0,
    ) -> None:
        """
        Args:
            noun: what is remembered; no other memory may have it.
            seconds: for how long. Room of what has ended is free once something else is put.
            weigh: bytes of a value, where they may be more than a few.
        """
        self._noun = noun
        with _writing:
            self._entries = _memories.setdefault(noun, OrderedDict())
        self._seconds = seconds
        self._weigh = weigh

    def __contains__(self, key: K) -> bool:
        return self.get(key) is not None

    def get(self, key: K) -> V | None:
        """None if it is not remembered, or no longer."""
        entry = self._entries.get(key)
        if entry is None or entry.until <= time.monotonic():
            return None
        value: V = entry.value
        return value

    def put(self, key: K, value: V) -> None:
        """Remembers a value, which must not be None, unless it is too heavy for all memory."""
        weight = ENTRY_BYTES + self._weigh(value)
        now = time.monotonic()
        with _writing:
            _drop(self._entries, key)
            _drop_ended(self._entries, now)
            if weight > MOST_BYTES:
                return
            while _held[0] + weight > MOST_BYTES:
                _drop_first()
            until = now + self._seconds
            self._entries[key] = _Entry(value, until, weight, next(_numbers))
            _held[0] += weight

    def pop(self, key: K) -> V | None:
        """As :meth:`get`, and forgets it: of several who ask, one gets it."""
        with _writing:
            value = self.get(key)
            _drop(self._entries, key)
            return value


class Latest(Generic[K, V]):
    """One value, outside the bound, for what whoever makes it bounds: the one that was put last.
    Threads may share it."""

    def __init__(self, noun: str) -> None:
        self._noun = noun

    def get(self, key: K) -> V | None:
        """None if another key was put since, or none."""
        held = _alone.get(self._noun)
        if held is None or held[0] != key:
            return None
        value: V = held[1]
        return value

    def put(self, key: K, value: V) -> tuple[K, V] | None:
        """Forgets the former value, and answers it."""
        with _writing:
            former: Any = _alone.get(self._noun)
            _alone[self._noun] = (key, value)
            return None if former is None else (former[0], former[1])


def forget() -> None:
    """As if the process had just started."""
    with _writing:
        for entries in _memories.values():
            entries.clear()
        _alone.clear()
        _held[0] = 0


def _drop(entries: _Entries, key: Hashable) -> None:
    entry = entries.pop(key, None)
    if entry is not None:
        _held[0] -= entry.weight


def _drop_ended(entries: _Entries, now: float) -> None:
    while entries and entries[first := next(iter(entries))].until <= now:
        _drop(entries, first)


def _drop_first() -> None:
    """Of all memories together."""
    filled = [entries for entries in _memories.values() if entries]
    oldest = min(filled, key=lambda entries: entries[next(iter(entries))].number)
    _drop(oldest, next(iter(oldest)))
