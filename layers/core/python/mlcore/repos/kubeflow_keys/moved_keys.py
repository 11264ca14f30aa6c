"""What names the workspace of a Kubeflow entity besides its own item, for a move to another
workspace: its external id, its reference (the item that maps its number to MLflow's item) and the
partitions of the indexes that list it."""

from __future__ import annotations

from typing import NamedTuple

from mlcore.db import keys
from mlcore.db.attribute_types import TextAttribute
from mlcore.db.expression import ConditionExpression, Raw, Update
from mlcore.db.keys import Key
from mlcore.db.table import Operation, Put, table
from mlcore.ids import now_ms
from mlcore.models.base import IndexedItem
from mlcore.models.kubeflow import ContextRef, ExternalId
from mlcore.repos.kubeflow_keys import context_items


class ExternalIdMove(NamedTuple):
    """How the external id of an entity moves with the entity."""

    is_kept: bool
    """False if another entity has the external id in the other workspace: then the moved entity
    must lose it."""
    operations: list[Operation]
    """Move its lock, in the transaction that moves the entity; they fail if another entity takes
    the external id meanwhile."""


def external_id_move(
    workspace: str, target: str, kind: str, external_id: str | None, number: int | None
) -> ExternalIdMove:
    """Returns how an entity's external id moves to another workspace. Two consistent GetItem; none
    for an entity without external id.

    Args:
        number: the entity's Kubeflow number; None if it has none.
    """
    if number is None or not external_id:
        return ExternalIdMove(True, [])
    operations: list[Operation] = [
        *context_items.own_external_id(workspace, kind, external_id, number)
    ]
    key = keys.external_id(target, kind, external_id)
    there = table.get(key)
    if there is not None and ExternalId.of(there).number != number:
        return ExternalIdMove(False, operations)
    lock = ExternalId(PK=key.pk, SK=key.sk, number=number, updated_at=now_ms(), version=1)
    free = ConditionExpression()
    free.require_absent_or_equal(ExternalId.number, number)
    return ExternalIdMove(True, [*operations, Put(lock.serialize(), free)])


def require_external_id(
    update: Update, attribute: TextAttribute[str | None], external_id: str | None
) -> None:
    """Adds to the update that moves an entity the condition that its external id is the one whose
    lock is moved (:func:`external_id_move`)."""
    if external_id is None:
        update.require_absent(attribute)
    else:
        update.require_equal(attribute, external_id)


def reference_update(workspace: str, target: str, item_key: Key | None = None) -> Update:
    """Returns the update of a reference (the item that maps a Kubeflow number to MLflow's item)
    whose entity moves to another workspace.

    Args:
        item_key: the new key of MLflow's item; None if it stays.
    """
    update = Update()
    update.add(ContextRef.version, 1)
    update.set(ContextRef.updated_at, now_ms())
    update.set(ContextRef.workspace, target)
    if item_key is not None:
        update.set(ContextRef.item_pk, item_key.pk)
        update.set(ContextRef.item_sk, item_key.sk)
    update.require_equal(ContextRef.workspace, workspace)
    return update


def set_list_partitions(update: Update, item: Raw, workspace: str, target: str, kind: str) -> None:
    """Adds to ``update``, by which a numbered item moves to another workspace, the partitions of
    the indexes that list it there.

    Args:
        kind: the kind whose list has the item.
    """
    for attribute, pk in list_partitions(item, workspace, target, kind):
        update.set(attribute, pk)


def list_partitions(
    item: Raw, workspace: str, target: str, kind: str
) -> list[tuple[TextAttribute[str | None], str]]:
    """Returns those attributes by which indexes list a numbered item in its workspace, each with
    the text that lists it in another one.

    Args:
        kind: the kind whose list has the item.
    """
    here, there = _partitions(workspace, kind), _partitions(target, kind)
    return [
        (attribute, after)
        for (attribute, before), (_, after) in zip(here, there, strict=True)
        if item.get(attribute.attr_name) == attribute.raw(before)
    ]


def _partitions(workspace: str, kind: str) -> list[tuple[TextAttribute[str | None], str]]:
    return [
        (IndexedItem.gsi1pk, keys.gsi1_created(workspace, kind, 0, 0).pk),
        (IndexedItem.gsi2pk, keys.gsi2_number(workspace, kind, 0).pk),
        (IndexedItem.gsi4pk, keys.gsi4_updated(workspace, kind, 0, 0).pk),
    ]
