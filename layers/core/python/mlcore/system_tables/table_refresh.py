"""Holds the function that updates the system tables immediately. The local runner registers one.
In AWS there is none, and the tables are updated on a schedule.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from mlcore import errors
from mlcore.db import deadline

QUERY_SECONDS: Final = 5.0
"""Seconds of the request's time that are reserved for the query."""

_refresh: list[Callable[[float], bool]] = []


def provide(refresh: Callable[[float], bool] | None) -> None:
    """Registers the function that :func:`refresh` calls.

    Args:
        refresh: writes the pending stream records to landing objects and publishes them. It returns
            at the latest at the given time on the clock of :func:`time.monotonic`, and says whether
            it is done. The rest continues in the background after the return. None unregisters it.
    """
    _refresh[:] = [] if refresh is None else [refresh]


def refresh() -> None:
    """Updates the system tables now.

    Raises:
        InvalidParameterValue: no function is registered, because the tables are published only on a
            schedule.
        RequestLimitExceeded: so much was written that the update does not end within the request.
            It continues in the background, so a later request may succeed.
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
