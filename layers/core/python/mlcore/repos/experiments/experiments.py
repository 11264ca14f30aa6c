"""Experiments: the ``E#META`` document with its tags, and the lock item that makes its name unique.

Deleting or restoring an experiment changes only ``E#META``: its ``epoch`` goes up by one and
decides the stage of every run that was not itself deleted or restored since (see
:func:`mlcore.repos.runs.runs.stage`).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from mlcore import errors
from mlcore.artifacts.paths import WORKSPACES
from mlcore.db import keys
from mlcore.db.expression import Condition, Raw, Update
from mlcore.db.failures import ConditionFailed
from mlcore.db.table import Change, Delete, Operation, Put, TransactionFailed, table
from mlcore.entities.experiments import DEFAULT_EXPERIMENT_ID, DEFAULT_EXPERIMENT_NAME, Experiment
from mlcore.entities.stages import ACTIVE
from mlcore.entities.workspaces import DEFAULT_WORKSPACE
from mlcore.environment import settings, workspaces_enabled
from mlcore.ids import new_ulid, now_ms
from mlcore.limits.experiments import is_given_out, no_experiment_id
from mlcore.limits.locations import below
from mlcore.models.experiments import Experiment as ExperimentItem
from mlcore.models.experiments import ExperimentNameLock, ExperimentTag
from mlcore.repos import document, text_index
from mlcore.repos.document import Document
from mlcore.repos.experiments import ids as experiment_ids
from mlcore.repos.experiments.creations import (
    IdTaken,
    NameTaken,
    holder_in,
    is_of,
    lock_of,
    put,
)
from mlcore.repos.files import locations
from mlcore.repos.workspaces import workspaces
from mlcore.settle import Conflict


class StoredExperiment(NamedTuple):
    """An experiment as it was read."""

    experiment: Experiment
    document: Document


def get(experiment_id: str, workspace: str) -> StoredExperiment:
    """One consistent GetItem (a second request when its tags overflowed). Raises what
    :func:`missing` gives, also for an experiment of another workspace."""
    item = _item_of(experiment_id, table.get(keys.experiment(experiment_id)))
    if item is None or ExperimentItem.of(item).workspace != workspace:
        raise missing(experiment_id)
    return of_item(item)


def get_active(experiment_id: str, workspace: str) -> StoredExperiment:
    """As :func:`get`. Raises InvalidParameterValue: it is deleted."""
    read = get(experiment_id, workspace)
    check_active(read.experiment)
    return read


def missing(experiment_id: str) -> errors.MlflowError:
    """ResourceDoesNotExist; InvalidParameterValue where the id has a form that none has by
    itself."""
    if not is_given_out(experiment_id):
        return no_experiment_id(experiment_id)
    return errors.ResourceDoesNotExist(f"No Experiment with id={experiment_id} exists")


def check_active(experiment: Experiment) -> None:
    """Raises InvalidParameterValue, as MLflow does for what is new in a deleted experiment."""
    if experiment.lifecycle_stage != ACTIVE:
        raise errors.InvalidParameterValue(
            f"The experiment {experiment.experiment_id} must be in the 'active' state. "
            f"Current state is {experiment.lifecycle_stage}."
        )


def find(experiment_id: str, workspace: str) -> Experiment | None:
    """One consistent read; None also for an experiment of another workspace."""
    return find_many([experiment_id], workspace)[0]


def find_many(experiment_ids: Sequence[str], workspace: str) -> list[Experiment | None]:
    """In the order of the ids, None for those of other workspaces; one BatchGetItem for each
    hundred."""
    items = table.batch_get([keys.experiment(experiment_id) for experiment_id in experiment_ids])
    return [
        entity_of(experiment_id, item, workspace)
        for experiment_id, item in zip(experiment_ids, items, strict=True)
    ]


def known(experiment_ids: Sequence[str], workspace: str) -> list[Experiment]:
    """Those of the experiments that are in the workspace, in the order of the ids."""
    return [one for one in find_many(experiment_ids, workspace) if one is not None]


def entity_of(experiment_id: str, item: Raw | None, workspace: str) -> Experiment | None:
    """The experiment of an item that was read; None for one of another workspace."""
    item = _item_of(experiment_id, item)
    if item is None or ExperimentItem.of(item).workspace != workspace:
        return None
    return of_item(item).experiment


def workspace_of(experiment_id: str) -> str | None:
    """Whose an experiment is; None if there is none. One consistent GetItem."""
    return _owner(experiment_id, table.get(keys.experiment(experiment_id)))


def are_in(experiment_ids: Sequence[str], workspace: str) -> bool:
    """Whether all are there and in a workspace; one BatchGetItem for each hundred."""
    items = table.batch_get([keys.experiment(experiment_id) for experiment_id in experiment_ids])
    owners = map(_owner, experiment_ids, items)
    return all(owner == workspace for owner in owners)


def _owner(experiment_id: str, item: Raw | None) -> str | None:
    if item is None:
        # There before it has an item.
        return DEFAULT_WORKSPACE if experiment_id == DEFAULT_EXPERIMENT_ID else None
    return ExperimentItem.of(item).workspace


def find_by_name(workspace: str, name: str) -> Experiment | None:
    """Two consistent GetItem: the name's lock, then the experiment. No index is asked, so nothing
    lags."""
    stored = find_stored_by_name(workspace, name)
    return None if stored is None else stored.experiment


def find_stored_by_name(workspace: str, name: str) -> StoredExperiment | None:
    """As :func:`find_by_name`, the experiment as it was read."""
    place = keys.experiment_name_lock(workspace, name)
    lock = table.get(place)
    if lock is None and (workspace, name) == (DEFAULT_WORKSPACE, DEFAULT_EXPERIMENT_NAME):
        _ensure_default()
        lock = table.get(place)
    while lock is not None:
        item = table.get(keys.experiment(holder_in(lock)))
        if item is not None and ExperimentItem.of(item).name == name:
            return of_item(item)
        # It was renamed between the two reads: the lock is another's now, or gone.
        lock = table.get(place)
    return None


def ids_of_workspace(workspace: str) -> Iterator[str]:
    """Every experiment of a workspace through GSI2, which may lag behind by seconds."""
    pk = keys.gsi2_experiment(workspace, "")[0]
    has_default = workspace != DEFAULT_WORKSPACE
    for item in table.query_all(pk, index="GSI2", attributes=[ExperimentItem.PK]):
        experiment_id = keys.experiment_id_of(ExperimentItem.of(item).PK)
        has_default = has_default or experiment_id == DEFAULT_EXPERIMENT_ID
        yield experiment_id
    if not has_default:
        yield DEFAULT_EXPERIMENT_ID


def default_location(experiment_id: str, workspace: str = DEFAULT_WORKSPACE) -> str:
    """Where an experiment's artifacts are kept unless it says otherwise. Experiment 0 keeps its
    place whether or not there are workspaces."""
    root = settings().artifact_root
    in_workspace = workspace != DEFAULT_WORKSPACE or workspaces_enabled()
    if in_workspace and experiment_id != DEFAULT_EXPERIMENT_ID:
        own = workspaces.get(workspace).artifact_root
        root = own or below(root, f"{WORKSPACES}/{workspace}")
        return below(root, experiment_id)
    return f"{root}{experiment_id}" if root.endswith("/") else f"{root}/{experiment_id}"


def create(experiment: Experiment, also: Sequence[Operation] = (), more: Raw | None = None) -> None:
    """One transaction: the name's lock and the experiment, and ``also`` what belongs to it. A
    creation that had gone through succeeds again. ``more`` are further attributes of its item.

    Raises:
        NameTaken: the name is held by another experiment.
        IdTaken: another experiment has the id, and nobody the name.
        AlsoFailed: a condition of ``also`` does not hold.
        TemporarilyUnavailable, RequestLimitExceeded: it may have gone through, or may yet.
    """
    _before_naming(experiment, experiment.name)
    item, children = _items(experiment)
    if children:
        # They must not land in the partition of another experiment.
        there = table.get(keys.experiment(experiment.experiment_id))
        if there is not None and not is_of(experiment, there):
            raise IdTaken(experiment.experiment_id)
    table.batch_write(children)
    elsewhere = locations.of_experiment(
        experiment.experiment_id, experiment.artifact_location, experiment.workspace
    )
    entering = workspaces.entering(experiment.workspace)
    put(experiment, {**item, **(more or {})}, [*entering, *elsewhere, *also])


def _items(experiment: Experiment) -> tuple[Raw, list[Raw]]:
    """The experiment's own item, and those that must be written before it."""
    place = keys.experiment(experiment.experiment_id)
    attributes, children = document.initial(
        (experiment.experiment_id,), MAPS, {"tags": experiment.tags}
    )
    gsi2pk, gsi2sk = keys.gsi2_experiment(experiment.workspace, experiment.experiment_id)
    gsi3pk, gsi3sk = keys.gsi3_experiment(experiment.name, experiment.experiment_id)
    gsi5pk, gsi5sk = keys.gsi5_experiment(experiment.workspace, experiment.name)
    model = ExperimentItem(
        PK=place.pk,
        SK=place.sk,
        gsi2pk=gsi2pk,
        gsi2sk=gsi2sk,
        gsi3pk=gsi3pk,
        gsi3sk=gsi3sk,
        gsi5pk=gsi5pk,
        gsi5sk=gsi5sk,
        experiment_id=experiment.experiment_id,
        name=experiment.name,
        workspace=experiment.workspace,
        artifact_location=experiment.artifact_location,
        stage=experiment.lifecycle_stage,
        epoch=experiment.epoch,
        creation_time=experiment.creation_time,
        last_update_time=experiment.last_update_time,
        fts=text_index.wanted().encode(),
        updated_at=now_ms(),
        version=1,
    )
    return {**model.serialize(), **attributes}, children


