"""Experiments: the ``E#META`` document with its tags, and the lock item that makes its name unique.

Deleting or restoring an experiment changes only ``E#META``: its ``epoch`` (a counter of deletions
and restorations) goes up by one. A run stores the epoch of its creation or its own last deletion or
restoration; if the experiment's epoch is later, the run has the experiment's stage (see
:func:`mlcore.repos.runs.core.runs.stage`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from mlcore import errors
from mlcore.artifacts.paths import WORKSPACES
from mlcore.db import keys
from mlcore.db.expression import ConditionExpression, Raw, Update
from mlcore.db.failures import ConditionFailed
from mlcore.db.table import Delete, ItemUpdate, Operation, Put, TransactionFailed, table
from mlcore.entities.experiments import DEFAULT_EXPERIMENT_ID, DEFAULT_EXPERIMENT_NAME, Experiment
from mlcore.entities.lifecycle_stages import ACTIVE
from mlcore.entities.workspaces import DEFAULT_WORKSPACE
from mlcore.environment import settings, workspaces_enabled
from mlcore.ids import new_ulid, now_ms
from mlcore.limits.artifact_locations import join
from mlcore.limits.experiments import is_numeric_id, no_experiment_id
from mlcore.models.experiments import Experiment as ExperimentItem
from mlcore.models.experiments import ExperimentNameLock, ExperimentTag
from mlcore.optimistic_retry import WriteConflict
from mlcore.repos import document, text_index_state
from mlcore.repos.document import Document
from mlcore.repos.experiments import ids as experiment_ids
from mlcore.repos.experiments.creations import (
    ExperimentNameTaken,
    IdTaken,
    holder_in,
    is_of,
    lock_of,
    put,
    put_if_possible,
)
from mlcore.repos.files import location_list
from mlcore.repos.workspaces import recent_entities, workspaces


class StoredExperiment(NamedTuple):
    """An experiment, and the document (its stored item) from which it was read."""

    experiment: Experiment
    document: Document


def get(experiment_id: str, workspace: str) -> StoredExperiment:
    """Returns an experiment. If the workspace has none with this id, raises ResourceDoesNotExist,
    or InvalidParameterValue for an id that is not a number (:func:`missing`).

    One consistent GetItem, and a Query if its tags overflowed.
    """
    item = _item_of(experiment_id, table.get(keys.experiment(experiment_id)))
    if item is None or ExperimentItem.of(item).workspace != workspace:
        raise missing(experiment_id)
    return of_item(item)


def get_active(experiment_id: str, workspace: str) -> StoredExperiment:
    """Returns an experiment as :func:`get` does. Raises InvalidParameterValue if it is deleted."""
    read = get(experiment_id, workspace)
    check_active(read.experiment)
    return read


def missing(experiment_id: str) -> errors.MlflowError:
    """Returns the error for an unknown experiment id: ResourceDoesNotExist for a number,
    InvalidParameterValue for other texts."""
    if not is_numeric_id(experiment_id):
        return no_experiment_id(experiment_id)
    return errors.ResourceDoesNotExist(f"No Experiment with id={experiment_id} exists")


def check_active(experiment: Experiment) -> None:
    """Raises InvalidParameterValue if an experiment is deleted. Callers check this before they add
    something to it, as MLflow does."""
    if experiment.lifecycle_stage != ACTIVE:
        raise errors.InvalidParameterValue(
            f"The experiment {experiment.experiment_id} must be in the 'active' state. "
            f"Current state is {experiment.lifecycle_stage}."
        )


def find(experiment_id: str, workspace: str) -> Experiment | None:
    """Returns an experiment; None if there is none or it is in another workspace. Reads as
    :func:`get`."""
    return find_many([experiment_id], workspace)[0]


def find_many(experiment_ids: Sequence[str], workspace: str) -> list[Experiment | None]:
    """Returns experiments in the order of the ids, None for missing ones and those of other
    workspaces. One BatchGetItem per hundred, and a Query for each whose tags overflowed."""
    items = table.batch_get([keys.experiment(experiment_id) for experiment_id in experiment_ids])
    return [
        entity_of(experiment_id, item, workspace)
        for experiment_id, item in zip(experiment_ids, items, strict=True)
    ]


def find_existing(experiment_ids: Sequence[str], workspace: str) -> list[Experiment]:
    """Returns those of the experiments that exist in the workspace, in the order of the ids."""
    return [
        experiment for experiment in find_many(experiment_ids, workspace) if experiment is not None
    ]


def entity_of(experiment_id: str, item: Raw | None, workspace: str) -> Experiment | None:
    """Returns the experiment that ``item`` holds; None if it is in another workspace or there is no
    item. Without an item, the default experiment is created and returned."""
    item = _item_of(experiment_id, item)
    if item is None or ExperimentItem.of(item).workspace != workspace:
        return None
    return of_item(item).experiment


def workspace_of(experiment_id: str) -> str | None:
    """Returns the workspace of an experiment; None if the experiment does not exist. One consistent
    GetItem."""
    return _owner(experiment_id, table.get(keys.experiment(experiment_id)))


def are_in(experiment_ids: Sequence[str], workspace: str) -> bool:
    """Whether all experiments exist in a workspace; one BatchGetItem per hundred."""
    items = table.batch_get([keys.experiment(experiment_id) for experiment_id in experiment_ids])
    owners = map(_owner, experiment_ids, items)
    return all(owner == workspace for owner in owners)


def _owner(experiment_id: str, item: Raw | None) -> str | None:
    if item is None:
        # The default experiment exists before it has an item.
        return DEFAULT_WORKSPACE if experiment_id == DEFAULT_EXPERIMENT_ID else None
    return ExperimentItem.of(item).workspace


def find_by_name(workspace: str, name: str) -> Experiment | None:
    """Returns the experiment with a name; None if the workspace has none. Two consistent GetItem,
    the name's lock and the experiment, so the answer never lags."""
    stored = find_stored_by_name(workspace, name)
    return None if stored is None else stored.experiment


