"""Moves model versions between stages and deletes them: the registered model and its versions in
one transaction, so that the model knows the greatest version of each stage."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from mlcore.db import keys
from mlcore.db.expression import Raw, Update
from mlcore.db.table import Delete, ItemUpdate, Operation, TransactionFailed, key_of_item, table
from mlcore.ids import new_ulid, now_ms
from mlcore.models.base import KEY
from mlcore.models.registry import ModelVersion as ModelVersionItem
from mlcore.models.registry import RegisteredModel as RegisteredModelItem
from mlcore.optimistic_retry import WriteConflict, retry_on_conflict
from mlcore.repos import document
from mlcore.repos.kubeflow_keys import context_items, list_keys
from mlcore.repos.registry import model_versions, registered_models
from mlcore.repos.registry.model_versions import ARCHIVED, DELETED, StoredModelVersion
from mlcore.repos.registry.registered_models import StoredRegisteredModel

MOVES_TOGETHER = 40
"""Versions moved in one transaction; DynamoDB allows 100 operations."""


class _Move(NamedTuple):
    raw: Raw
    stage: str

    @property
    def item(self) -> ModelVersionItem:
        return ModelVersionItem.of(self.raw)


def transition(
    stored: StoredModelVersion, stage: str, *, archive_existing: bool
) -> StoredModelVersion:
    """Moves a model version to a stage; with ``archive_existing`` also moves all other versions
    from that stage to Archived. Returns the version afterwards.

    If there are many others, they are archived in several transactions; the last one moves the
    version. Raises ResourceDoesNotExist if the version or its model was deleted.
    """
    name, number = stored.version.name, stored.version.version
    current = stored

    def attempt() -> None:
        nonlocal current
        done = False
        while not done:
            others: list[Raw] = []
            if archive_existing:
                others = [
                    item
                    for item in _in_stage(current.model.home, stage)
                    if ModelVersionItem.of(item).model_version != number
                ]
            part = others[:MOVES_TOGETHER]
            moves = [_Move(item, ARCHIVED) for item in part]
            done = len(part) == len(others)
            if done:
                moves.append(_Move(current.document.item, stage))
            moved = _moved(current.model, moves)
            if not (moved and done):
                current = model_versions.get(stored.model.model.workspace, name, number)
            if not moved:
                raise WriteConflict

    retry_on_conflict("model", attempt)
    return model_versions.get(stored.model.model.workspace, name, number)


def delete(
    stored: StoredModelVersion, allowed: Callable[[], Sequence[Operation]] = lambda: ()
) -> None:
    """Deletes a model version: its item stays, with the version number and tags, but without
    description and user; its source and run are replaced by texts such as ``REDACTED-RUN-ID``.
    Its aliases and its data in Kubeflow's registry are deleted.

    Args:
        allowed: raises if the deletion is forbidden; otherwise returns checks for the transaction.
            Called for each attempt.

    Raises:
        ResourceDoesNotExist: the version was deleted before, or its model was deleted.
    """
    current = stored

    def attempt() -> None:
        nonlocal current
        version = current.version
        model = current.model
        names = model_versions.aliases(model.model, version.version)
        with contextlib.suppress(TransactionFailed):  # another version has an alias by now
            for alias in names[MOVES_TOGETHER:]:
                registered_models.delete_alias(
                    model, alias, announced=False, of_version=version.version
                )
        if len(names) <= MOVES_TOGETHER:
            beside: list[Operation] = [Delete(keys.model_alias(model.home, name)) for name in names]
            if version.run_id:
                key = keys.run_model_version(version.run_id, model.incarnation, version.version)
                beside.append(Delete(key))
            beside += [*_leaving(current), *allowed()]
            outside = model.document.outside.get("aliases", {})
            inline = [name for name in names if name not in outside]
            if _moved(model, [_Move(current.document.item, DELETED)], inline, beside):
                return
        current = model_versions.get(model.model.workspace, version.name, version.version)
        raise WriteConflict

    retry_on_conflict("model", attempt)
    number = stored.item.number if current.item.number is None else current.item.number
    if number is not None:
        context_items.delete(context_items.deletions_of_context(number))


def _moved(
    model: StoredRegisteredModel,
    moves: Sequence[_Move],
    aliases: Sequence[str] = (),
    beside: Sequence[Operation] = (),
) -> bool:
    """Moves versions to new stages, in one transaction over the model and the versions. Returns
    False if the model or a version was written since it was read, or a condition of ``beside`` does
    not hold.

    Args:
        aliases: aliases to remove from the model's item.
        beside: further operations of the transaction.
    """
    now = now_ms()
    change = Update()
    document.touch(change)
    list_keys.set_update_time(change, RegisteredModelItem, model.item.number, now)
    for stage, version in _latest(model, moves).items():
        if version:
            change.set((RegisteredModelItem.latest, stage), str(version))
        elif stage in model.model.latest:
            change.remove((RegisteredModelItem.latest, stage))
    for alias in aliases:
        change.remove((RegisteredModelItem.aliases, alias))
    change.require_equal(RegisteredModelItem.incarnation, model.incarnation)
    change.require_equal(RegisteredModelItem.version, model.item.version)
    versions = [ItemUpdate(key_of_item(move.raw), _change(move, now)) for move in moves]
    try:
        table.transact(
            [ItemUpdate(model.document.key, change), *versions, *beside], token=new_ulid()
        )
    except TransactionFailed:
        return False
    return True


def _leaving(stored: StoredModelVersion) -> list[Operation]:
    """Returns the deletions of a deleted version's number, name and external id in Kubeflow's
    registry."""
    item = stored.item
    if item.number is None:
        return []
    leaving: list[Operation] = [Delete(keys.context_ref(item.number))]
    parent = stored.model.item.number
    if parent is not None and item.kubeflow_name is not None:
        leaving.append(Delete(keys.context_child(parent, item.type, item.kubeflow_name)))
    workspace = stored.model.model.workspace
    leaving += context_items.own_external_id(workspace, item.type, item.external_id, item.number)
    return leaving


def _latest(model: StoredRegisteredModel, moves: Sequence[_Move]) -> dict[str, int]:
    """Returns for each stage that a version leaves or enters the greatest version number that the
    stage has afterwards; 0 for an empty stage."""
    gone = {move.item.model_version for move in moves}
    touched = {move.item.current_stage for move in moves} | {move.stage for move in moves}
    stages = sorted(touched - {DELETED})
    calls: list[Callable[[], int]] = [
        partial(_greatest, model.home, stage, gone) for stage in stages
    ]
    latest = dict(zip(stages, table.parallel(calls), strict=True))
    for move in moves:
        if move.stage != DELETED:
            latest[move.stage] = max(latest[move.stage], move.item.model_version)
    return latest


def _greatest(home: str, stage: str, without: set[int]) -> int:
    for item in table.query_all(
        home,
        index="LSI3",
        prefix=keys.lsi3_model_version_prefix(stage),
        descending=True,
        attributes=KEY,
        limit=len(without) + 1,
    ):
        version: int = keys.parse(*key_of_item(item)).fields["version"]
        if version not in without:
            return version
    return 0


def _in_stage(home: str, stage: str) -> list[Raw]:
    return list(table.query_all(home, index="LSI3", prefix=keys.lsi3_model_version_prefix(stage)))


def _change(move: _Move, now: int) -> Update:
    change = Update()
    document.touch(change)
    item = move.item
    change.set(ModelVersionItem.current_stage, move.stage)
    if move.stage == DELETED:
        change.remove(ModelVersionItem.lsi3sk)
        change.remove(ModelVersionItem.description)
        change.remove(ModelVersionItem.user_id)
        change.remove(ModelVersionItem.status_message)
        change.set(ModelVersionItem.source, "REDACTED-SOURCE-PATH")
        change.set(ModelVersionItem.run_id, "REDACTED-RUN-ID")
        change.set(ModelVersionItem.run_link, "REDACTED-RUN-LINK")
        for attribute in (
            ModelVersionItem.number,
            ModelVersionItem.kubeflow_name,
            ModelVersionItem.external_id,
            ModelVersionItem.gsi1pk,
            ModelVersionItem.gsi1sk,
            ModelVersionItem.gsi2pk,
            ModelVersionItem.gsi2sk,
            ModelVersionItem.gsi4pk,
            ModelVersionItem.gsi4sk,
        ):
            change.remove(attribute)
        change.set(ModelVersionItem.last_update_time, now)
    else:
        list_keys.set_update_time(change, ModelVersionItem, item.number, now)
        key = keys.lsi3_model_version(move.stage, item.model_version)
        change.set(ModelVersionItem.lsi3sk, key)
    change.require_equal(ModelVersionItem.version, item.version)
    return change