def rename(experiment: Experiment, new_name: str) -> None:
    """One transaction: take the new name, free the old one, write the experiment.

    Raises:
        NameTaken: the new name is held by another experiment.
        Conflict: the experiment changed meanwhile.
    """
    _before_naming(experiment, new_name)
    absent = Condition()
    absent.require_absent(ExperimentNameLock.PK)
    mine = Condition()
    mine.require_equal(ExperimentNameLock.experiment_id, experiment.experiment_id)
    change = Update()
    document.touch(change)
    change.set(ExperimentItem.name, new_name)
    change.set(ExperimentItem.last_update_time, now_ms())
    gsi3pk, gsi3sk = keys.gsi3_experiment(new_name, experiment.experiment_id)
    gsi5pk, gsi5sk = keys.gsi5_experiment(experiment.workspace, new_name)
    change.set(ExperimentItem.gsi3pk, gsi3pk)
    change.set(ExperimentItem.gsi3sk, gsi3sk)
    change.set(ExperimentItem.gsi5pk, gsi5pk)
    change.set(ExperimentItem.gsi5sk, gsi5sk)
    change.require_equal(ExperimentItem.name, experiment.name)
    change.require_equal(ExperimentItem.stage, ACTIVE)
    try:
        table.transact(
            [
                Put(lock_of(experiment.workspace, new_name, experiment.experiment_id), absent),
                Delete(keys.experiment_name_lock(experiment.workspace, experiment.name), mine),
                Change(keys.experiment(experiment.experiment_id), change),
            ],
            token=new_ulid(),
        )
    except TransactionFailed as failed:
        lock_found = failed.items.get(0)
        if lock_found is None:
            raise Conflict(experiment.experiment_id) from failed
        if holder_in(lock_found) != experiment.experiment_id:
            raise NameTaken(new_name) from failed
        # else it holds the new name already: the transaction had gone through before


