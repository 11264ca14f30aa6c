"""Kubeflow's numbers: who has which, and where the entity is; owns references and counters.

A number is given out once. What was born in MLflow has none until somebody looks at it through
Kubeflow's API; then a condition lets the first one win, and all see the same.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, TypeVar

from mlcore.db import keys
from mlcore.db.expression import Condition, Raw, Update
from mlcore.db.keys import Key
from mlcore.db.table import Change, Check, Operation, Put, TransactionFailed, table
from mlcore.ids import new_ulid, now_ms
from mlcore.kubeflow.errors import missing
from mlcore.kubeflow.kinds import KINDS
from mlcore.models.base import Item
from mlcore.models.experiments import Experiment
from mlcore.models.kubeflow import ContextRef
from mlcore.models.platform import IdCounter
from mlcore.models.registry import ModelVersion, RegisteredModel
from mlcore.models.runs import Run
from mlcore.repos import document
from mlcore.repos.experiments import ids as experiment_ids

R = TypeVar("R")

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


def numbered(
    reads: Sequence[R],
    number_of: Callable[[R], int | None],
    give: Callable[[R, int], R | None],
) -> list[R]:
    """The same entities, each with a number; without those that are gone meanwhile. Those that have
    one cost nothing.

    Args:
        give: writes a number to an entity that has none, unless somebody else is first; answers it
            as it is then.
    """
    without = [place for place, read in enumerate(reads) if number_of(read) is None]
    given = take(CONTEXTS, len(without))
    calls = [
        partial(give, reads[place], number) for place, number in zip(without, given, strict=True)
    ]
    found: dict[int, R | None] = dict(enumerate(reads))
    found.update(zip(without, table.parallel(calls), strict=True))
    return [read for read in found.values() if read is not None]


TRANSACTION_OPERATIONS: Final = 100
"""Operations that one TransactWriteItems takes."""


def numbered_together(
    reads: Sequence[R],
    number_of: Callable[[R], int | None],
    operations: Callable[[R, int], Sequence[Operation]],
    read_again: Callable[[Sequence[R]], list[R | None]],
    give: Callable[[R, int], R | None],
) -> list[R]:
    """As :func:`numbered`, with many entities in one transaction and the transactions side by side.

    Args:
        operations: what gives an entity a number, all or nothing.
        read_again: reads entities again, in the same order; None for those that are gone.
        give: for an entity that its transaction left without a number, as for :func:`numbered`.
    """
    without = [place for place, read in enumerate(reads) if number_of(read) is None]
    given = take(CONTEXTS, len(without))
    _write_together(
        [operations(reads[place], number) for place, number in zip(without, given, strict=True)]
    )
    again = read_again([reads[place] for place in without])
    found: dict[int, R | None] = dict(enumerate(reads))
    found.update(zip(without, again, strict=True))
    left = [
        (place, partial(give, read, number))
        for place, number, read in zip(without, given, again, strict=True)
        if read is not None and number_of(read) is None
    ]
    results = table.parallel([call for _, call in left])
    found.update(zip((place for place, _ in left), results, strict=True))
    return [read for read in found.values() if read is not None]


def _write_together(groups: Sequence[Sequence[Operation]]) -> None:
    """Writes each group of operations or nothing of it, as many groups as fit in a transaction."""
    transactions: list[list[Sequence[Operation]]] = []
    room = 0
    for group in groups:
        if len(group) > room:
            transactions.append([])
            room = TRANSACTION_OPERATIONS
        transactions[-1].append(group)
        room -= len(group)
    table.parallel([partial(_write, transaction) for transaction in transactions])


def _write(groups: Sequence[Sequence[Operation]]) -> None:
    """One transaction; again without the groups of which a condition failed."""
    left = list(groups)
    while left:
        owners = [at for at, group in enumerate(left) for _ in group]
        try:
            table.transact([one for group in left for one in group], token=new_ulid())
        except TransactionFailed as failed:
            refused = {owners[position] for position in failed.items}
            left = [group for at, group in enumerate(left) if at not in refused]
        else:
            return


def claim(
    item: type[Experiment | ModelVersion | RegisteredModel | Run],
    number: int,
    listed: tuple[str, str] | None = None,
) -> Update:
    """What gives an item of MLflow's its number, if it has none.

    Args:
        listed: where GSI2 has a run by its number.
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


def give(place: Key, claimed: Update, refer: Put) -> Raw | None:
    """A number to an item, and where that is to the number; answers the item as it is then, whoever
    was first. One transaction, and one consistent GetItem."""
    with contextlib.suppress(TransactionFailed):  # somebody else was first, or it is gone
        table.transact([Change(place, claimed), refer], token=new_ulid())
    return table.get(place)


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
    renamed_at: int | None = None,
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
        renamed_at=renamed_at,
        updated_at=now_ms(),
        version=1,
    )
    return Put(item.serialize(), absent())


def absent() -> Condition:
    condition = Condition()
    condition.require_absent(Item.PK)
    return condition


def present(key: Key) -> Check:
    condition = Condition()
    condition.require_exists(Item.PK)
    return Check(key, condition)


def hold(reference: ContextRef) -> Change:
    """Fails when the entity is gone, and lets fail what deletes it by what it read before."""
    update = Update()
    update.add(ContextRef.version, 1)
    update.set(ContextRef.updated_at, now_ms())
    update.require_exists(ContextRef.PK)
    return Change(keys.context_ref(reference.number), update)


def unchanged(reference: ContextRef) -> Condition:
    """Nobody has held the entity since its reference was read."""
    condition = Condition()
    condition.require_equal(ContextRef.version, reference.version)
    return condition


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


def find_many(numbers: Sequence[int], kind: str, workspace: str) -> list[ContextRef]:
    """Those of a kind and workspace that there are, in order; as :func:`get_many`."""
    return [
        found
        for found in get_many(numbers)
        if found is not None and found.kind == kind and found.workspace == workspace
    ]
