"""Remembers for a while the creations of experiments that ended with an error although their
transaction may have succeeded.

A retry cannot be distinguished from a new request for the same name, which must be refused. So only
the repetition of a request that this process answered with an error may get the experiment that the
first attempt may have created.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from mlcore.entities.experiments import Experiment
from mlcore.entities.tags import Tag
from mlcore.environment import settings
from mlcore.process_cache import ProcessCache

REMEMBERED_SECONDS: Final = 600.0
"""How long a creation with an unknown result is remembered: as long as DynamoDB recognizes a
transaction's token. MLflow's clients retry for a shorter time."""


class CreationAttempt(NamedTuple):
    """The fields by which the repetition of a request to create an experiment is recognized: they
    are equal in both requests."""

    workspace: str
    caller: str
    name: str
    artifact_location: str
    tags: tuple[Tag, ...]


_interrupted: ProcessCache[tuple[str, CreationAttempt], Experiment] = ProcessCache(
    "creation of an experiment",
    seconds=REMEMBERED_SECONDS,
    weigh=lambda experiment: sum(map(len, [*experiment.tags, *experiment.tags.values()])),
)


def remember(attempt: CreationAttempt, experiment: Experiment) -> None:
    """Remembers the experiment that a failed request may have created, for :func:`take`."""
    _interrupted.put((settings().table_name, attempt), experiment)


def take(attempt: CreationAttempt) -> Experiment | None:
    """Returns the experiment that an earlier, equal request may have created although it was
    answered with an error; None without one. The process then forgets it: only one repetition gets
    it."""
    return _interrupted.pop((settings().table_name, attempt))