def touch(experiment: Experiment) -> None:
    """Renames an experiment to the name it has: only its last update time moves. Raises
    Conflict."""
    change = Update()
    document.touch(change)
    change.set(ExperimentItem.last_update_time, now_ms())
    change.require_equal(ExperimentItem.name, experiment.name)
    try:
        table.update(keys.experiment(experiment.experiment_id), change)
    except ConditionFailed as failed:
        raise Conflict(experiment.experiment_id) from failed


def set_stage(experiment: Experiment, stage: str) -> None:
    """Deletes or restores the experiment and thereby all its runs.

    Raises:
        Conflict: it was deleted or restored meanwhile.
    """
    change = Update()
    document.touch(change)
    change.set(ExperimentItem.stage, stage)
    change.set(ExperimentItem.last_update_time, now_ms())
    if stage == ACTIVE:
        change.remove(ExperimentItem.ttl)
    change.add(ExperimentItem.epoch, 1)
    change.require_equal(ExperimentItem.epoch, experiment.epoch)
    try:
        table.update(keys.experiment(experiment.experiment_id), change)
    except ConditionFailed as failed:
        # The stage may be there already: this call was repeated, or another did the same.
        if failed.item is None or ExperimentItem.of(failed.item).stage != stage:
            raise Conflict(experiment.experiment_id) from failed


