"""One step of the checkup that ``doctor`` makes of a server."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from operate.doctor.checkup_state import Checkup


class Step(NamedTuple):
    """One step of the command ``doctor``. ``take`` runs the step and returns its result as a text,
    or raises Wrong or LeftOut."""

    name: str
    seconds: float
    """The time budget, which includes a cold start of each function that the step calls."""
    take: Callable[[Checkup], str]
    decides: bool = False
    """Whether no further step can run if this one finds a fault."""