def find_stored_by_name(workspace: str, name: str) -> StoredExperiment | None:
    """Returns the experiment with a name, together with the document (item and maps) that a write
    of it needs; None if the workspace has none. Reads what :func:`find_by_name` reads."""
    key = keys.experiment_name_lock(workspace, name)
    lock = table.get(key)
    if lock is None and (workspace, name) == (DEFAULT_WORKSPACE, DEFAULT_EXPERIMENT_NAME):
        default = _ensure_default()
        lock = table.get(key)
        if lock is None and default is not None and ExperimentItem.of(default).name == name:
            return of_item(default)
    former = None
    while lock is not None and lock != former:
        item = table.get(keys.experiment(holder_in(lock)))
        if item is not None and ExperimentItem.of(item).name == name:
            return of_item(item)
        # It was renamed between the reads, or has expired, and the indexer deletes its lock later.
        former, lock = lock, table.get(key)
    return None


def ids_of_workspace(workspace: str) -> Iterator[str]:
    """Yields the ids of a workspace's experiments, deleted ones too, from GSI2, which may lag."""
    pk = keys.gsi2_experiment(workspace, "")[0]
    has_default = workspace != DEFAULT_WORKSPACE
    for item in table.query_all(pk, index="GSI2", attributes=[ExperimentItem.PK]):
        experiment_id = keys.experiment_id_of(ExperimentItem.of(item).PK)
        has_default = has_default or experiment_id == DEFAULT_EXPERIMENT_ID
        yield experiment_id
    if not has_default:
        yield DEFAULT_EXPERIMENT_ID


def default_location(experiment_id: str, workspace: str = DEFAULT_WORKSPACE) -> str:
    """Returns the artifact location of an experiment whose creator names none. Experiment 0 has the
    same location with and without workspaces."""
    root = settings().artifact_root
    in_workspace = workspace != DEFAULT_WORKSPACE or workspaces_enabled()
    if in_workspace and experiment_id != DEFAULT_EXPERIMENT_ID:
        own = workspaces.get(workspace).artifact_root
        root = own or join(root, f"{WORKSPACES}/{workspace}")
        return join(root, experiment_id)
    return f"{root}{experiment_id}" if root.endswith("/") else f"{root}/{experiment_id}"


def create(experiment: Experiment, also: Sequence[Operation] = (), more: Raw | None = None) -> None:
    """Creates an experiment and the lock of its name in one transaction with ``also``; ``more`` are
    further attributes of its item. Repeating an executed creation succeeds.

    Raises:
        ExperimentNameTaken: another experiment has the name.
        IdTaken: another experiment has the id. The name is free, or unchecked if tags overflowed.
        ResourceDoesNotExist: the workspace was deleted.
        ExperimentOperationFailed: a condition of ``also`` does not hold.
        TemporarilyUnavailable, RequestLimitExceeded: it may have been executed, or may be later.
    """
    _before_naming(experiment, experiment.name)
    item, children = _items(experiment)
    if children:
        # The child items must not be put into the partition of another experiment.
        there = table.get(keys.experiment(experiment.experiment_id))
        if there is not None and not is_of(experiment, there):
            raise IdTaken(experiment.experiment_id)
    table.batch_write(children)
    elsewhere = location_list.of_experiment(
        experiment.experiment_id, experiment.artifact_location, experiment.workspace
    )
    entering = workspaces.creation_guard(experiment.workspace)
    recent = recent_entities.experiment(experiment.experiment_id, experiment.workspace)
    put(experiment, {**item, **(more or {})}, [*entering, *recent, *elsewhere, *also])