def of_item(raw: Raw) -> StoredExperiment:
    item = ExperimentItem.of(raw)
    loaded = document.load(raw, (item.experiment_id,), MAPS)
    experiment = Experiment(
        experiment_id=item.experiment_id,
        name=item.name,
        artifact_location=item.artifact_location,
        lifecycle_stage=item.stage,
        creation_time=item.creation_time,
        last_update_time=item.last_update_time,
        tags=loaded.texts("tags"),
        workspace=item.workspace,
        epoch=item.epoch,
        indexed=text_index.complete(raw),
        followed=text_index.maintained(raw),
    )
    return StoredExperiment(experiment, loaded)


def _tag(place: keys.Key, key: str, value: str) -> Raw:
    return ExperimentTag(PK=place.pk, SK=place.sk, key=key, value=value).serialize()


MAPS: document.Maps = {
    "tags": document.Map(
        ExperimentItem.tags,
        document.REPLACE,
        lambda _: keys.experiment_tag_prefix(),
        lambda owner, key: keys.experiment_tag(owner[0], key),
        _tag,
    )
}
"""The map attributes of ``E#META``; the owner of its children is (experiment id,)."""


def _item_of(experiment_id: str, item: Raw | None) -> Raw | None:
    """The default experiment is there as soon as somebody looks for it."""
    if item is None and experiment_id == DEFAULT_EXPERIMENT_ID:
        return _default_item()
    return item


def _before_naming(experiment: Experiment, name: str) -> None:
    """The name of the default experiment is taken from the start, also while nobody has looked for
    it."""
    named_as_default = (experiment.workspace, name) == (DEFAULT_WORKSPACE, DEFAULT_EXPERIMENT_NAME)
    if named_as_default and experiment.experiment_id != DEFAULT_EXPERIMENT_ID:
        _ensure_default()


def _ensure_default() -> None:
    if table.get(keys.experiment(DEFAULT_EXPERIMENT_ID)) is None:
        _default_item()


def _default_item() -> Raw | None:
    """Creates experiment ``0`` named ``Default``, which exists from the first time that somebody
    looks for it, and is older than all others."""
    since = experiment_ids.since()
    now = now_ms() if since is None else min(now_ms(), since - 1)
    default = Experiment(
        experiment_id=DEFAULT_EXPERIMENT_ID,
        name=DEFAULT_EXPERIMENT_NAME,
        artifact_location=default_location(DEFAULT_EXPERIMENT_ID),
        lifecycle_stage=ACTIVE,
        creation_time=now,
        last_update_time=now,
        tags={},
        workspace=DEFAULT_WORKSPACE,
    )
    # Another process may have been faster.
    with contextlib.suppress(NameTaken, IdTaken):
        put(default, _items(default)[0], ())
    return table.get(keys.experiment(DEFAULT_EXPERIMENT_ID))
