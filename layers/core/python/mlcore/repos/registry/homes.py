"""Home partitions of registered models.

A model's versions, aliases and links are in one partition, its *home*, also after a rename: mostly
the partition of the name under which the model was created. An item of this partition (``M#HOME``)
says which model owns it. This module finds the owner, and deletes what deleted models left in their
homes.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

from mlcore.db import keys
from mlcore.db.attribute_types import ItemAttribute
from mlcore.db.expression import ConditionExpression, Raw
from mlcore.db.failures import ConditionFailed
from mlcore.db.table import key_of_item, table
from mlcore.models.base import KEY
from mlcore.models.registry import ModelHome, ModelVersion, RegisteredModel
from mlcore.optimistic_retry import WriteConflict, retry_on_conflict
from mlcore.repos.kubeflow_keys import context_items

CLEARED_TOGETHER = 1_000


def owner_of(home: str) -> ModelHome | None:
    """Returns the item that says which model owns a home (the partition of a model's versions);
    None if none does. One consistent GetItem."""
    item = table.get(keys.model_home(home))
    return None if item is None else ModelHome.of(item)


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


def clear(home: str, incarnation: str) -> None:
    """Deletes everything in the home of a deleted registered model (the partition of its versions):
    aliases, versions, links from runs, and last the ownership item. Readers can no longer reach any
    of it, so the call may be interrupted and repeated.

    Args:
        incarnation: the id of the deleted model among successive models of its name. If another
            model owns the partition, or this model is not deleted, nothing is deleted.
    """
    owner = owner_of(home)
    if owner is None or owner.incarnation != incarnation or model_of(owner) is not None:
        return
    children = _children(home)
    while chunk := list(islice(children, CLEARED_TOGETHER)):
        table.batch_write(deletes=chunk)
    mine = ConditionExpression()
    mine.require_equal(ModelHome.incarnation, incarnation)
    try:
        table.delete(keys.model_home(home), mine)
    except ConditionFailed:
        return  # another has done the same


def _children(home: str) -> Iterator[keys.Key]:
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
            yield keys.run_model_version(version.run_id, version.incarnation, version.model_version)
        if version.number is not None:
            yield from context_items.keys_of_version(version, version.number)
        yield key
