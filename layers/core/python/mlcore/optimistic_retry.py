"""Retries optimistic writes: an attempt reads, decides and writes on condition that nothing has
changed since; after a conflict it is repeated."""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Callable
from typing import Final, TypeVar

from mlcore import errors
from mlcore.db import deadline

T = TypeVar("T")

_MIN_ATTEMPT_SECONDS: Final = 2.0
"""Time that an attempt and the response need; with less time left, there is no further attempt."""

_MAX_SECONDS: Final = 20.0
"""Limit of all attempts if the request's deadline is later, or if it has none."""

_random: Final = random.SystemRandom()
"""Not the default generator: its state is the same in all processes started from one snapshot."""


class WriteConflict(Exception):
    """Raised by an attempt of a write if an item was changed or deleted after the attempt had read
    it. Nothing was written."""


def retry_on_conflict(noun: str, attempt: Callable[[], T]) -> T:
    """Calls ``attempt`` until it does not raise WriteConflict, and returns its result.

    Args:
        noun: the thing that is written, for the error message.
        attempt: reads, decides and writes; raises WriteConflict if another write came first.

    Raises:
        RequestLimitExceeded: conflicts continued until 2 s before the request's deadline, or for
            18 s.
    """
    end = min(deadline.current(), time.monotonic() + _MAX_SECONDS) - _MIN_ATTEMPT_SECONDS
    for number in itertools.count():
        try:
            return attempt()
        except WriteConflict as conflict:
            # Back-off with full jitter: none at first, then at most 10 ms, later at most 1 s.
            wait = _random.uniform(0, min(1.0, 0.005 * 2**number)) if number else 0.0
            if time.monotonic() + wait > end:
                raise errors.RequestLimitExceeded(
                    f"The {noun} is busy with other writes. Try again."
                ) from conflict
            time.sleep(wait)
    raise AssertionError  # unreachable: the loop has no end
