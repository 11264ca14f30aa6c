"""Transactions whose parts say what it means when their condition does not hold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from mlcore.db import keys
from mlcore.db.expression import Condition
from mlcore.db.table import Delete, Operation, Put, TransactionFailed, table
from mlcore.errors import MlflowError
from mlcore.ids import new_ulid, now_ms
from mlcore.kubeflow.errors import external_id_taken
from mlcore.kubeflow.kinds import Kind
from mlcore.models.kubeflow import ContextChild, ExternalId
from mlcore.repos.kubeflow.numbers import absent
from mlcore.settle import Conflict


class Step(NamedTuple):
    """An operation, and what its failure means; without an error somebody else was first, and all
    is to be decided anew."""

    operation: Operation
    error: MlflowError | None = None


def execute(steps: Sequence[Step]) -> None:
    """One transaction. Raises the first error of a step whose condition does not hold, and Conflict
    for a step without one."""
    try:
        table.transact([step.operation for step in steps], token=new_ulid())
    except TransactionFailed as failed:
        raise meaning(steps, failed) from failed


def meaning(steps: Sequence[Step], failed: TransactionFailed) -> Exception:
    errors = (steps[position].error for position in sorted(failed.items))
    return next((error for error in errors if error is not None), Conflict())


def meaning_at(steps: Sequence[Step], position: int) -> Exception:
    """What it means that the operation at a position of a transaction was refused, which begins
    with these steps; of what is behind them somebody else was first."""
    error = steps[position].error if position < len(steps) else None
    return error or Conflict()


def child(
    parent: int, kind: Kind, name: str, number: int, place: keys.Key | None, error: MlflowError
) -> Step:
    """Takes a name among the children of a context."""
    key = keys.context_child(parent, kind.name, name)
    item = ContextChild(
        PK=key.pk,
        SK=key.sk,
        number=number,
        kind=kind.name,
        name=name,
        item_pk=None if place is None else place.pk,
        item_sk=None if place is None else place.sk,
        updated_at=now_ms(),
        version=1,
    )
    return Step(Put(item.serialize(), absent()), error)


def external_id(
    workspace: str, kind: Kind, number: int, before: str | None, after: str | None
) -> list[Step]:
    """Takes an external id, and frees the one before."""
    steps = []
    if before == after:
        return []
    if after:
        key = keys.external_id(workspace, kind.name, after)
        item = ExternalId(PK=key.pk, SK=key.sk, number=number, updated_at=now_ms(), version=1)
        taken = external_id_taken(kind.title, after)
        steps.append(Step(Put(item.serialize(), _mine(number)), taken))
    if before:
        key = keys.external_id(workspace, kind.name, before)
        steps.append(Step(Delete(key, _mine(number))))
    return steps


def _mine(number: int) -> Condition:
    condition = Condition()
    condition.require_absent_or_equal(ExternalId.number, number)
    return condition


def find_external(workspace: str, kind: Kind, external: str) -> int | None:
    """The number of the entity that has an external id; one consistent GetItem."""
    item = table.get(keys.external_id(workspace, kind.name, external))
    return None if item is None else ExternalId.of(item).number


def find_child(parent: int, kind: Kind, name: str) -> ContextChild | None:
    """One consistent GetItem."""
    item = table.get(keys.context_child(parent, kind.name, name))
    return None if item is None else ContextChild.of(item)
