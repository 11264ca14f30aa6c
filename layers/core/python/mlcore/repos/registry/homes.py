"""Home partitions of registered models.

A model's versions, aliases and links are in one partition, its *home*, also after a rename: mostly
the partition of the name under which the model was created. An item of this partition (``M#HOME``)
says which model owns it. This module finds the owner, and deletes what deleted models left in their
homes.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

from mlcore.db import keys
from mlcore.db.attribute_types import ItemAttribute
from mlcore.db.expression import ConditionExpression, Raw, Update
from mlcore.db.failures import ConditionFailed
from mlcore.db.table import Delete, key_of_item, table
from mlcore.models.base import KEY
from mlcore.models.registry import ModelHome, ModelVersion, RegisteredModel
from mlcore.optimistic_retry import WriteConflict, retry_on_conflict
from mlcore.repos.kubeflow_keys import context_items


def owner_of(home: str) -> ModelHome | None:
    """Returns the item that says which registered model owns a home (the partition of its
    versions); None if the home has no owner. One consistent GetItem."""
    item = table.get(keys.model_home(home))
    return None if item is None else ModelHome.of(item)


def owners_of(homes: Sequence[str]) -> list[ModelHome]:
    """Returns the items that :func:`owner_of` returns for several homes, without those that nobody
    owns. One BatchGetItem per hundred."""
    items = table.batch_get([keys.model_home(home) for home in homes])
    return [ModelHome.of(item) for item in items if item is not None]


def model_of(owner: ModelHome) -> Raw | None:
    """Returns the item of the registered model that owns a home (a partition with model versions);
    None if the model was deleted.

    One consistent GetItem. A rename moves the model's item and updates ``M#HOME`` in one
    transaction, so if the model is not where ``owner`` says, ``M#HOME`` is read again.

    Args:
        owner: the item ``M#HOME`` of the partition.
    """
    home = owner.PK
    current: ModelHome | None = owner

    def attempt() -> Raw | None:
        nonlocal current
        if current is None or current.incarnation != owner.incarnation:
            return None
        item = table.get(keys.model_at(current.model_pk))
        if item is not None and RegisteredModel.of(item).incarnation == owner.incarnation:
            return item
        before, current = current, owner_of(home)
        if current is not None and current.version == before.version:
            return None
        raise WriteConflict

    return retry_on_conflict("model", attempt)


def clear(home: str, incarnation: str, *, executed: bool) -> None:
    """Deletes everything in the home of a deleted registered model (the partition of its versions):
    aliases, versions, links from runs. Readers can no longer reach any of it, so the call may be
    interrupted and repeated.

    The caller that executed the deletion deletes the ownership item (``M#HOME``) last, so that the
    next model of this name can own the home. If another caller has cleared the home meanwhile, the
    ownership item stays: the two delete items by their keys and could meet those of the next model.

    Args:
        incarnation: the id of the deleted model among successive models of its name. If another
            model owns the partition, or this model is not deleted, nothing is deleted.
        executed: whether the caller executed the deletion of the model.
    """
    owner = owner_of(home)
    if owner is None or owner.incarnation != incarnation or model_of(owner) is not None:
        return
    if not (executed or _join_clearing(owner)):
        return
    context_items.delete(_deletions(home))
    if executed:
        with contextlib.suppress(ConditionFailed):  # another caller has joined
            unchanged = ConditionExpression()
            unchanged.require_equal(ModelHome.incarnation, incarnation)
            unchanged.require_absent(ModelHome.is_shared)
            table.delete(keys.model_home(home), unchanged)


def clear_remains(workspace: str, name: str) -> None:
    """Deletes what an interrupted deletion of a registered model left in the partition of a name;
    nothing if a model owns the partition. One consistent GetItem if nothing is left."""
    home = keys.registered_model(workspace, name).pk
    owner = owner_of(home)
    if owner is not None:
        clear(home, owner.incarnation, executed=False)


def _join_clearing(owner: ModelHome) -> bool:
    """Marks an ownership item as shared, so that the caller that executed the deletion does not
    delete it. Returns False if the item was changed or deleted since it was read."""
    joined = Update()
    joined.add(ModelHome.version, 1)
    joined.set(ModelHome.is_shared, True)
    joined.require_equal(ModelHome.incarnation, owner.incarnation)
    joined.require_equal(ModelHome.version, owner.version)
    try:
        table.update(keys.model_home(owner.PK), joined)
    except ConditionFailed:
        return False
    return True


def _deletions(home: str) -> Iterator[Delete]:
    kept = {keys.model_at(home).sk, keys.model_home(home).sk}
    attributes: list[ItemAttribute[Any]] = [
        *KEY,
        ModelVersion.run_id,
        ModelVersion.incarnation,
        ModelVersion.model_version,
        ModelVersion.number,
        ModelVersion.kubeflow_name,
        ModelVersion.external_id,
    ]
    for item in table.query_all(home, attributes=attributes):
        key = key_of_item(item)
        if key.sk in kept:
            continue
        version = ModelVersion.of(item)
        if version.run_id:
            number = version.model_version
            yield Delete(keys.run_model_version(version.run_id, version.incarnation, number))
        if version.number is not None:
            yield from context_items.deletions_of_version(version, version.number)
        yield Delete(key)