def _items(experiment: Experiment) -> tuple[Raw, list[Raw]]:
    """Returns the experiment's item, and the child items that must be written before it."""
    key = keys.experiment(experiment.experiment_id)
    attributes, children = document.initial(
        (experiment.experiment_id,), MAPS, {"tags": experiment.tags}
    )
    gsi2pk, gsi2sk = keys.gsi2_experiment(experiment.workspace, experiment.experiment_id)
    gsi3pk, gsi3sk = keys.gsi3_experiment(experiment.name, experiment.experiment_id)
    gsi5pk, gsi5sk = keys.gsi5_experiment(experiment.workspace, experiment.name)
    model = ExperimentItem(
        PK=key.pk,
        SK=key.sk,
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
        fts=text_index_state.configured_fields().encode(),
        updated_at=now_ms(),
        version=1,
    )
    return {**model.serialize(), **attributes}, children


def rename(experiment: Experiment, new_name: str) -> None:
    """Renames an experiment: locks the new name, frees the old one and writes the experiment, in
    one transaction.

    Raises:
        ExperimentNameTaken: another experiment has the new name.
        WriteConflict: the experiment is deleted, or was renamed since it was read.
    """
    _before_naming(experiment, new_name)
    absent = ConditionExpression()
    absent.require_absent(ExperimentNameLock.PK)
    mine = ConditionExpression()
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
                ItemUpdate(keys.experiment(experiment.experiment_id), change),
            ],
            token=new_ulid(),
        )
    except TransactionFailed as failed:
        lock_found = failed.items.get(0)
        if lock_found is None:
            raise WriteConflict(experiment.experiment_id) from failed
        if holder_in(lock_found) != experiment.experiment_id:
            raise ExperimentNameTaken(new_name) from failed
        # else it has the new name already: the transaction was executed before


def touch(experiment: Experiment) -> None:
    """Sets only the time of an experiment's last update, which is all that a rename to its present
    name does. Raises WriteConflict if it was renamed or permanently removed since it was read."""
    change = Update()
    document.touch(change)
    change.set(ExperimentItem.last_update_time, now_ms())
    change.require_equal(ExperimentItem.name, experiment.name)
    try:
        table.update(keys.experiment(experiment.experiment_id), change)
    except ConditionFailed as failed:
        raise WriteConflict(experiment.experiment_id) from failed


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
        indexed=text_index_state.covered_fields(raw),
        followed=text_index_state.maintained_fields(raw),
    )
    return StoredExperiment(experiment, loaded)


def _tag(item_key: keys.Key, key: str, value: str) -> Raw:
    return ExperimentTag(PK=item_key.pk, SK=item_key.sk, key=key, value=value).serialize()


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
    """Returns ``item``, the item that was read for an experiment. If it is None and the experiment
    is the default one (id 0), creates that and returns its item."""
    if item is None and experiment_id == DEFAULT_EXPERIMENT_ID:
        return _default_item()
    return item


def _before_naming(experiment: Experiment, name: str) -> None:
    """Creates the default experiment if another experiment is about to take its name ``Default``,
    so that the name is always taken."""
    named_as_default = (experiment.workspace, name) == (DEFAULT_WORKSPACE, DEFAULT_EXPERIMENT_NAME)
    if named_as_default and experiment.experiment_id != DEFAULT_EXPERIMENT_ID:
        _ensure_default()


def _ensure_default() -> Raw | None:
    return table.get(keys.experiment(DEFAULT_EXPERIMENT_ID)) or _default_item()


def _default_item() -> Raw | None:
    """Creates experiment ``0``, named ``Default``, older than all others; returns its item. If
    nothing can be stored now, returns the item without storing it."""
    since = experiment_ids.oldest_creation_time()
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
    item = _items(default)[0]
    is_stored = put_if_possible(default, item)
    return table.get(keys.experiment(DEFAULT_EXPERIMENT_ID)) if is_stored else item
