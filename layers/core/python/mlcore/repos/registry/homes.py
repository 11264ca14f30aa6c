"""What deleted models leave in their homes; clears it, and never touches what can be reached."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

from mlcore.db import keys
from mlcore.db.attributes import ItemAttribute
from mlcore.db.expression import Condition
from mlcore.db.failures import ConditionFailed
from mlcore.db.table import key_in, table
from mlcore.models.base import KEY
from mlcore.models.registry import ModelHome, ModelVersion, RegisteredModel
from mlcore.repos.kubeflow import contexts

CLEARED_TOGETHER = 1_000


def clear(home: str, incarnation: str) -> None:
    """Removes all of a deleted model: aliases, versions, the links of their runs, at last the claim
    to the partition. Nobody reaches any of it, so it may stop anywhere and be done again."""
    item = table.get(keys.model_home(home))
    if item is None:
        return
    owner = ModelHome.of(item)
    if owner.incarnation != incarnation:
        return
    model = table.get(keys.model_at(owner.model_pk))
    if model is not None and RegisteredModel.of(model).incarnation == incarnation:
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
