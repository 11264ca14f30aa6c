"""Kubeflow's numbers: who has which, and where the entity is; owns references and counters.

A number is given out once. What was born in MLflow has none until somebody looks at it through
Kubeflow's API; then a condition lets the first one win, and all see the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from mlcore.db import keys
from mlcore.db.expression import Condition, Raw, Update
from mlcore.db.keys import Key
from mlcore.db.table import Check, Put, table
from mlcore.ids import now_ms
from mlcore.kubeflow.errors import missing
from mlcore.kubeflow.kinds import KINDS
from mlcore.models.base import Item
from mlcore.models.kubeflow import ContextRef
from mlcore.models.platform import IdCounter
from mlcore.repos.experiments import ids as experiment_ids

CONTEXTS: Final = "contexts"
ARTIFACTS: Final = "artifacts"
EXECUTIONS: Final = "executions"


def take(space: str, count: int = 1) -> list[int]:
    """The next numbers of contexts, artifacts or executions; one UpdateItem."""
    if not count:
        return []
    if space == CONTEXTS:
        return experiment_ids.next_numbers(count)
    attribute = IdCounter.artifacts if space == ARTIFACTS else IdCounter.executions
    update = Update()
    update.set(IdCounter.type, keys.ID_COUNTER.name)
    update.set(IdCounter.updated_at, now_ms())
    update.set_once(IdCounter.since, now_ms())
    update.add(IdCounter.version, 1)
    update.add(attribute, count)
    item = IdCounter.of(table.update(keys.id_counter(), update, returning=True))
    last = (item.artifacts if space == ARTIFACTS else item.executions) or 0
    return list(range(last - count + 1, last + 1))


def reference(
    number: int,
    kind: str,
    workspace: str,
    place: Key,
    *,
    parent: int | None = None,
    incarnation: str | None = None,
    home: str | None = None,
    name: str | None = None,
) -> Put:
    """What belongs into the transaction that gives an entity of MLflow's its number."""
    key = keys.context_ref(number)
    item = ContextRef(
        PK=key.pk,
        SK=key.sk,
        number=number,
        kind=kind,
        workspace=workspace,
        item_pk=place.pk,
        item_sk=place.sk,
        parent=parent,
        incarnation=incarnation,
        home=home,
        name=name,
        updated_at=now_ms(),
        version=1,
    )
    return Put(dict(item.serialize()), absent())


def absent() -> Condition:
    condition = Condition()
    condition.require_absent(Item.PK)
    return condition


def present(key: Key) -> Check:
    condition = Condition()
    condition.require_exists(Item.PK)
    return Check(key, condition)


def place_of(reference: ContextRef) -> Key:
    return Key(reference.item_pk, reference.item_sk)


def of_kind(item: Raw | None, kind: str, workspace: str) -> ContextRef | None:
    """A reference if it is of a kind, and of the workspace."""
    if item is None:
        return None
    found = ContextRef.of(item)
    return found if found.kind == kind and found.workspace == workspace else None


def raw(number: int) -> Raw | None:
    """The reference's item; one consistent GetItem."""
    return table.get(keys.context_ref(number))


def get(number: int, kind: str, workspace: str) -> ContextRef:
    """One consistent GetItem. Raises ResourceDoesNotExist."""
    found = of_kind(raw(number), kind, workspace)
    if found is None:
        raise missing(KINDS[kind].words, number)
    return found


def get_many(numbers: Sequence[int]) -> list[ContextRef | None]:
    """Of any kind and workspace; one BatchGetItem for each hundred."""
    items = table.batch_get([keys.context_ref(number) for number in numbers])
    return [None if item is None else ContextRef.of(item) for item in items]
