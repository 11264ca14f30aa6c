"""Holds the deadline of the request on which this thread works.

If Lambda's timeout ends a function, the caller gets API Gateway's 500 without a reason. So DynamoDB
calls stop a little before, and the request answers with an error that tells the client to retry.
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
"""Part of Lambda's time that is reserved for the response and its log line."""

_thread = threading.local()


def current() -> float:
    """Returns the deadline of this thread's request, on the clock of :func:`time.monotonic`;
    infinity if none is set."""
    until: float = getattr(_thread, "until", math.inf)
    return until


@contextmanager
def within(context: Any, most: float = math.inf) -> Iterator[None]:
    """Sets this thread's deadline while the block runs: the end of Lambda's invocation, less the
    time to answer. An earlier deadline that is set already stays.

    Args:
        context: Lambda's context, which knows the remaining time. With any other object, only
            ``most`` sets a deadline.
        most: upper limit in seconds, if the caller waits only that long.
    """
    remaining = getattr(context, "get_remaining_time_in_millis", None)
    seconds = most if remaining is None else min(most, remaining() / 1000 - ANSWER_SECONDS)
    outer = current()
    _thread.until = min(outer, time.monotonic() + seconds)
    try:
        yield
    finally:
        _thread.until = outer


def with_current_deadline(call: Callable[[], T]) -> Callable[[], T]:
    """Wraps a call so that the thread that runs it has the request deadline of the thread that
    wrapped it."""
    return functools.partial(_run, current(), call)


def _run(until: float, call: Callable[[], T]) -> T:
    outer = current()
    _thread.until = until
    try:
        return call()
    finally:
        _thread.until = outer
