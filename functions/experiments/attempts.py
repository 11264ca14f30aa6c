"""Creations of experiments whose end this process does not know; forgets them after a while.

Nothing in a request tells a repetition from another caller's wish for the same name, and that must
be refused. Only a request that this process answered with an error, although its transaction may
have gone through, may be answered with what it had made.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from typing import Final, NamedTuple

from mlcore.entities.experiments import Experiment
from mlcore.entities.tags import Tag
from mlcore.settings import settings

REMEMBERED: Final = 1_000
REMEMBERED_SECONDS: Final = 600.0
"""As long as DynamoDB knows a transaction by its token; MLflow's clients repeat for less."""


class Attempt(NamedTuple):
    """A request, as far as a repetition is equal to it."""

    workspace: str
    caller: str
    name: str
    artifact_location: str
    tags: tuple[Tag, ...]


_open: OrderedDict[tuple[str, Attempt], tuple[float, Experiment]] = OrderedDict()
_lock = threading.Lock()


def leave_open(attempt: Attempt, experiment: Experiment) -> None:
    """Remembers what a failed request may have made."""
    with _lock:
        _open[(settings().table_name, attempt)] = (time.monotonic(), experiment)
        while len(_open) > REMEMBERED:
            _open.popitem(last=False)


def take_up(attempt: Attempt) -> Experiment | None:
    """What such a request may have made, for one who goes on with it: a second one is another."""
    with _lock:
        since, experiment = _open.pop((settings().table_name, attempt), (0.0, None))
    return experiment if time.monotonic() - since < REMEMBERED_SECONDS else None
