"""Removes experiments, runs, logged models and registered models permanently, with all their items
and files. The caller determines which of them may be removed.

Each call may be killed at any point and repeated: an item that leads to others is deleted after
them. Only a run or logged model is deleted before what belongs to it, since it may be restored at
the same time: if the process is killed in between, the indexer deletes the rest. Callers with
limited time pass a deadline and call again.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Final

from mlcore.auth.permissions import EXPERIMENT, PROMPT, REGISTERED_MODEL
from mlcore.db import keys
from mlcore.db.expression import ConditionExpression, Raw, Update
from mlcore.db.failures import ConditionFailed
from mlcore.db.keys import Key
from mlcore.db.table import Delete, TransactionFailed, key_of_item, table
from mlcore.entities.lifecycle_stages import DELETED
from mlcore.ids import new_ulid, now_ms
from mlcore.models.base import KEY, Item
from mlcore.models.experiments import Experiment, ExperimentNameLock
from mlcore.models.logged_models import LoggedModel
from mlcore.models.registry import ModelVersion
from mlcore.models.runs import Run
from mlcore.models.traces import Trace
from mlcore.optimistic_retry import WriteConflict, retry_on_conflict
from mlcore.repos.experiments import experiments
from mlcore.repos.files import location_list
from mlcore.repos.files import removable_files as file_owners
from mlcore.repos.files.removable_files import FileOwner
from mlcore.repos.item_deletion import delete_items
from mlcore.repos.kubeflow_keys import context_items
from mlcore.repos.kubeflow_keys.context_items import NumberedEntity
from mlcore.repos.registry import registered_models
from mlcore.repos.removal import former_root_locations, remains
from mlcore.repos.runs.core import run_writes, runs
from mlcore.repos.runs.history import history_files
from mlcore.repos.users import grants

TOGETHER: Final = 500
SWEEPS: Final = 20
"""How often an experiment's partition is swept: requests that read the experiment before it was
deleted may still write to it for a moment."""

_FILE_ATTRIBUTES: Final = (
    Item.type,
    Run.run_id,
    Run.artifact_uri,
    LoggedModel.model_id,
    LoggedModel.artifact_location,
    Trace.trace_id,
)


class NoLongerDeleted(Exception):
    """The experiment, run or logged model is not deleted any more: it was restored since the caller
    read it."""


def experiment(
    experiment_id: str, deadline: float = float("inf"), *, only_deleted: bool = False
) -> bool:
    """Permanently deletes an experiment with its runs, traces, logged models and files; its name
    becomes free. Once the deletion has begun, the experiment cannot be restored. Returns False if
    files had to be kept because other items may refer to them.

    Args:
        deadline: of :func:`time.monotonic`.
        only_deleted: refuse an experiment that is not soft-deleted.

    Raises:
        OutOfTime: the deadline has passed; call again.
        NoLongerDeleted: the experiment is active, with ``only_deleted``.
    """
    key = keys.experiment(experiment_id)
    item = retry_on_conflict("experiment", lambda: _begin(key, only_deleted=only_deleted))
    if item is None:
        return True
    workspace = Experiment.of(item).workspace
    grants.delete_on_resource(workspace, EXPERIMENT, experiment_id)
    _delete_from_kubeflow(Experiment.of(item))
    former_root_locations.enter_locations(deadline)
    whole = file_owners.of_experiment(item)
    if file_owners.is_here(whole) and file_owners.areas([whole]) == [None]:
        # Its folder may contain files of others; its own files are removed while its items still
        # name them.
        _delete_files_of_parts(item, deadline)
    for _ in range(SWEEPS):
        if not remains.of_experiment(experiment_id, deadline):
            break
    all_removed = file_owners.remove([whole])
    file_owners.remove_areas([*file_owners.internal(item), file_owners.history(experiment_id)])
    mine = ConditionExpression()
    mine.require_absent_or_equal(ExperimentNameLock.experiment_id, experiment_id)
    while item is not None:
        lock = keys.experiment_name_lock(workspace, Experiment.of(item).name)
        try:
            table.transact([Delete(lock, mine), Delete(key)], new_ulid())
        except TransactionFailed:
            # The lock belongs to another experiment already: only the experiment remains to be
            # deleted.
            table.delete(key)
        item = table.get(key)
    location_list.remove_entry(experiment_id, whole.location, workspace)
    return all_removed


def run(experiment_id: str, run_id: str, workspace: str) -> bool:
    """Permanently deletes a soft-deleted run, its child items and its files; the indexer deletes
    derived items. Returns False if files had to be kept, because other items may refer to them.
    Raises NoLongerDeleted if the run was restored."""
    key = keys.run(experiment_id, run_id)

    def attempt() -> Raw | None:
        item, meta = table.batch_get([key, keys.experiment(experiment_id)])
        if item is None or meta is None:
            return None
        read = runs.of_item(item, experiments.of_item(meta).experiment)
        if read.stage != DELETED:
            raise NoLongerDeleted(run_id)
        _delete(key, run_writes.stage_unchanged(read.item))
        return item

    item = retry_on_conflict("run", attempt)
    if item is None:
        return True
    former_root_locations.enter_locations()
    all_removed = file_owners.remove([file_owners.of_run(experiment_id, item, workspace)])
    location_list.remove_run_entry(run_id, Run.of(item).artifact_uri, experiment_id, workspace)
    remains.of_run(experiment_id, run_id)
    if history_files.has_place(experiment_id, run_id):
        file_owners.remove_areas([file_owners.history(experiment_id, run_id)])
    return all_removed


def logged_model(experiment_id: str, model_id: str, workspace: str) -> bool:
    """Deletes a deleted logged model, its child items and its files. Returns False if files had to
    be kept. Raises NoLongerDeleted if the model was restored."""
    key = keys.logged_model(experiment_id, model_id)

    def attempt() -> Raw | None:
        item = table.get(key)
        if item is None:
            return None
        model = LoggedModel.of(item)
        if model.stage != DELETED:
            raise NoLongerDeleted(model_id)
        unchanged = ConditionExpression()
        unchanged.require_equal(LoggedModel.version, model.version)
        _delete(key, unchanged)
        return item

    item = retry_on_conflict("model", attempt)
    if item is None:
        return True
    former_root_locations.enter_locations()
    all_removed = file_owners.remove([file_owners.of_logged_model(experiment_id, item, workspace)])
    remains.of_logged_model(experiment_id, model_id)
    return all_removed


def _delete(key: Key, unchanged: ConditionExpression) -> None:
    """Deletes an item. Raises WriteConflict if it was deleted or does not meet the condition."""
    try:
        table.delete(key, unchanged)
    except ConditionFailed as failed:
        raise WriteConflict from failed


def registered_model(key: Key, deadline: float = float("inf")) -> None:
    """Permanently deletes a registered model, with all its items. Its versions are deleted first,
    because they can only be found through the model.

    Raises:
        OutOfTime: ``deadline`` (of :func:`time.monotonic`) has passed; call again.
    """
    item = table.get(key)
    if item is None:
        return
    stored = registered_models.of_item(item)
    for kind in (REGISTERED_MODEL, PROMPT):
        grants.delete_on_resource(stored.model.workspace, kind, stored.model.name)
    versions = table.query_all(stored.home, prefix=keys.model_version_prefix())
    while together := list(islice(versions, TOGETHER)):
        _delete_versions(together, stored.incarnation)
        remains.check_deadline(deadline)
    rest = table.query_all(stored.home, attributes=KEY)
    kept = {key, keys.model_at(stored.home)}  # a renamed model's home may have a later model's item
    delete_items(each for each in rest if key_of_item(each) not in kept)
    if stored.item.number is not None:
        numbered = NumberedEntity(stored.item.number, None, stored.item.external_id)
        context_items.delete_entities([numbered])
    table.delete(key)


def _delete_versions(items: Sequence[Raw], incarnation: str) -> None:
    """Deletes items of a model's versions, and first what other partitions have of the versions:
    links from runs, and what belongs to them in Kubeflow's registry."""
    versions = [ModelVersion.of(item) for item in items]
    numbered = [
        NumberedEntity(version.number, version.kubeflow_name, version.external_id)
        for version in versions
        if version.type == keys.MODEL_VERSION.name and version.number is not None
    ]
    context_items.delete_entities(numbered)
    links = [
        keys.run_model_version(version.run_id, incarnation, version.model_version)
        for version in versions
        if version.type == keys.MODEL_VERSION.name and version.run_id is not None
    ]
    table.batch_write(deletes=[*links, *map(key_of_item, items)])


