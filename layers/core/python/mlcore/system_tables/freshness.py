"""Who can bring the tables up to date at once: the local runner says so here; in AWS nobody."""

from __future__ import annotations

from collections.abc import Callable

from mlcore import errors

_refresh: list[Callable[[], None]] = []


def provide(refresh: Callable[[], None] | None) -> None:
    """
    Args:
        refresh: lands what the stream has, and publishes it; None when it is over.
    """
    _refresh[:] = [] if refresh is None else [refresh]


def refresh() -> None:
    """
    Raises:
        InvalidParameterValue: the tables follow on their schedule alone.
    """
    if not _refresh:
        raise errors.InvalidParameterValue(
            "The tables are published on a schedule here: leave out 'fresh'."
        )
    _refresh[0]()
