"""Enters the locations of experiments and model versions that were made before there was a list of
them; see :mod:`mlcore.repos.files.locations`."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import islice

from mlcore.db import keys
from mlcore.db.expression import Raw
from mlcore.db.table import Put, table
from mlcore.models.experiments import Experiment
from mlcore.models.registry import ModelVersion
from mlcore.repos.experiments import experiments
from mlcore.repos.files import locations
from mlcore.repos.registry import registered_models
from mlcore.repos.workspaces import workspaces

TOGETHER = 100


def enter(deadline: float = float("inf"), *, again: bool = False) -> bool:
    """Whether the list has everything now. May be stopped anywhere and be repeated.

    Args:
        deadline: of :func:`time.monotonic`.
        again: also where it has been done: versions of the product that know no list may have
            run meanwhile.
    """
    if locations.are_listed() and not again:
        return True
    entered = 0
    for name in workspaces.names():
        for source in (_of_experiments(name), _of_versions(name)):
            while puts := list(islice(source, TOGETHER)):
                table.batch_write(put.item for put in puts)
                entered += len(puts)
                if time.monotonic() > deadline:
                    return False
            if time.monotonic() > deadline:
                return False
    locations.set_listed(remember=entered > 0)
    return True


def _of_experiments(workspace: str) -> Iterator[Put]:
    listed = experiments.ids_of_workspace(workspace)
    while ids := list(islice(listed, TOGETHER)):
        for item in table.batch_get([keys.experiment(each) for each in ids]):
            if item is not None:
                yield from of_experiment(item)


def of_experiment(item: Raw) -> list[Put]:
    """The entries of an experiment; also of its own place in a workspace that it has left."""
    experiment = Experiment.of(item)
    experiment_id, workspace = experiment.experiment_id, experiment.workspace
    location = experiment.artifact_location
    key = locations.key_of(location, workspace, experiment_id)
    if key is not None and locations.workspace_of(key) != workspace:
        return locations.of_moved(experiment_id, location, workspace)
    return locations.of_experiment(experiment_id, location, workspace)


def _of_versions(workspace: str) -> Iterator[Put]:
    for _, place in registered_models.listed(workspace):
        item = table.get(place)
        if item is None:
            continue
        home = registered_models.home_of(item)
        for found in table.query_all(home, prefix=keys.model_version_prefix()):
            if locations.is_version(found):
                version = ModelVersion.of(found)
                yield from locations.of_version(
                    home,
                    version.incarnation,
                    version.model_version,
                    version.storage_location or version.source or "",
                    workspace,
                )
