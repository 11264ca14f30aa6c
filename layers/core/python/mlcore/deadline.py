"""When the request that this thread works on must be answered; Lambda says it, and nobody extends
it."""

from __future__ import annotations

import threading
import time
from typing import Final

UNKNOWN: Final = 20.0
"""Seconds for work that no request bounds, such as a command's or a test's single steps."""

_thread = threading.local()


def start(seconds: float) -> None:
    """The request of this thread has so many seconds from now on."""
    _thread.end = time.monotonic() + seconds


def clear() -> None:
    """The thread works on no request any more."""
    _thread.end = None


def seconds_left() -> float:
    """:data:`UNKNOWN` where there is no request."""
    end: float | None = getattr(_thread, "end", None)
    return UNKNOWN if end is None else end - time.monotonic()
