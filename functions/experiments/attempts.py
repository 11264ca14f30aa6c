"""Creations of experiments whose end this process does not know; forgets them after a while.

Nothing in a request tells a repetition from another caller's wish for the same name, and that must
be refused. Only a request that this process answered with an error, although its transaction may
have gone through, may be answered with what it had made.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from mlcore.entities.experiments import Experiment
from mlcore.entities.tags import Tag
from mlcore.environment import settings
from mlcore.memory import Memory

REMEMBERED_SECONDS: Final = 600.0
"""As long as DynamoDB knows a transaction by its token; MLflow's clients repeat for less."""


class Attempt(NamedTuple):
    """A request, as far as a repetition is equal to it."""

    workspace: str
    caller: str
    name: str
    artifact_location: str
    tags: tuple[Tag, ...]


_open: Memory[tuple[str, Attempt], Experiment] = Memory(
    "creation of an experiment",
    seconds=REMEMBERED_SECONDS,
    weigh=lambda experiment: sum(map(len, [*experiment.tags, *experiment.tags.values()])),
)


def leave_open(attempt: Attempt, experiment: Experiment) -> None:
    """Remembers what a failed request may have made."""
    _open.put((settings().table_name, attempt), experiment)


def take_up(attempt: Attempt) -> Experiment | None:
    """What such a request may have made, for one who goes on with it: a second one is another."""
    return _open.pop((settings().table_name, attempt))
