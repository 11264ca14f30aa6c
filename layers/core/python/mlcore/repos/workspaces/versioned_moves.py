"""Moves an entity whose item lists its versions (an MCP server, a skill) to another workspace.

One transaction moves the entity's own item, and with it the items of its versions if they fit. Of
an entity with more versions, these are copied first; the copies are ignored until the entity is
there. After that transaction, versions that are left in the old workspace are deleted; what
requests have changed in them since they were copied gets into the copies first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from mlcore.db import item_size
from mlcore.db.expression import ConditionExpression, Raw, Update
from mlcore.db.keys import Key
from mlcore.db.table import (
    Check,
    Delete,
    ItemUpdate,
    Operation,
    Put,
    TransactionFailed,
    key_of_item,
    table,
)
from mlcore.ids import new_ulid, now_ms
from mlcore.models.base import Item
from mlcore.optimistic_retry import WriteConflict

if TYPE_CHECKING:  # webhooks move without these
    from mlcore.entities.mcp_servers import MCPServer
    from mlcore.entities.skills import Skill
    from mlcore.models.mcp_servers import MCPServer as ServerItem
    from mlcore.models.mcp_servers import MCPServerVersion as ServerVersionItem
    from mlcore.models.skills import Skill as SkillItem
    from mlcore.models.skills import SkillVersion as SkillVersionItem

E = TypeVar("E", "MCPServer", "Skill")


class VersionedMove(NamedTuple):
    """The writes that move an entity with its versions."""

    copy: Raw
    """The entity's own item in the other workspace."""
    copies: Sequence[Raw]
    """The items of its versions there."""
    deletion: Delete
    """Deletes the entity's own item if it is as it was read."""
    deletions: Sequence[Delete]
    """Delete the items of its versions, each if it is as it was read."""
    mark: ItemUpdate
    """Marks the entity's own item as moved, if it is as it was read: in place of ``deletion`` if
    the transaction has no room for all of ``deletions``."""


def is_copy(other: E, entity: E) -> bool:
    """Whether an entity in another workspace may be the copy of ``entity`` that release 0.1.0 made,
    changed or not: it lacks nothing that ``entity`` got since. A repeated import creates entities
    with equal times, too."""
    return (
        other.created_at == entity.created_at
        and other.last_updated_at >= entity.last_updated_at
        and other.versions.keys() >= entity.versions.keys()
    )


def mark(key: Key, entity: MCPServer | Skill, item: type[ServerItem | SkillItem]) -> ItemUpdate:
    """Returns the update that marks an entity's own item as moved, if it is as it was read.

    Args:
        item: the model of the item.
    """
    change = Update()
    change.set(item.is_moved, True)
    change.add(item.version, 1)
    change.require_equal(item.version, entity.revision)
    change.require_equal(item.created_at, entity.created_at)
    return ItemUpdate(key, change)


def item_at(key: Key, item: Raw) -> Raw:
    """Returns an item as it is to be stored under another key, from now on."""
    changed = ((Item.PK, key.pk), (Item.SK, key.sk), (Item.updated_at, now_ms()))
    return item | {attribute.attr_name: attribute.raw(value) for attribute, value in changed}


def delete_left(
    items: Iterable[Raw],
    copy_of: Callable[[Raw], Raw],
    is_copy_of: Callable[[Raw, Raw], bool],
    model: type[ServerVersionItem | SkillVersionItem],
) -> None:
    """Deletes the items of versions that are left in the old workspace after the entity was marked
    as moved. A version that a request has changed since it was copied replaces its copy, unless
    the copy was changed as often. May be killed anywhere and repeated.

    Args:
        copy_of: returns the item of a version as it is to be stored in the other workspace.
        is_copy_of: whether an item that was read from there is a copy of a version, and not of a
            version that was created after the copy had been deleted.
        model: the model of the items.

    Raises:
        WriteConflict: a version or its copy was changed since it was read.
    """
    most, most_bytes = item_size.TRANSACTION_OPERATIONS // 2, item_size.TRANSACTION_BYTES // 2
    for batch in item_size.batches(items, most, most_bytes):
        copies = list(map(copy_of, batch))
        operations: list[Operation] = []
        for item, copy, there in zip(
            batch, copies, table.batch_get(list(map(key_of_item, copies))), strict=True
        ):
            operations.append(Delete(key_of_item(item), _unchanged(item, model)))
            if (
                there is not None
                and model.of(item).version > model.of(there).version
                and is_copy_of(there, item)
            ):
                operations.append(Put(copy, _unchanged(there, model)))
        try:
            table.transact(operations, new_ulid())
        except TransactionFailed as failed:
            raise WriteConflict from failed


def _unchanged(item: Raw, model: type[ServerVersionItem | SkillVersionItem]) -> ConditionExpression:
    """Returns the condition that a version's item was neither written nor deleted and created again
    since it was read."""
    version, condition = model.of(item), ConditionExpression()
    condition.require_equal(model.version, version.version)
    condition.require_equal(model.last_updated_at, version.last_updated_at)
    return condition


def execute(move: VersionedMove, is_copy_of: Callable[[Raw], bool]) -> bool:
    """Moves an entity with its versions. Returns whether items of it are left in the old workspace,
    which are to be deleted: it has very many versions, or release 0.1.0 has copied it before.

    A change that a request makes at the same time is not lost if :func:`delete_left` deletes the
    versions that are left.

    Args:
        is_copy_of: whether an item of the other workspace is a copy of this entity.

    Raises:
        WriteConflict: the entity or a version was changed since it was read, or the other workspace
            has another entity of this name.
    """
    absent = ConditionExpression()
    absent.require_absent(Item.PK)
    copies = list(move.copies)
    fits = len(copies) + len(move.deletions) + 2 <= item_size.TRANSACTION_OPERATIONS
    room = item_size.TRANSACTION_BYTES - item_size.estimate(move.copy)
    try:
        if not fits or sum(map(item_size.estimate, copies)) > room:
            for batch in item_size.batches(
                copies, item_size.TRANSACTION_OPERATIONS - 1, item_size.TRANSACTION_BYTES
            ):
                check = Check(key_of_item(move.copy), absent)
                table.transact([check, *map(Put, batch)], new_ulid())
            copies = []
        deletions = move.deletions[: item_size.TRANSACTION_OPERATIONS - 2 - len(copies)]
        is_left = len(deletions) < len(move.deletions)
        source: Operation = move.mark if is_left else move.deletion
        table.transact([Put(move.copy, absent), source, *deletions, *map(Put, copies)], new_ulid())
    except TransactionFailed as failed:
        there = failed.items.get(0)
        if there is not None and is_copy_of(there):
            return True
        raise WriteConflict from failed
    return is_left
