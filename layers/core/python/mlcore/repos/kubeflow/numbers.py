"""Kubeflow's numbers (integer ids): assigns them, and keeps for each a *reference*, an item that
maps the number to the entity's item.

A number is used once. An entity that MLflow created gets its number when Kubeflow's API first shows
it; a condition of the write makes sure that concurrent requests agree on the number.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, Protocol, TypeVar

from mlcore.db import item_size, keys
from mlcore.db.expression import ConditionExpression, Raw, Update
from mlcore.db.keys import Key
from mlcore.db.table import Check, ItemUpdate, Operation, Put, TransactionFailed, table
from mlcore.entities.workspaces import DEFAULT_WORKSPACE
from mlcore.ids import new_ulid, now_ms
from mlcore.kubeflow.errors import missing_id
from mlcore.kubeflow.kinds import KINDS
from mlcore.models.base import Item
from mlcore.models.counters import IdCounter
from mlcore.models.experiments import Experiment
from mlcore.models.kubeflow import ContextRef
from mlcore.models.registry import ModelVersion, RegisteredModel
from mlcore.models.runs import Run
from mlcore.repos import document
from mlcore.repos.experiments import ids as experiment_ids
from mlcore.repos.kubeflow import grouped_writes
from mlcore.repos.kubeflow.grouped_writes import Group

R = TypeVar("R")


class _Read(Protocol):
    @property
    def item(self) -> ModelVersion | RegisteredModel | Run: ...


N = TypeVar("N", bound=_Read)

CONTEXTS: Final = "contexts"
ARTIFACTS: Final = "artifacts"
EXECUTIONS: Final = "executions"


def take(space: str, count: int = 1) -> list[int]:
    """Returns the next ``count`` unused Kubeflow numbers (integer ids); one UpdateItem.

    Args:
        space: which counter to use: that of contexts, artifacts or executions.
    """
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


def numbered(
    reads: Sequence[R],
    number_of: Callable[[R], int | None],
    give: Callable[[R, int], R | None],
) -> list[R]:
    """Returns the entities after assigning a Kubeflow number to each that has none; leaves out
    those that were deleted meanwhile.

    Args:
        number_of: returns the number of an entity; None if it has none.
        give: writes a number to an entity, unless another request was first; returns the entity
            afterwards.
    """
    without = [index for index, read in enumerate(reads) if number_of(read) is None]
    given = take(CONTEXTS, len(without))
    calls = [
        partial(give, reads[index], number) for index, number in zip(without, given, strict=True)
    ]
    by_position: dict[int, R | None] = dict(enumerate(reads))
    by_position.update(zip(without, table.parallel(calls), strict=True))
    return [read for read in by_position.values() if read is not None]


def numbered_together(
    reads: Sequence[N],
    item_of: Callable[[N], Raw],
    operations: Callable[[N, int], Sequence[Operation]],
    read_again: Callable[[Sequence[N]], list[N | None]],
    give: Callable[[N, int], N | None],
) -> list[N]:
    """Returns the entities after assigning a Kubeflow number to each that has none, as
    :func:`numbered` does, but with many entities per transaction and transactions in parallel.

    Args:
        item_of: returns the item of an entity as it was read, which the operations update.
        operations: returns the operations that give an entity a number.
        read_again: reads entities again, in the same order; None for deleted ones.
        give: as in :func:`numbered`, for an entity that its transaction left without a number.
    """
    without = [index for index, read in enumerate(reads) if read.item.number is None]
    given = take(CONTEXTS, len(without))
    grouped_writes.execute(
        [
            Group(operations(reads[index], number), item_size.estimate(item_of(reads[index])))
            for index, number in zip(without, given, strict=True)
        ]
    )
    again = read_again([reads[index] for index in without])
    by_position: dict[int, N | None] = dict(enumerate(reads))
    by_position.update(zip(without, again, strict=True))
    unnumbered = [
        (index, partial(give, read, number))
        for index, number, read in zip(without, given, again, strict=True)
        if read is not None and read.item.number is None
    ]
    results = table.parallel([call for _, call in unnumbered])
    by_position.update(zip((index for index, _ in unnumbered), results, strict=True))
    return [read for read in by_position.values() if read is not None]


def claim(
    item: type[Experiment | ModelVersion | RegisteredModel | Run],
    number: int,
    listed: tuple[str, str] | None = None,
) -> Update:
    """Returns the update that gives an MLflow item its Kubeflow number; it fails if the item has
    one already.

    Args:
        item: the model of the item.
        listed: for a run, its partition and sort key in GSI2, which lists runs by number.
    """
    update = Update()
    document.touch(update)
    update.set(item.number, number)
    if listed is not None:
        pk, sk = listed
        update.set(item.gsi2pk, pk)
        update.set(item.gsi2sk, sk)
    update.require_absent(item.number)
    return update


def give(key: Key, operations: Sequence[Operation]) -> Raw | None:
    """Writes a Kubeflow number to an MLflow item, and the reference that maps the number to the
    item, unless another request has given the item a number. Returns the item afterwards, None if
    it was deleted. One transaction and one consistent GetItem.

    Args:
        key: the key of the MLflow item.
        operations: the update by :func:`claim`, the result of :func:`reference`, and checks that
            the item is still in the workspace of the reference.
    """
    with contextlib.suppress(TransactionFailed):  # another request was first, or it was deleted
        table.transact(operations, token=new_ulid())
    return table.get(key)


def stays(reference: ContextRef) -> list[Check]:
    """Returns the check, for a transaction, that an entity has not moved to another workspace since
    its reference was read, as a list; an empty list in the default workspace, which nothing
    leaves."""
    if reference.workspace == DEFAULT_WORKSPACE:
        return []
    here = ConditionExpression()
    here.require_equal(ContextRef.workspace, reference.workspace)
    return [Check(keys.context_ref(reference.number), here)]


def has_stayed(reference: ContextRef) -> bool:
    """Whether an entity still exists in the workspace of its reference. One consistent GetItem."""
    return of_kind(raw(reference.number), reference.kind, reference.workspace) is not None


def reference(
    number: int,
    kind: str,
    workspace: str,
    item_key: Key,
    *,
    parent: int | None = None,
    incarnation: str | None = None,
    home: str | None = None,
    name: str | None = None,
    renamed_at: int | None = None,
) -> Put:
    """Returns the put of a reference: the item that maps a Kubeflow number to an MLflow item.

    Args:
        kind: the kind of the entity.
        item_key: the key of the MLflow item.
        parent: the number of the entity's parent, such as a version's model.
        incarnation: of a model or version, the model's id among successive models of its name.
        home: of a model or version, the partition of the model's versions.
        name: of a model, its current name.
        renamed_at: when the model was renamed, in milliseconds since the epoch.
    """
    key = keys.context_ref(number)
    item = ContextRef(
        PK=key.pk,
        SK=key.sk,
        number=number,
        kind=kind,
        workspace=workspace,
        item_pk=item_key.pk,
        item_sk=item_key.sk,
        parent=parent,
        incarnation=incarnation,
        home=home,
        name=name,
        renamed_at=renamed_at,
        updated_at=now_ms(),
        version=1,
    )
    return Put(item.serialize(), absent())


def absent() -> ConditionExpression:
    condition = ConditionExpression()
    condition.require_absent(Item.PK)
    return condition


def hold(reference: ContextRef) -> ItemUpdate:
    """Returns an update, for a transaction, of a reference (the item that maps a Kubeflow number to
    an MLflow item). The update fails if the entity with this number was deleted, and it makes a
    concurrent deletion of the entity fail."""
    update = Update()
    update.add(ContextRef.version, 1)
    update.set(ContextRef.updated_at, now_ms())
    update.require_exists(ContextRef.PK)
    return ItemUpdate(keys.context_ref(reference.number), update)


def unchanged(reference: ContextRef) -> ConditionExpression:
    """Returns the condition that a reference (the item that maps a Kubeflow number to an MLflow
    item) was not updated, for example by :func:`hold`, since it was read."""
    condition = ConditionExpression()
    condition.require_equal(ContextRef.version, reference.version)
    return condition


def key_of(reference: ContextRef) -> Key:
    return Key(reference.item_pk, reference.item_sk)


def of_kind(item: Raw | None, kind: str, workspace: str) -> ContextRef | None:
    """Returns the reference (Kubeflow's number → MLflow's item) that an item holds; None if there
    is no item, or the reference is for an entity of another kind or workspace."""
    if item is None:
        return None
    reference = ContextRef.of(item)
    return reference if reference.kind == kind and reference.workspace == workspace else None


def raw(number: int) -> Raw | None:
    """Returns the item of the reference that maps a Kubeflow number to an MLflow item; None if
    there is none. One consistent GetItem."""
    return table.get(keys.context_ref(number))


def get(number: int, kind: str, workspace: str) -> ContextRef:
    """Returns the reference that maps a Kubeflow number to an MLflow item; one consistent GetItem.
    Raises ResourceDoesNotExist if the workspace has no such entity of the kind."""
    reference = of_kind(raw(number), kind, workspace)
    if reference is None:
        raise missing_id(KINDS[kind].words, number)
    return reference


def get_many(numbers: Sequence[int]) -> list[ContextRef | None]:
    """Returns the references (number → MLflow item) of Kubeflow numbers, of any kind and workspace,
    None for missing ones; one BatchGetItem per hundred."""
    items = table.batch_get([keys.context_ref(number) for number in numbers])
    return [None if item is None else ContextRef.of(item) for item in items]


def find_many(numbers: Sequence[int], kind: str, workspace: str) -> list[ContextRef]:
    """Returns the references (Kubeflow number → MLflow item) of those numbers that belong to
    entities of a kind and workspace, in the order of ``numbers``; one BatchGetItem per hundred."""
    return [
        reference
        for reference in get_many(numbers)
        if reference is not None and reference.kind == kind and reference.workspace == workspace
    ]
