"""Adds experiments to the list of locations after the deployment's ``ARTIFACT_ROOT`` was changed.

An experiment whose files lie in ``<ARTIFACT_ROOT>/<its id>`` has no entry in the list of locations
(:mod:`mlcore.repos.files.location_list`). Under another root that folder is no longer reserved: a
second experiment may choose it. So each such experiment gets an entry before any file is removed.
"""

from __future__ import annotations

import time
from itertools import islice

from mlcore.db import keys
from mlcore.db.table import table
from mlcore.models.experiments import Experiment
from mlcore.repos.experiments import experiments
from mlcore.repos.files import location_list
from mlcore.repos.workspaces import workspaces

BATCH = 100
"""Experiments that are read and entered together."""


def enter_locations(deadline: float = float("inf"), *, again: bool = False) -> bool:
    """Adds to the list of locations every experiment whose files lie outside ``<ARTIFACT_ROOT>/<its
    id>``; returns whether the list is complete now. May be interrupted anywhere and repeated.

    Args:
        deadline: of :func:`time.monotonic`; checked after each batch.
        again: whether to do this although the list is complete for the current root: the root may
            have been changed and changed back, with experiments created in between.
    """
    if location_list.is_complete() and not again:
        return True
    entered = 0
    for workspace in workspaces.names():
        ids = experiments.ids_of_workspace(workspace)
        while batch := list(islice(ids, BATCH)):
            entered += _enter(batch)
            if time.monotonic() > deadline:
                return False
        if time.monotonic() > deadline:
            return False
    location_list.set_complete(for_all_processes=entered > 0)
    return True


def _enter(experiment_ids: list[str]) -> int:
    """Adds experiments to the list of locations; returns how many of them need an entry."""
    entries = []
    for item in table.batch_get(
        [keys.experiment(experiment_id) for experiment_id in experiment_ids]
    ):
        if item is not None:
            experiment = Experiment.of(item)
            entries += location_list.of_experiment(
                experiment.experiment_id, experiment.artifact_location, experiment.workspace
            )
    table.batch_write(entry.item for entry in entries)
    return len(entries)
