"""Writes of an experiment's tags; never touches what else the experiment is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from mlcore.db.expression import Raw, Update
from mlcore.models.experiments import Experiment as ExperimentItem
from mlcore.repos import document_writes, settlement
from mlcore.repos.experiments import experiments
from mlcore.repos.experiments.experiments import StoredExperiment
from mlcore.repos.kubeflow.tags import untype
from mlcore.settle import Conflict


def set_tag(stored: StoredExperiment, key: str, value: str) -> None:
    """Raises Conflict when the experiment is deleted meanwhile."""
    _write(stored, {"tags": {key: value}}, ())


def delete_tag(stored: StoredExperiment, key: str) -> None:
    """Raises Conflict when the experiment is deleted meanwhile."""
    _write(stored, {}, [("tags", key)])


class _Moved(Exception):
    """The experiment is no longer in the stage that it was read in."""


def _write(
    stored: StoredExperiment,
    sets: Mapping[str, Mapping[str, str]],
    removals: Sequence[tuple[str, str]],
) -> None:
    experiment = stored.experiment

    def complete(types: Mapping[str, str] | None, update: Update) -> None:
        update.require_equal(ExperimentItem.epoch, experiment.epoch)
        untype(update, ExperimentItem.property_types, types, sets, removals)

    def send(current: StoredExperiment) -> None:
        types = ExperimentItem.of(current.document.item).property_types
        document_writes.write(current.document, sets, removals, partial(complete, types))

    def meanwhile(_: StoredExperiment, item: Raw | None) -> StoredExperiment:
        if item is None:
            raise _Moved
        current = experiments.of_item(item)
        if current.experiment.epoch != experiment.epoch:
            raise _Moved
        return current

    try:
        settlement.write("experiment", stored, send, meanwhile)
    except _Moved as moved:
        raise Conflict(experiment.experiment_id) from moved
