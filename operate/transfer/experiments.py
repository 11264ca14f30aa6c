"""Transfers experiments from an MLflow server, and decides which experiment of the table
corresponds to an experiment of the server."""

from __future__ import annotations

from typing import Any

from mlcore import errors
from mlcore.db import keys
from mlcore.db.expression import Raw, Update
from mlcore.db.table import table
from mlcore.entities.experiments import Experiment
from mlcore.ids import new_ulid
from mlcore.models.experiments import Experiment as ExperimentItem
from mlcore.repos import document
from mlcore.repos.experiments import experiments, stages
from mlcore.repos.experiments import ids as experiment_ids
from mlcore.repos.experiments import tags as experiment_tags
from mlcore.repos.experiments.creations import ExperimentNameTaken, IdTaken
from mlcore.repos.files import location_list
from operate.transfer.journal import Journal
from operate.transfer.transfer_item import Content, TransferItem

_OWN = ("name", "artifact_location", "lifecycle_stage", "creation_time", "last_update_time")


class Experiments:
    """Maps the experiments of the MLflow server that is imported to experiments of the table. The
    first of these that applies is the counterpart of an experiment:

    1. the experiment that an earlier import created for it, by the journal,
    2. the experiment with the same id, workspace and name,
    3. for the id 0: a new experiment with this id, if the id is free,
    4. an experiment with the same name and another id: it gets the server's runs and tags, and is
       otherwise unchanged unless an import created it,
    5. a new experiment with the same id, if the id is free,
    6. a new experiment with a new number. A comparison, which writes nothing, uses an id that no
       experiment has, so that everything counts as missing."""

    def __init__(self, journal: Journal, *, write: bool) -> None:
        self._journal = journal
        self._write = write
        self._ids: dict[str, str] = {}

    def target_of(self, source_id: str) -> str:
        return self._ids.get(source_id, source_id)

    def item(self, source: Experiment) -> TransferItem:
        target_id = self._resolved(source)
        self._ids[source.experiment_id] = target_id
        if self._write:
            # Do not reuse the number: its files may lie under it even if it gets another id.
            experiment_ids.advance_past(source.experiment_id)
        mine = target_id == source.experiment_id or self._journal.made(target_id)

        def have() -> Content | None:
            item = table.get(keys.experiment(target_id))
            return None if item is None else _content(experiments.of_item(item).experiment, mine)

        def write(want: Content, existing: Content | None) -> None:
            if existing is None:
                self._journal.map(source.experiment_id, target_id)
                location = source.artifact_location or experiments.default_location(
                    target_id, source.workspace
                )
                experiment_ids.note_creation_time(source.creation_time)
                try:
                    experiments.create(
                        source._replace(experiment_id=target_id, artifact_location=location)
                    )
                except (IdTaken, ExperimentNameTaken) as taken:
                    raise errors.ResourceAlreadyExists(
                        "Somebody made it at the target meanwhile: import again."
                    ) from taken
            else:
                _update(target_id, source.workspace, want)

        return TransferItem(
            "experiment",
            f"{source.name!r} ({target_id})",
            lambda: _content(source, mine),
            have,
            write,
            identity=target_id,
        )

    def _resolved(self, source: Experiment) -> str:
        known = self._journal.target_of(source.experiment_id)
        if known is not None:
            return known
        same = table.get(keys.experiment(source.experiment_id))
        if same is not None and _named(same) == (source.workspace, source.name):
            return source.experiment_id
        if same is None and source.experiment_id == "0":
            return source.experiment_id
        named = experiments.find_by_name(source.workspace, source.name)
        if named is not None:
            return named.experiment_id
        return source.experiment_id if same is None else self._new_id()

    def _new_id(self) -> str:
        if not self._write:
            return new_ulid()
        numbers = experiment_ids.unused_ids()
        return next(number for number in numbers if table.get(keys.experiment(number)) is None)


def _named(item: Raw) -> tuple[str, str]:
    named = ExperimentItem.of(item)
    return named.workspace, named.name


def _content(experiment: Experiment, mine: bool) -> Content:
    own: dict[str, Any] = {name: getattr(experiment, name) for name in _OWN} if mine else {}
    return {**own, "tags": experiment.tags}


def _update(experiment_id: str, workspace: str, want: Content) -> None:
    stored = experiments.get(experiment_id, workspace)
    if want.get("name", stored.experiment.name) != stored.experiment.name:
        experiments.rename(stored.experiment, want["name"])
        stored = experiments.get(experiment_id, workspace)
    for key, value in want["tags"].items():
        if stored.experiment.tags.get(key) != value:
            experiment_tags.set_tag(stored, key, value)
            stored = experiments.get(experiment_id, workspace)
    stage = want.get("lifecycle_stage", stored.experiment.lifecycle_stage)
    if stage != stored.experiment.lifecycle_stage:
        stages.set_stage(stored.experiment, stage)
    if "creation_time" in want:
        location_list.enter_imported(stored.experiment, want["artifact_location"])
        own = Update()
        own.set(ExperimentItem.artifact_location, want["artifact_location"])
        own.set(ExperimentItem.creation_time, want["creation_time"])
        own.set(ExperimentItem.last_update_time, want["last_update_time"])
        change(keys.experiment(experiment_id), own)


def change(key: keys.Key, update: Update) -> None:
    """Updates the experiment item with this key in the table. Raises ConditionFailed if there is no
    such item."""
    document.touch(update)
    update.require_exists(ExperimentItem.PK)
    table.update(key, update)
