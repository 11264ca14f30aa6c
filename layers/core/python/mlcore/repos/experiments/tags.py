"""Writes of an experiment's tags; never touches what else the experiment is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mlcore.db.expression import Raw, Update
from mlcore.models.experiments import Experiment as ExperimentItem
from mlcore.repos import document, settlement
from mlcore.repos.experiments import experiments
from mlcore.repos.experiments.experiments import Record
from mlcore.settle import Conflict


def set_tag(read: Record, key: str, value: str) -> None:
    """Raises Conflict when the experiment is deleted meanwhile."""
    _write(read, {"tags": {key: value}}, ())


def delete_tag(read: Record, key: str) -> None:
    """Raises Conflict when the experiment is deleted meanwhile."""
    _write(read, {}, [("tags", key)])


class _Moved(Exception):
    """The experiment is no longer in the stage that it was read in."""


def _write(
    read: Record,
    sets: Mapping[str, Mapping[str, str]],
    removals: Sequence[tuple[str, str]],
) -> None:
    experiment = read.experiment

    def complete(update: Update) -> None:
        update.require_equal(ExperimentItem.epoch, experiment.epoch)

    def send(current: Record) -> None:
        document.write(current.document, sets, removals, complete)

    def meanwhile(_: Record, item: Raw | None) -> Record:
        if item is None:
            raise _Moved
        current = experiments.record(item)
        if current.experiment.epoch != experiment.epoch:
            raise _Moved
        return current

    try:
        settlement.write("experiment", read, send, meanwhile)
    except _Moved as moved:
        raise Conflict(experiment.experiment_id) from moved
