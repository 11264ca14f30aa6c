"""Optimistic writes: what was read decides what is written, and the write holds only if nobody came
between; then it is read and decided anew."""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Callable
from typing import Final, TypeVar

from mlcore import errors
from mlcore.db import deadline

T = TypeVar("T")

_LEAST_TIME: Final = 2.0
"""Seconds that an attempt and its answer need; with less, no other attempt is begun."""

_LONGEST: Final = 20.0
"""Seconds of attempts where no request bounds them."""

_random: Final = random.SystemRandom()
"""Processes that start from one snapshot must not wait alike."""


class Conflict(Exception):
    """What was read has changed, or gone, before it was written. Nothing was written."""


def settle(noun: str, attempt: Callable[[], T]) -> T:
    """Reads, decides and writes, again and again until nobody comes between.

    Args:
        noun: what is written, for the caller who is told that it is busy.
        attempt: reads, decides, writes; raises Conflict when somebody else was first.

    Raises:
        TemporarilyUnavailable: others keep being first, and the request's time is nearly over.
    """
    end = min(deadline.current(), time.monotonic() + _LONGEST) - _LEAST_TIME
    for number in itertools.count():
        try:
            return attempt()
        except Conflict as conflict:
            # With full jitter: at once, then within 10 ms, at last within a second.
            wait = _random.uniform(0, min(1.0, 0.005 * 2**number)) if number else 0.0
            if time.monotonic() + wait > end:
                raise errors.TemporarilyUnavailable(
                    f"The {noun} is busy with other writes. Try again."
                ) from conflict
            time.sleep(wait)
    raise AssertionError  # the attempts do not end
