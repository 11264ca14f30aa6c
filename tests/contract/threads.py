"""Calls from several threads that begin together."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


def at_once(count: int, call: Callable[[int], T]) -> list[T]:
    """Calls with 0, 1, … from as many threads, all let go together."""
    barrier = threading.Barrier(count)

    def wait_and_call(number: int) -> T:
        barrier.wait()
        return call(number)

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(wait_and_call, range(count)))
