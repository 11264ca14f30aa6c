"""DynamoDB transactions whose operations carry the error to raise if their condition fails."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from mlcore.db import keys
from mlcore.db.expression import ConditionExpression
from mlcore.db.table import Delete, Operation, Put, TransactionFailed, table
from mlcore.errors import MlflowError
from mlcore.ids import new_ulid, now_ms
from mlcore.kubeflow.errors import ExternalIdTaken
from mlcore.kubeflow.kinds import EntityKind
from mlcore.models.kubeflow import ContextChild, ExternalId
from mlcore.optimistic_retry import WriteConflict
from mlcore.repos.kubeflow.numbers import absent
from mlcore.repos.workspaces import workspaces


class TransactionStep(NamedTuple):
    """An operation of a transaction, and the error to raise if its condition does not hold. If the
    error is None, a failed condition means that another writer was first, and the caller
    retries."""

    operation: Operation
    error: MlflowError | None = None


def execute(steps: Sequence[TransactionStep]) -> None:
    """Executes the operations of ``steps`` in one DynamoDB transaction. If conditions do not hold,
    raises the error of the first failed step that has one; WriteConflict if no failed step has."""
    try:
        table.transact([step.operation for step in steps], token=new_ulid())
    except TransactionFailed as failed:
        raise error_of(steps, failed) from failed


def error_of(steps: Sequence[TransactionStep], failed: TransactionFailed) -> Exception:
    """Returns the error to raise for a failed DynamoDB transaction of ``steps``: the error of the
    first failed step that has one; WriteConflict if none has."""
    errors = (steps[position].error for position in sorted(failed.items))
    return next((error for error in errors if error is not None), WriteConflict())


def error_at(steps: Sequence[TransactionStep], position: int) -> Exception:
    """Returns the error to raise if the condition of the operation at ``position`` of a transaction
    did not hold. The transaction begins with ``steps``; for later positions, and for a step without
    an error, returns WriteConflict."""
    error = steps[position].error if position < len(steps) else None
    return error or WriteConflict()


def enter(workspace: str) -> list[TransactionStep]:
    """Returns the step that fails if the workspace, in which the transaction creates something, is
    deleted meanwhile; none for the default workspace."""
    gone = workspaces.missing(workspace)
    return [TransactionStep(guard, gone) for guard in workspaces.creation_guard(workspace)]


def reserve_child_name(
    parent: int,
    kind: EntityKind,
    name: str,
    number: int,
    item_key: keys.Key | None,
    error: MlflowError,
) -> TransactionStep:
    """Returns the transaction step that reserves a name among the children of a Kubeflow context
    (such as the versions of a model), so that no other child can take it.

    Args:
        parent: the context's number.
        number: the child's number.
        item_key: the key of the child's item; None if it follows from the number.
        error: the error to raise if the name is taken.
    """
    key = keys.context_child(parent, kind.name, name)
    item = ContextChild(
        PK=key.pk,
        SK=key.sk,
        number=number,
        kind=kind.name,
        name=name,
        item_pk=None if item_key is None else item_key.pk,
        item_sk=None if item_key is None else item_key.sk,
        updated_at=now_ms(),
        version=1,
    )
    return TransactionStep(Put(item.serialize(), absent()), error)


def change_external_id(
    workspace: str, kind: EntityKind, number: int, before: str | None, after: str | None
) -> list[TransactionStep]:
    """Returns the transaction steps that reserve a Kubeflow entity's new external id and free the
    former one; none if the external id stays the same.

    Args:
        number: the entity's Kubeflow number.
        before: the former external id; None for none.
        after: the new external id; None for none.
    """
    steps = []
    if before == after:
        return []
    if after:
        key = keys.external_id(workspace, kind.name, after)
        item = ExternalId(PK=key.pk, SK=key.sk, number=number, updated_at=now_ms(), version=1)
        taken = ExternalIdTaken(kind.name, kind.title, after)
        steps.append(TransactionStep(Put(item.serialize(), _mine(number)), taken))
    if before:
        key = keys.external_id(workspace, kind.name, before)
        steps.append(TransactionStep(Delete(key, _mine(number))))
    return steps


def _mine(number: int) -> ConditionExpression:
    condition = ConditionExpression()
    condition.require_absent_or_equal(ExternalId.number, number)
    return condition


def find_external(workspace: str, kind: EntityKind, external: str) -> int | None:
    """Returns the Kubeflow number of the entity with an external id; None if there is none. One
    consistent GetItem."""
    item = table.get(keys.external_id(workspace, kind.name, external))
    return None if item is None else ExternalId.of(item).number


def find_child(parent: int, kind: EntityKind, name: str) -> ContextChild | None:
    """Returns the item that lists a child of a Kubeflow context (such as a version of a model)
    under its name; None if no child of the kind has the name. One consistent GetItem.

    Args:
        parent: the context's number.
    """
    item = table.get(keys.context_child(parent, kind.name, name))
    return None if item is None else ContextChild.of(item)
