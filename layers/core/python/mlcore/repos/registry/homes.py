"""What deleted models leave in their homes; clears it, and never touches what can be reached."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

from mlcore.db import keys
from mlcore.db.attributes import ItemAttribute
from mlcore.db.expression import Condition, Raw
from mlcore.db.failures import ConditionFailed
from mlcore.db.table import key_in, table
from mlcore.models.base import KEY
from mlcore.models.registry import ModelHome, ModelVersion, RegisteredModel
from mlcore.repos.kubeflow import contexts
from mlcore.settle import Conflict, settle

CLEARED_TOGETHER = 1_000


def owner_of(home: str) -> ModelHome | None:
    """Whose partition it is; one consistent GetItem."""
    item = table.get(keys.model_home(home))
    return None if item is None else ModelHome.of(item)


def model_of(owner: ModelHome) -> Raw | None:
    """The item of the model that owns a partition; None if it was deleted.

    One consistent GetItem. A rename moves the model and writes its ``M#HOME`` in one transaction:
    where the model is not at the place that was read, the owner is read again.
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
        raise Conflict

    return settle("model", attempt)


def clear(home: str, incarnation: str) -> None:
    """Removes all of a deleted model: aliases, versions, the links of their runs, at last the claim
    to the partition. Nobody reaches any of it, so it may stop anywhere and be done again."""
    owner = owner_of(home)
    if owner is None or owner.incarnation != incarnation or model_of(owner) is not None:
        return
    left = _children(home)
    while chunk := list(islice(left, CLEARED_TOGETHER)):
        table.batch_write(deletes=chunk)
    mine = Condition()
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
        place = key_in(item)
        if place.sk in kept:
            continue
        version = ModelVersion.of(item)
        if version.run_id:
            yield keys.run_model_version(version.run_id, version.incarnation, version.model_version)
        if version.number is not None:
            yield from contexts.of_version(version, version.number)
        yield place
