"""Workspaces: one item and one list entry each. The default workspace needs neither.

A transaction that creates something of a workspace, such as an experiment, a model or a webhook,
also sets the workspace's attribute ``entered_at`` (but not that of the default workspace). So these
cannot be created in a workspace that is being deleted. The deletion learns from ``entered_at`` how
long the global indexes may still lack the latest items.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from mlcore import errors
from mlcore.db import keys
from mlcore.db.attribute_types import TextAttribute
from mlcore.db.expression import ConditionExpression, Raw, Update
from mlcore.db.failures import ConditionFailed
from mlcore.db.table import Delete, ItemUpdate, Put, TransactionFailed, table
from mlcore.entities.workspaces import DEFAULT_WORKSPACE, Workspace
from mlcore.environment import settings
from mlcore.ids import new_ulid, now_ms
from mlcore.models.workspaces import Workspace as WorkspaceItem
from mlcore.models.workspaces import WorkspaceName
from mlcore.optimistic_retry import WriteConflict
from mlcore.process_cache import ProcessCache

REMEMBERED_SECONDS: Final = 5.0
"""How long a process assumes that a workspace which it has read still exists."""

DEFAULT_DESCRIPTION: Final = "Default workspace for legacy resources"

_seen: ProcessCache[tuple[str, str], bool] = ProcessCache("workspace", seconds=REMEMBERED_SECONDS)


def missing(name: str) -> errors.ResourceDoesNotExist:
    return errors.ResourceDoesNotExist(f"Workspace '{name}' not found")


def check_exists(name: str) -> None:
    """Raises ResourceDoesNotExist for an unknown workspace. One consistent GetItem per workspace
    every few seconds."""
    if name == DEFAULT_WORKSPACE:
        return
    cache_key = (settings().table_name, name)
    if cache_key not in _seen:
        get(name)
        _seen.put(cache_key, True)


def get(name: str) -> Workspace:
    """Returns a workspace. Raises ResourceDoesNotExist, also for one that is being deleted."""
    item = find(name)
    if item is None or WorkspaceItem.of(item).leaving is not None:
        _seen.pop((settings().table_name, name))
        raise missing(name)
    return _workspace(item)


def find(name: str) -> Raw | None:
    """Returns the item that describes a workspace, also one that is being deleted; None if there is
    none. For the default workspace never None."""
    item = table.get(keys.workspace(name))
    return _default() if item is None and name == DEFAULT_WORKSPACE else item


def names() -> list[str]:
    """Returns the names of all workspaces, including those being deleted. One Query per MB."""
    listed = table.query_all(keys.WORKSPACE_NAME.pk.text, attributes=[WorkspaceName.name])
    return sorted({WorkspaceName.of(item).name for item in listed} | {DEFAULT_WORKSPACE})


def find_all() -> list[Workspace]:
    """Returns all workspaces that are not being deleted, ordered by name. One Query per MB and one
    BatchGetItem per hundred."""
    items = table.batch_get([keys.workspace(name) for name in names()])
    items_by_name = {WorkspaceItem.of(item).name: item for item in items if item is not None}
    items_by_name.setdefault(DEFAULT_WORKSPACE, _default())
    return [
        _workspace(item)
        for _, item in sorted(items_by_name.items())
        if WorkspaceItem.of(item).leaving is None
    ]


def create(workspace: Workspace) -> None:
    """Writes a new workspace and its entry in the list of workspaces, in one transaction. Raises
    ResourceAlreadyExists."""
    key, listed = keys.workspace(workspace.name), keys.workspace_name(workspace.name)
    item = WorkspaceItem(
        PK=key.pk,
        SK=key.sk,
        name=workspace.name,
        description=workspace.description,
        artifact_root=workspace.artifact_root or None,
        trace_archival_location=workspace.trace_archival_location or None,
        trace_archival_retention=workspace.trace_archival_retention or None,
        version=1,
        updated_at=now_ms(),
    )
    entry = WorkspaceName(PK=listed.pk, SK=listed.sk, name=workspace.name, updated_at=now_ms())
    absent = ConditionExpression()
    absent.require_absent(WorkspaceItem.PK)
    try:
        table.transact([Put(item.serialize(), absent), Put(entry.serialize())], new_ulid())
    except TransactionFailed as failed:
        raise errors.ResourceAlreadyExists(
            f"Workspace '{workspace.name}' already exists."
        ) from failed


def change(name: str, values: Mapping[str, str]) -> Workspace:
    """Sets fields of a workspace, given by their names in :class:`Workspace`; "" removes any field
    but the description. Raises ResourceDoesNotExist if there is no such workspace."""
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


def creation_guard(name: str) -> list[ItemUpdate]:
    """Returns the operation that makes a transaction which creates something in a workspace fail if
    the workspace is deleted meanwhile, as a list; an empty list for the default workspace, which
    always exists."""
    if name == DEFAULT_WORKSPACE:
        return []
    update = Update()
    update.set(WorkspaceItem.entered_at, now_ms())
    update.require_exists(WorkspaceItem.PK)
    update.require_absent(WorkspaceItem.leaving)
    return [ItemUpdate(keys.workspace(name), update)]


def start_deletion(name: str, mode: str, unchanged_since: Raw | None = None) -> None:
    """Starts the deletion of a workspace: from now on :func:`get` raises, and transactions with
    :func:`creation_guard` fail. Other processes may take it for existing for
    :data:`REMEMBERED_SECONDS`. Idempotent.

    Args:
        unchanged_since: the workspace's item; nothing may have been created in the workspace since
            the item was read. None for no such condition.

    Raises:
        ResourceDoesNotExist: there is no such workspace.
        WriteConflict: something was created in it meanwhile.
    """
    update = Update()
    update.set(WorkspaceItem.leaving, mode)
    update.require_exists(WorkspaceItem.PK)
    if unchanged_since is not None:
        _require_nothing_new(update, unchanged_since)
    try:
        table.update(keys.workspace(name), update)
    except ConditionFailed as failed:
        if failed.item is not None:
            raise WriteConflict from failed
        raise missing(name) from failed
    _seen.pop((settings().table_name, name))


def _require_nothing_new(condition: Update, item: Raw) -> None:
    """Adds the condition that nothing was created in a workspace since its item was read."""
    entered_at = WorkspaceItem.of(item).entered_at
    if entered_at is None:
        condition.require_absent(WorkspaceItem.entered_at)
    else:
        condition.require_equal(WorkspaceItem.entered_at, entered_at)


def last_creation_time(item: Raw) -> int:
    """Returns when something was last created in a workspace, in milliseconds since the epoch; 0
    for never, and for the default workspace."""
    return WorkspaceItem.of(item).entered_at or 0


def delete(item: Raw) -> bool:
    """Deletes a workspace. Returns False, and deletes nothing, if something was created in it since
    ``item`` was read; True also if it was deleted before."""
    unchanged = ConditionExpression()
    _require_nothing_new(unchanged, item)
    name = WorkspaceItem.of(item).name
    try:
        table.transact(
            [Delete(keys.workspace(name), unchanged), Delete(keys.workspace_name(name))], new_ulid()
        )
    except TransactionFailed as failed:
        return failed.items.get(0) is None
    _seen.pop((settings().table_name, name))
    return True


def _default() -> Raw:
    key = keys.workspace(DEFAULT_WORKSPACE)
    item = WorkspaceItem(
        PK=key.pk, SK=key.sk, name=DEFAULT_WORKSPACE, description=DEFAULT_DESCRIPTION, version=0
    )
    return item.serialize()


_CHANGEABLE: Mapping[str, TextAttribute[Any]] = {
    "description": WorkspaceItem.description,
    "artifact_root": WorkspaceItem.artifact_root,
    "trace_archival_location": WorkspaceItem.trace_archival_location,
    "trace_archival_retention": WorkspaceItem.trace_archival_retention,
}
"""Attributes by the field names of :class:`Workspace`."""


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
