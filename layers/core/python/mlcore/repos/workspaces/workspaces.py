"""Workspaces: one item each and an entry in their list; the default one is there without an item.

Whoever makes an experiment, a model or a webhook in a workspace writes ``entered_at`` in the same
transaction. So nothing new comes to a workspace that is being deleted, and whoever deletes it knows
how far the global indexes may be behind.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from mlcore import errors
from mlcore.db import keys
from mlcore.db.attributes import TextAttribute
from mlcore.db.expression import Condition, Raw, Update
from mlcore.db.failures import ConditionFailed
from mlcore.db.table import Change, Delete, Put, TransactionFailed, table
from mlcore.entities.workspaces import DEFAULT_WORKSPACE, Workspace
from mlcore.environment import settings
from mlcore.ids import new_ulid, now_ms
from mlcore.memory import Memory
from mlcore.models.platform import Workspace as WorkspaceItem
from mlcore.models.platform import WorkspaceName

REMEMBERED_SECONDS: Final = 5.0
"""For so long a process takes a workspace for granted that it has seen."""

DEFAULT_DESCRIPTION: Final = "Default workspace for legacy resources"

_seen: Memory[tuple[str, str], bool] = Memory("workspace", seconds=REMEMBERED_SECONDS)


def missing(name: str) -> errors.ResourceDoesNotExist:
    return errors.ResourceDoesNotExist(f"Workspace '{name}' not found")


def check_exists(name: str) -> None:
    """One consistent GetItem in a while. Raises ResourceDoesNotExist."""
    if name == DEFAULT_WORKSPACE:
        return
    place = (settings().table_name, name)
    if place not in _seen:
        get(name)
        _seen.put(place, True)


def get(name: str) -> Workspace:
    """One that is being deleted looks missing. Raises ResourceDoesNotExist."""
    item = find(name)
    if item is None or WorkspaceItem.of(item).leaving is not None:
        _seen.pop((settings().table_name, name))
        raise missing(name)
    return _workspace(item)


def find(name: str) -> Raw | None:
    """The item, also of a workspace that is being deleted."""
    item = table.get(keys.workspace(name))
    return _default() if item is None and name == DEFAULT_WORKSPACE else item


def names() -> list[str]:
    """Of all workspaces, also those that are being deleted; one Query."""
    listed = table.query_all(keys.WORKSPACE_NAME.pk.text, attributes=[WorkspaceName.name])
    return sorted({WorkspaceName.of(item).name for item in listed} | {DEFAULT_WORKSPACE})


def find_all() -> list[Workspace]:
    """By name; one Query, and one BatchGetItem for each hundred."""
    items = table.batch_get([keys.workspace(name) for name in names()])
    found = {WorkspaceItem.of(item).name: item for item in items if item is not None}
    found.setdefault(DEFAULT_WORKSPACE, _default())
    return [
        _workspace(item)
        for _, item in sorted(found.items())
        if WorkspaceItem.of(item).leaving is None
    ]


def create(workspace: Workspace) -> None:
    """One transaction: the workspace and its entry in the list. Raises ResourceAlreadyExists."""
    place, listed = keys.workspace(workspace.name), keys.workspace_name(workspace.name)
    item = WorkspaceItem(
        PK=place.pk,
        SK=place.sk,
        name=workspace.name,
        description=workspace.description,
        artifact_root=workspace.artifact_root or None,
        trace_archival_location=workspace.trace_archival_location or None,
        trace_archival_retention=workspace.trace_archival_retention or None,
        version=1,
        updated_at=now_ms(),
    )
    entry = WorkspaceName(PK=listed.pk, SK=listed.sk, name=workspace.name, updated_at=now_ms())
    absent = Condition()
    absent.require_absent(WorkspaceItem.PK)
    try:
        table.transact([Put(item.serialize(), absent), Put(entry.serialize())], new_ulid())
    except TransactionFailed as failed:
        raise errors.ResourceAlreadyExists(
            f"Workspace '{workspace.name}' already exists."
        ) from failed


def change(name: str, values: Mapping[str, str]) -> Workspace:
    """Sets fields, given by their names in :class:`Workspace`; "" clears all but the description.

    Raises:
        ResourceDoesNotExist: there is no such workspace.
    """
    update = Update()
    update.set(WorkspaceItem.type, keys.WORKSPACE.name)
    update.set(WorkspaceItem.name, name)
    update.set(WorkspaceItem.updated_at, now_ms())
    update.add(WorkspaceItem.version, 1)
    for field, value in values.items():
        attribute = _CHANGEABLE[field]
        if value or attribute is WorkspaceItem.description:
            update.set(attribute, value)
        else:
            update.remove(attribute)
    update.require_absent(WorkspaceItem.leaving)
    if name != DEFAULT_WORKSPACE:
        update.require_exists(WorkspaceItem.PK)
    try:
        item = table.update(keys.workspace(name), update, returning=True)
    except ConditionFailed as failed:
        raise missing(name) from failed
    return _workspace(item)


def entering(name: str) -> list[Change]:
    """What belongs into the transaction that makes something in a workspace: nothing for the
    default one."""
    if name == DEFAULT_WORKSPACE:
        return []
    update = Update()
    update.set(WorkspaceItem.entered_at, now_ms())
    update.require_exists(WorkspaceItem.PK)
    update.require_absent(WorkspaceItem.leaving)
    return [Change(keys.workspace(name), update)]


def leave(name: str, mode: str) -> None:
    """From now on the workspace looks missing and nothing new comes to it. May be repeated. Raises
    ResourceDoesNotExist."""
    update = Update()
    update.set(WorkspaceItem.leaving, mode)
    update.require_exists(WorkspaceItem.PK)
    try:
        table.update(keys.workspace(name), update)
    except ConditionFailed as failed:
        raise missing(name) from failed
    _seen.pop((settings().table_name, name))


def entered_at(item: Raw) -> int:
    """When something was last made in a workspace, in milliseconds since the epoch; 0 for never."""
    return WorkspaceItem.of(item).entered_at or 0


def delete(item: Raw) -> bool:
    """Deletes a workspace unless something came to it after it was read; whether it did."""
    unchanged = Condition()
    stored = WorkspaceItem.of(item)
    if stored.entered_at is None:
        unchanged.require_absent(WorkspaceItem.entered_at)
    else:
        unchanged.require_equal(WorkspaceItem.entered_at, stored.entered_at)
    name = stored.name
    try:
        table.transact(
            [Delete(keys.workspace(name), unchanged), Delete(keys.workspace_name(name))], new_ulid()
        )
    except TransactionFailed as failed:
        return failed.items.get(0) is None
    _seen.pop((settings().table_name, name))
    return True


def _default() -> Raw:
    place = keys.workspace(DEFAULT_WORKSPACE)
    item = WorkspaceItem(
        PK=place.pk, SK=place.sk, name=DEFAULT_WORKSPACE, description=DEFAULT_DESCRIPTION, version=0
    )
    return item.serialize()


_CHANGEABLE: Mapping[str, TextAttribute[Any]] = {
    "description": WorkspaceItem.description,
    "artifact_root": WorkspaceItem.artifact_root,
    "trace_archival_location": WorkspaceItem.trace_archival_location,
    "trace_archival_retention": WorkspaceItem.trace_archival_retention,
}
"""By the fields of :class:`Workspace`."""


def _workspace(raw: Raw) -> Workspace:
    item = WorkspaceItem.of(raw)
    otherwise = DEFAULT_DESCRIPTION if item.name == DEFAULT_WORKSPACE else None
    return Workspace(
        name=item.name,
        description=otherwise if item.description is None else item.description,
        artifact_root=item.artifact_root,
        trace_archival_location=item.trace_archival_location,
        trace_archival_retention=item.trace_archival_retention,
    )
