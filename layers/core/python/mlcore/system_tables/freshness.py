"""Holds the function that updates the system tables at once. The local runner registers one. In AWS
there is none, and the tables are updated on a schedule.
"""

from __future__ import annotations

from collections.abc import Callable

from mlcore import errors

_refresh: list[Callable[[], None]] = []


def provide(refresh: Callable[[], None] | None) -> None:
    """Registers the function that :func:`refresh` calls.

    Args:
        refresh: lands the pending records of the stream and publishes them; None to unregister.
    """
    _refresh[:] = [] if refresh is None else [refresh]


def refresh() -> None:
    """Updates the system tables now. Raises InvalidParameterValue if no function is registered,
    because the tables are published only on a schedule."""
    if not _refresh:
        raise errors.InvalidParameterValue(
            "The tables are published on a schedule here: leave out 'fresh'."
        )
    _refresh[0]()
