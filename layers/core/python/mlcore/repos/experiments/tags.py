"""Writes of an experiment's tags."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from mlcore.db.expression import Raw, Update
from mlcore.models.experiments import Experiment as ExperimentItem
from mlcore.optimistic_retry import WriteConflict
from mlcore.repos import document_write_retries, document_writes
from mlcore.repos.experiments import experiments
from mlcore.repos.experiments.experiments import StoredExperiment
from mlcore.repos.property_types import remove_types


def set_tag(stored: StoredExperiment, key: str, value: str) -> None:
    """Sets a tag of an experiment. Raises WriteConflict if the experiment is deleted or restored
    meanwhile."""
    _write(stored, {"tags": {key: value}}, ())


def delete_tag(stored: StoredExperiment, key: str) -> None:
    """Deletes a tag of an experiment. Raises WriteConflict if the experiment is deleted or restored
    meanwhile."""
    _write(stored, {}, [("tags", key)])


def delete_tag_with_value(
    stored: StoredExperiment, key: str, value: str, also: Callable[[Update], None]
) -> None:
    """Deletes a tag of an experiment unless it has another value now. Raises WriteConflict if the
    experiment no longer exists.

    Args:
        also: adds further changes of the experiment to the same write.
    """

    def complete(types: Mapping[str, str] | None, update: Update) -> None:
        also(update)
        remove_types(update, ExperimentItem.property_types, types, {}, [("tags", key)])

    def send(current: StoredExperiment) -> None:
        if current.experiment.tags.get(key) == value:
            types = ExperimentItem.of(current.document.item).property_types
            document_writes.write(
                current.document, {}, [("tags", key)], partial(complete, types), exclusive=True
            )

    def meanwhile(_: StoredExperiment, item: Raw | None) -> StoredExperiment:
        if item is None:
            raise WriteConflict(stored.experiment.experiment_id)
        return experiments.of_item(item)

    document_write_retries.write("experiment", stored, send, meanwhile)


class _Moved(Exception):
    """The experiment was deleted or restored since it was read."""


def _write(
    stored: StoredExperiment,
    sets: Mapping[str, Mapping[str, str]],
    removals: Sequence[tuple[str, str]],
) -> None:
    experiment = stored.experiment

    def complete(types: Mapping[str, str] | None, update: Update) -> None:
        update.require_equal(ExperimentItem.epoch, experiment.epoch)
        remove_types(update, ExperimentItem.property_types, types, sets, removals)

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
        document_write_retries.write("experiment", stored, send, meanwhile)
    except _Moved as moved:
        raise WriteConflict(experiment.experiment_id) from moved
