"""Measures for how long the current thread has waited for model providers."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_thread: Final = threading.local()


def reset() -> None:
    """Sets the time for which this thread has waited for model providers to zero."""
    _thread.seconds = 0.0


def total() -> float:
    """Returns the seconds for which this thread has waited for model providers since
    :func:`reset`."""
    seconds: float = getattr(_thread, "seconds", 0.0)
    return seconds


@contextmanager
def counted() -> Iterator[None]:
    """Adds the time of the ``with`` block to the time for which this thread has waited for model
    providers, also if the block raises."""
    started = time.perf_counter()
    try:
        yield
    finally:
        _thread.seconds = total() + time.perf_counter() - started
