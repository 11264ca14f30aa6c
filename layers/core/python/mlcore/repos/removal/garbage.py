"""Finds soft-deleted experiments, runs and logged models that are due for permanent deletion, and
deletes them with their files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from mlcore.db import keys
from mlcore.db.expression import Raw
from mlcore.db.table import table
from mlcore.entities.lifecycle_stages import DELETED
from mlcore.models.logged_models import LoggedModel
from mlcore.models.runs import Run
from mlcore.repos.experiments import experiments
from mlcore.repos.removal import former_root_locations, permanent_deletion
from mlcore.repos.runs.core import runs
from mlcore.repos.workspaces import workspaces


class Garbage(NamedTuple):
    """A soft-deleted experiment, run or logged model; ``item_id`` equals ``experiment_id`` if the
    whole experiment is to be deleted."""

    kind: str
    experiment_id: str
    item_id: str
    workspace: str


def find(before_ms: int, experiment_id: str | None = None) -> Iterator[Garbage]:
    """Yields the experiments, runs and logged models that were soft-deleted before a time, and runs
    soft-deleted at an unknown time, in one experiment or in all. Raises ResourceDoesNotExist if the
    experiment does not exist.

    Args:
        before_ms: milliseconds since the epoch.
    """
    former_root_locations.enter_locations(again=True)
    if experiment_id is not None:
        item = table.get(keys.experiment(experiment_id))
        if item is None:
            raise experiments.missing(experiment_id)
        yield from _of_experiment(item, before_ms)
        return
    for name in workspaces.names():
        for each in experiments.ids_of_workspace(name):
            item = table.get(keys.experiment(each))
            if item is not None:
                yield from _of_experiment(item, before_ms)


def remove(garbage: Garbage) -> bool:
    """Permanently deletes a soft-deleted experiment, run or logged model with its files, and frees
    the experiment's name. Returns False if some files stay because other items may refer to them.
    The process may be killed and the call repeated. Raises NoLongerDeleted if it was restored since
    :func:`find` read it."""
    kind, experiment_id, item_id, workspace = garbage
    if kind == keys.EXPERIMENT.name:
        return permanent_deletion.experiment(experiment_id, only_deleted=True)
    if kind == keys.RUN.name:
        return permanent_deletion.run(experiment_id, item_id, workspace)
    return permanent_deletion.logged_model(experiment_id, item_id, workspace)


def _of_experiment(item: Raw, before_ms: int) -> Iterator[Garbage]:
    experiment = experiments.of_item(item).experiment
    experiment_id, workspace = experiment.experiment_id, experiment.workspace
    if experiment.lifecycle_stage == DELETED:
        if experiment.last_update_time < before_ms:
            yield Garbage(keys.EXPERIMENT.name, experiment_id, experiment_id, workspace)
        return
    pk = keys.experiment(experiment_id).pk
    prefix = keys.lsi1_run_prefix(DELETED)
    for run in map(Run.of, table.query_all(pk, index="LSI1", prefix=prefix)):
        # A run that was deleted before its experiment was restored is active again.
        before = run.deleted_time is None or run.deleted_time < before_ms
        if runs.stage(run, experiment) == DELETED and before:
            yield Garbage(keys.RUN.name, experiment_id, run.run_id, workspace)
    prefix = keys.lsi1_logged_model_prefix(DELETED)
    for model in map(LoggedModel.of, table.query_all(pk, index="LSI1", prefix=prefix)):
        if model.last_update_time < before_ms:
            yield Garbage(keys.LOGGED_MODEL.name, experiment_id, model.model_id, workspace)
