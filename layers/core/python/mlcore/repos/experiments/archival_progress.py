"""How far the archival of an experiment's traces has come, in attributes of the experiment's item.

Each pass of the archival reads traces from the oldest on, and the next pass continues where it
stopped. So traces that are already archived are not read again in each pass.
"""

from __future__ import annotations

import contextlib
from typing import NamedTuple

from mlcore import reserved_tags
from mlcore.db import keys
from mlcore.db.expression import Update
from mlcore.db.failures import ConditionFailed
from mlcore.db.table import table
from mlcore.models.experiments import Experiment as ExperimentItem
from mlcore.repos.experiments import tags
from mlcore.repos.experiments.experiments import StoredExperiment


class ArchivalProgress(NamedTuple):
    """How far the passes that archive an experiment's traces have come. Times are in milliseconds
    since the epoch."""

    started: int
    """When the passes began with the oldest trace."""
    position: int | None = None
    """The request time up to which they have read the traces; None if they have read none."""
    request: str | None = None
    """The request to archive now (value of the tag) that they are executing; None for none."""


def of_experiment(stored: StoredExperiment) -> ArchivalProgress | None:
    """Returns how far the archival of the experiment's traces has come, as its item says; None if
    archival has never begun."""
    item = ExperimentItem.of(stored.document.item)
    if item.archival_started is None:
        return None
    return ArchivalProgress(item.archival_started, item.archival_position, item.archival_request)


def save(experiment_id: str, progress: ArchivalProgress) -> None:
    """Writes the progress of archiving traces to the experiment's item; does nothing if the
    experiment was removed."""
    update = Update()
    _set(update, progress)
    update.require_exists(ExperimentItem.PK)
    with contextlib.suppress(ConditionFailed):
        table.update(keys.experiment(experiment_id), update)


def complete_request(stored: StoredExperiment, progress: ArchivalProgress, request: str) -> None:
    """Deletes the experiment's tag that asks to archive its traces now, and writes the progress of
    the archival; does neither if the tag's value has changed. Raises WriteConflict if the
    experiment was removed."""

    def also(update: Update) -> None:
        _set(update, progress._replace(request=None))

    tags.delete_tag_with_value(stored, reserved_tags.ARCHIVE_NOW, request, also)


def _set(update: Update, progress: ArchivalProgress) -> None:
    update.set(ExperimentItem.archival_started, progress.started)
    update.set_or_remove(ExperimentItem.archival_position, progress.position)
    update.set_or_remove(ExperimentItem.archival_request, progress.request)
