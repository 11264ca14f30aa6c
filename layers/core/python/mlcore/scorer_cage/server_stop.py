"""Ends the running judgements of scorers that are code when the server stops. This module is small,
so that a server can import it at its start: a stop then also reaches a cage (the process of such a
scorer) whose modules are just being imported."""

from __future__ import annotations

import threading
from typing import Final, Protocol


class Stoppable(Protocol):
    """The interface of a running execution of a scorer, which can be stopped."""

    def stop(self) -> None:
        """Ends the judgement soon. Any thread may call this, and repeatedly."""


requested: Final = threading.Event()
"""Set when the server stops; no judgement begins then."""
running: Final[set[Stoppable]] = set()


def stop_all() -> None:
    """Ends all judgements of code scorers in this process, running and future, with
    :class:`mlcore.scorer_cage.cage.ServerStops`. The scorers' jobs pause, and continue after the
    server's next start."""
    requested.set()
    for judgement in list(running):
        judgement.stop()
