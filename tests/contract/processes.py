"""Several processes of the product that share a table, played by this one: each has its own memory,
and some have just started."""

from __future__ import annotations

import random
from collections import OrderedDict
from typing import Any, NamedTuple

from mlcore import process_cache

COUNT = 3
STARTS = 0.05
"""How often a process is a new one."""


class _Remembered(NamedTuple):
    entries: dict[str, OrderedDict[Any, Any]]
    alone: dict[str, Any]
    held: int


class Processes:
    """``switch`` lets another process go on, with what it remembers."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._current = 0
        self._others: dict[int, _Remembered] = {}

    def switch(self) -> None:
        chosen = self._rng.randrange(COUNT)
        if chosen != self._current:
            self._others[self._current] = _remembered()
            process_cache.clear()
            _remember(self._others.pop(chosen, None))
            self._current = chosen
        if self._rng.random() < STARTS:
            process_cache.clear()


def _remembered() -> _Remembered:
    entries = {noun: OrderedDict(cache) for noun, cache in process_cache._caches.items()}
    return _Remembered(entries, dict(process_cache._single_entries), process_cache._total_bytes[0])


def _remember(memory: _Remembered | None) -> None:
    """Into a memory that is empty."""
    if memory is None:
        return
    for noun, entries in memory.entries.items():
        process_cache._caches[noun].update(entries)
    process_cache._single_entries.update(memory.alone)
    process_cache._total_bytes[0] = memory.held