def _delete_from_kubeflow(item: Experiment) -> None:
    """Deletes what Kubeflow's registry has of an experiment that Kubeflow's API made or wrote."""
    is_known = item.number is not None or item.external_id or item.property_types is not None
    number = item.number or (int(item.experiment_id) if item.experiment_id.isdecimal() else None)
    if is_known and number is not None:
        lock = context_items.own_external_id(item.workspace, item.type, item.external_id, number)
        context_items.delete([*lock, *context_items.deletions_of_context(number)])


def workspace_files(name: str) -> None:
    """Deletes all files in a workspace's folders of the artifact store, except those of experiments
    that were moved out of the workspace."""
    file_owners.remove_areas(file_owners.of_workspace(name))


def _delete_files_of_parts(experiment: Raw, deadline: float) -> None:
    workspace = Experiment.of(experiment).workspace
    pk = keys.experiment(Experiment.of(experiment).experiment_id).pk
    listed = table.query_all(pk, attributes=_FILE_ATTRIBUTES)
    while together := list(islice(listed, TOGETHER)):
        parts = [part for item in together for part in _part(experiment, item, workspace)]
        file_owners.remove(parts)
        remains.check_deadline(deadline)


def _part(experiment: Raw, item: Raw, workspace: str) -> list[FileOwner]:
    experiment_id, kind = Experiment.of(experiment).experiment_id, Item.of(item).type
    if kind == keys.RUN.name:
        return [file_owners.of_run(experiment_id, item, workspace)]
    if kind == keys.LOGGED_MODEL.name:
        return [file_owners.of_logged_model(experiment_id, item, workspace)]
    if kind == keys.TRACE.name:
        return [file_owners.of_trace(experiment, Trace.of(item).trace_id)]
    return []


def _begin(key: Key, *, only_deleted: bool) -> Raw | None:
    """Marks an experiment as deleted for good, and returns its item as it was before; None if it
    does not exist. Raises NoLongerDeleted, and WriteConflict if it was deleted or restored
    meanwhile."""
    item = table.get(key)
    if item is None:
        return None
    read = Experiment.of(item)
    if only_deleted and read.stage != DELETED:
        raise NoLongerDeleted(read.experiment_id)
    if read.is_purged and read.stage == DELETED:  # release 0.1.0 restores marked ones
        return item
    change = Update()
    change.set(Experiment.is_purged, True)
    change.set(Experiment.updated_at, now_ms())
    change.add(Experiment.version, 1)
    if read.stage != DELETED:
        change.set(Experiment.stage, DELETED)
        change.add(Experiment.epoch, 1)
    change.require_equal(Experiment.epoch, read.epoch)
    change.require_equal(Experiment.name, read.name)  # the caller frees the name
    try:
        table.update(key, change)
    except ConditionFailed as failed:
        raise WriteConflict from failed
    return item
