"""Holds the function that updates the system tables immediately. The local runner registers one.
In AWS there is none, and the tables are updated on a schedule.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from mlcore import errors
from mlcore.db import deadline

QUERY_SECONDS: Final = 5.0
"""Part of the request's time that is left for the query."""

_refresh: list[Callable[[float], bool]] = []


def provide(refresh: Callable[[float], bool] | None) -> None:
    """Registers the function that :func:`refresh` calls.

    Args:
        refresh: lands the pending records of the stream and publishes them, until a time on the
            clock of :func:`time.monotonic` at most; returns whether it is done. What is left goes
            on after its return. None to unregister.
    """
    _refresh[:] = [] if refresh is None else [refresh]


def refresh() -> None:
    """Updates the system tables now.

    Raises:
        InvalidParameterValue: no function is registered, because the tables are published only on a
            schedule.
        RequestLimitExceeded: so much was written that the time of the request does not suffice. The
            update goes on, so a later request finds it further.
    """
    if not _refresh:
        raise errors.InvalidParameterValue(
            "The tables are published on a schedule here: leave out 'fresh'."
        )
    if not _refresh[0](deadline.current() - QUERY_SECONDS):
        raise errors.RequestLimitExceeded(
            "Much was written lately, and the system tables are still being updated. Try again, or "
            "leave out 'fresh' to ask the tables as they are."
        )
