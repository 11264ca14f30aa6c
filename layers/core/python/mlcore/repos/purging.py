"""Removes experiments and registered models for good, with everything that is theirs; decides
nothing about which.

Each call may be killed at any point and be repeated: what tells of the rest goes last. Those whose
time is limited pass a deadline and call again.
"""

from __future__ import annotations

from typing import Final

from mlcore import artifacts, errors
from mlcore.artifacts.paths import INTERNAL, WORKSPACES
from mlcore.auth.permissions import EXPERIMENT, PROMPT, REGISTERED_MODEL
from mlcore.db import keys
from mlcore.db.expression import Condition, Update, number, string
from mlcore.db.failures import ConditionFailed
from mlcore.db.keys import Key
from mlcore.db.table import Delete, TransactionFailed, table
from mlcore.entities import DELETED
from mlcore.ids import new_ulid, now_ms
from mlcore.repos import grants, registered_models, remains

TOGETHER: Final = 500
SWEEPS: Final = 20
"""Whoever has read an experiment before it was deleted may still write to it for a moment."""


def experiment(experiment_id: str, deadline: float = float("inf")) -> None:
    """Deletes an experiment with its runs, traces, logged models and files, then its name.

    Args:
        deadline: of :func:`time.monotonic`.

    Raises:
        OutOfTime: call again.
    """
    place = keys.experiment(experiment_id)
    item = table.get(place)
    if item is None:
        return
    if item["stage"]["S"] != DELETED:
        _mark_deleted(place)
    workspace = item["workspace"]["S"]
    grants.sweep(workspace, EXPERIMENT, experiment_id)
    for _ in range(SWEEPS):
        if not remains.of_experiment(experiment_id, deadline):
            break
    delete_files(item["artifact_location"]["S"], workspace)
    _delete_internal_files(experiment_id, workspace)
    mine = Condition()
    mine.require_absent_or_equal("experiment_id", string(experiment_id))
    while item is not None:
        lock = keys.experiment_name_lock(workspace, item["name"]["S"])
        try:
            table.transact([Delete(lock, mine), Delete(place)], new_ulid())
        except TransactionFailed:
            # The lock is another's already: only the experiment is left to go.
            table.delete(place)
        item = table.get(place)


def run(experiment_id: str, run_id: str, workspace: str) -> None:
    """Deletes a run, its children and its files; the indexer takes away what it derived."""
    place = keys.run(experiment_id, run_id)
    item = table.get(place)
    if item is None:
        return
    delete_files(item["artifact_uri"]["S"], workspace)
    remains.of_run(experiment_id, run_id)
    table.delete(place)


def logged_model(experiment_id: str, model_id: str, workspace: str) -> None:
    """Deletes a logged model, what it had no room for, and its files."""
    place = keys.logged_model(experiment_id, model_id)
    item = table.get(place)
    if item is None:
        return
    delete_files(item["artifact_location"]["S"], workspace)
    remains.of_logged_model(experiment_id, model_id)
    table.delete(place)


def registered_model(place: Key, deadline: float = float("inf")) -> None:
    """Deletes a registered model and its versions, which only it leads to, so before itself.

    Raises:
        OutOfTime: call again.
    """
    item = table.get(place)
    if item is None:
        return
    read = registered_models.record(item)
    for kind in (REGISTERED_MODEL, PROMPT):
        grants.sweep(read.model.workspace, kind, read.model.name)
    versions = table.query_all(read.home, prefix=keys.model_version_prefix())
    gone: list[Key] = []
    for version in versions:
        gone.append(Key(version["PK"]["S"], version["SK"]["S"]))
        if "run_id" in version and version["type"]["S"] == keys.MODEL_VERSION.name:
            number_ = int(version["model_version"]["N"])
            gone.append(keys.run_model_version(version["run_id"]["S"], read.incarnation, number_))
        if len(gone) >= TOGETHER:
            table.batch_write(deletes=gone)
            gone = []
            remains.check(deadline)
    table.batch_write(deletes=gone)
    rest = table.query_all(read.home, attributes=["PK", "SK"])
    remains.delete(item for item in rest if item["SK"]["S"] != place.sk or read.home != place.pk)
    table.delete(place)


def delete_files(location: str, workspace: str) -> None:
    """Deletes what is below a location, if we keep it."""
    try:
        key = artifacts.locate(location, workspace)
    except errors.InvalidParameterValue:
        return  # another bucket, another service: not ours to delete
    if key and key not in (WORKSPACES, INTERNAL, f"{WORKSPACES}/{workspace}"):
        artifacts.store().delete_tree(key)


def workspace_files(name: str) -> None:
    """Deletes what is left below a workspace's own folders."""
    artifacts.store().delete_tree(f"{WORKSPACES}/{name}")
    artifacts.store().delete_tree(artifacts.internal(name, "").rstrip("/"))


def _delete_internal_files(experiment_id: str, workspace: str) -> None:
    artifacts.store().delete_tree(artifacts.internal(workspace, f"traces/{experiment_id}"))


def _mark_deleted(place: Key) -> None:
    change = Update()
    change.set("stage", string(DELETED))
    change.set("updated_at", number(now_ms()))
    change.add("epoch", 1)
    change.add("version", 1)
    change.require_exists("PK")
    try:
        table.update(place, change)
    except ConditionFailed:
        return
