"""Writes items of a workspace, and creates none in a workspace that is being deleted."""

from __future__ import annotations

from collections.abc import Sequence

from mlcore.db.failures import ConditionFailed
from mlcore.db.table import Operation, Put, TransactionFailed, table
from mlcore.ids import new_ulid
from mlcore.optimistic_retry import WriteConflict
from mlcore.repos.workspaces import workspaces


def write(operations: Sequence[Operation], *, creates_in: str | None = None) -> None:
    """Executes operations in one transaction; a put alone, without a check of the workspace, as a
    PutItem.

    Args:
        creates_in: the workspace in which the operations create something; None if they only
            change or delete items.

    Raises:
        WriteConflict: a condition of an operation failed.
        ResourceDoesNotExist: the workspace ``creates_in`` was deleted.
    """
    guard = [] if creates_in is None else workspaces.creation_guard(creates_in)
    guarded = [*guard, *operations]
    first = guarded[0]
    try:
        if len(guarded) == 1 and isinstance(first, Put):
            table.put(first.item, first.condition)
        else:
            table.transact(guarded, new_ulid())
    except ConditionFailed as failed:
        raise WriteConflict from failed
    except TransactionFailed as failed:
        if creates_in is not None and guard and 0 in failed.items:
            raise workspaces.missing(creates_in) from failed
        raise WriteConflict from failed
