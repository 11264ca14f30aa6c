"""The stop of a server, which does not wait for judgements. This module is small, so a server has
it from its start: a stop also reaches a cage whose modules are just being imported."""

from __future__ import annotations

import threading
from typing import Final, Protocol


class Stoppable(Protocol):
    """A judgement that runs."""

    def stop(self) -> None:
        """Ends it soon. May be called by any thread, and more than once."""


requested: Final = threading.Event()
"""Set when the server stops; no judgement begins then."""
running: Final[set[Stoppable]] = set()


def stop_all() -> None:
    """Ends all judgements, and those to come, with :class:`mlcore.scorer_cage.cage.ServerStops`.
    Their jobs pause, and continue after the next start."""
    requested.set()
    for judgement in list(running):
        judgement.stop()
