"""Until when the work of this thread must be done; waits for nothing itself.

A function that Lambda ends answers nothing: its caller sees API Gateway's 500 and no reason. So the
calls of a request end a little before, and the request says that it may be repeated.
"""

from __future__ import annotations

import functools
import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, TypeVar

T = TypeVar("T")

ANSWER_SECONDS: Final = 2.0
"""Of Lambda's time, kept for what follows the last call: the answer and its log line."""

_thread = threading.local()


def current() -> float:
    """On the clock of :func:`time.monotonic`; infinity where nobody has set one."""
    until: float = getattr(_thread, "until", math.inf)
    return until


@contextmanager
def within(context: Any, most: float = math.inf) -> Iterator[None]:
    """Sets the deadline of an invocation.

    Args:
        context: Lambda's, which knows how much time is left; None or anything else does not.
        most: seconds that somebody else waits at most.
    """
    remaining = getattr(context, "get_remaining_time_in_millis", None)
    seconds = most if remaining is None else min(most, remaining() / 1000 - ANSWER_SECONDS)
    outer = current()
    _thread.until = min(outer, time.monotonic() + seconds)
    try:
        yield
    finally:
        _thread.until = outer


def carried(call: Callable[[], T]) -> Callable[[], T]:
    """The call with this thread's deadline, to be made by another thread."""
    return functools.partial(_run, current(), call)


def _run(until: float, call: Callable[[], T]) -> T:
    outer = current()
    _thread.until = until
    try:
        return call()
    finally:
        _thread.until = outer
