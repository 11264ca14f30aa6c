"""Caches that live as long as the process, for values that requests share.

All caches but :class:`SingleEntryCache` together have one limit of memory. Requests must be correct
without them: a cached value never changes, or may be stale for the time to live of its cache.
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

MAX_BYTES: Final = 12_000_000
"""Estimated limit of all caches together: a tenth of the local runner's memory, or a thousand
active runs. Beyond it the oldest entries are evicted."""

ENTRY_BYTES: Final = 500
"""Estimated size of an entry without its value: two short texts, a moment and a slot of a
dict."""


class Moment(NamedTuple):
    """A moment on two clocks: the monotonic one may stop while a Lambda function is frozen or a
    laptop sleeps, the wall clock may be set."""

    monotonic: float
    wall: float

    @classmethod
    def now(cls) -> Moment:
        return cls(time.monotonic(), time.time())

    def age(self) -> float:
        """Returns how many seconds have passed since this moment, by the monotonic or the wall
        clock: the larger number. Returns infinity if the wall clock was set back to before this
        moment, because the time that has passed is then unknown."""
        monotonic, wall = time.monotonic() - self.monotonic, time.time() - self.wall
        return math.inf if wall < 0 else max(monotonic, wall)


class _Entry(NamedTuple):
    value: Any
    since: Moment
    seconds: float
    """Time to live."""
    weight: int
    number: int
    """Ascends in the order of insertion."""

    def has_expired(self) -> bool:
        return self.seconds != math.inf and self.since.age() >= self.seconds


_Entries = OrderedDict[Hashable, _Entry]
"""The entries of one cache, oldest first, which is also the order of expiry. A plain dict would
find its first entry slowly after many deletions at its beginning."""

_caches: dict[str, _Entries] = {}
"""The entries of all caches, by the caches' nouns."""
_total_bytes = [0]
"""Estimated bytes of all entries (a list of one number)."""
_numbers = itertools.count()
_writing = threading.Lock()
_single_entries: dict[str, tuple[Hashable, Any]] = {}
"""The entry of each :class:`SingleEntryCache`, by its noun."""


class ProcessCache(Generic[K, V]):
    """A thread-safe cache of values by key. It shares one memory limit with all other caches of the
    process."""

    def __init__(
        self,
        noun: str,
        *,
        seconds: float = math.inf,
        weigh: Callable[[V], int] = lambda _: 0,
    ) -> None:
        """Makes the cache.

        Args:
            noun: unique name of the cached values.
            seconds: time to live. Expired entries are removed at the next :meth:`put`.
            weigh: estimates the bytes of a value; the default is for very small values.
        """
        self._noun = noun
        with _writing:
            self._entries = _caches.setdefault(noun, OrderedDict())
        self._seconds = seconds
        self._weigh = weigh

    def __contains__(self, key: K) -> bool:
        return self.get(key) is not None

    def get(self, key: K) -> V | None:
        """Returns the cached value; None if it is missing or has expired."""
        entry = self._entries.get(key)
        if entry is None or entry.has_expired():
            return None
        value: V = entry.value
        return value

    def put(self, key: K, value: V) -> None:
        """Caches a value, which must not be None. A value that is larger than the memory limit of
        all caches is not cached."""
        weight = ENTRY_BYTES + self._weigh(value)
        with _writing:
            _drop(self._entries, key)
            _drop_expired(self._entries)
            if weight > MAX_BYTES:
                return
            while _total_bytes[0] + weight > MAX_BYTES:
                _drop_oldest()
            self._entries[key] = _Entry(value, Moment.now(), self._seconds, weight, next(_numbers))
            _total_bytes[0] += weight

    def pop(self, key: K) -> V | None:
        """Removes a value from the cache and returns it; None if it is missing or has expired. Of
        several threads, only one gets it."""
        with _writing:
            value = self.get(key)
            _drop(self._entries, key)
            return value


class SingleEntryCache(Generic[K, V]):
    """A thread-safe cache of one entry, the last one that was put. It does not count towards the
    memory limit of all caches; the code that uses it must limit the size of the value."""

    def __init__(self, noun: str) -> None:
        self._noun = noun

    def get(self, key: K) -> V | None:
        """Returns the cached value; None if the cache is empty or holds another key."""
        entry = _single_entries.get(self._noun)
        if entry is None or entry[0] != key:
            return None
        value: V = entry[1]
        return value

    def put(self, key: K, value: V) -> tuple[K, V] | None:
        """Caches a value in place of the former entry. Returns that entry, or None."""
        with _writing:
            former: Any = _single_entries.get(self._noun)
            _single_entries[self._noun] = (key, value)
            return None if former is None else (former[0], former[1])


def clear() -> None:
    """Empties all caches of this module in this process, as if the process had just started."""
    with _writing:
        for entries in _caches.values():
            entries.clear()
        _single_entries.clear()
        _total_bytes[0] = 0


def _drop(entries: _Entries, key: Hashable) -> None:
    entry = entries.pop(key, None)
    if entry is not None:
        _total_bytes[0] -= entry.weight


def _drop_expired(entries: _Entries) -> None:
    while entries and entries[first := next(iter(entries))].has_expired():
        _drop(entries, first)


def _drop_oldest() -> None:
    """Removes the entry that is the oldest in all caches."""
    filled = [entries for entries in _caches.values() if entries]
    oldest = min(filled, key=lambda entries: entries[next(iter(entries))].number)
    _drop(oldest, next(iter(oldest)))
