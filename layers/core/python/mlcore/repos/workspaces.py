"""Workspaces: one item each and an entry in their list; the default one is there without an item.

Whoever makes an experiment, a model or a webhook in a workspace writes ``entered_at`` in the same
transaction. So nothing new comes to a workspace that is being deleted, and whoever deletes it knows
how far the global indexes may be behind.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Final

from mlcore import errors
from mlcore.db import keys
from mlcore.db.expression import Condition, Raw, Update, number, string
from mlcore.db.failures import ConditionFailed
from mlcore.db.table import Change, Delete, Put, TransactionFailed, table
from mlcore.entities import Workspace
from mlcore.ids import DEFAULT_WORKSPACE, new_ulid, now_ms
from mlcore.models.platform import Workspace as WorkspaceItem
from mlcore.models.platform import WorkspaceName
from mlcore.settings import settings

REMEMBERED_SECONDS: Final = 5.0
"""For so long a process takes a workspace for granted that it has seen."""

DEFAULT_DESCRIPTION: Final = "Default workspace for legacy resources"

_seen: dict[tuple[str, str], float] = {}


def missing(name: str) -> errors.ResourceDoesNotExist:
    return errors.ResourceDoesNotExist(f"Workspace '{name}' not found")


def check_exists(name: str) -> None:
    """One consistent GetItem in a while. Raises ResourceDoesNotExist."""
    if name == DEFAULT_WORKSPACE:
        return
    place = (settings().table_name, name)
    if _seen.get(place, 0.0) > time.monotonic():
        return
    get(name)
    _seen[place] = time.monotonic() + REMEMBERED_SECONDS


def get(name: str) -> Workspace:
    """One that is being deleted looks missing. Raises ResourceDoesNotExist."""
    item = find(name)
    if item is None or "leaving" in item:
        _seen.pop((settings().table_name, name), None)
        raise missing(name)
    return _workspace(item)


def find(name: str) -> Raw | None:
    """The item, also of a workspace that is being deleted."""
    item = table.get(keys.workspace(name))
    return _default() if item is None and name == DEFAULT_WORKSPACE else item


def names() -> list[str]:
    """Of all workspaces, also those that are being deleted; one Query."""
    listed = table.query_all(keys.WORKSPACE_NAME.pk.text, attributes=["name"])
    return sorted({item["name"]["S"] for item in listed} | {DEFAULT_WORKSPACE})


def find_all() -> list[Workspace]:
    """By name; one Query, and one BatchGetItem for each hundred."""
    items = table.batch_get([keys.workspace(name) for name in names()])
    found = {item["name"]["S"]: item for item in items if item is not None}
    found.setdefault(DEFAULT_WORKSPACE, _default())
    return [_workspace(item) for _, item in sorted(found.items()) if "leaving" not in item]


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
    absent.require_absent("PK")
    try:
        table.transact([Put(dict(item.serialize()), absent), Put(entry.serialize())], new_ulid())
    except TransactionFailed as failed:
        raise errors.ResourceAlreadyExists(
            f"Workspace '{workspace.name}' already exists."
        ) from failed


def change(name: str, changed: Mapping[str, str]) -> Workspace:
    """Sets fields, given by their names in :class:`Workspace`; "" clears all but the description.

    Raises:
        ResourceDoesNotExist: there is no such workspace.
    """
    update = Update()
    update.set("type", string(keys.WORKSPACE.name))
    update.set("name", string(name))
    update.set("updated_at", number(now_ms()))
    update.add("version", 1)
    for attribute, value in changed.items():
        if value or attribute == "description":
            update.set(attribute, string(value))
        else:
            update.remove(attribute)
    update.require_absent("leaving")
    if name != DEFAULT_WORKSPACE:
        update.require_exists("PK")
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
    update.set("entered_at", number(now_ms()))
    update.require_exists("PK")
    update.require_absent("leaving")
    return [Change(keys.workspace(name), update)]


def leave(name: str, mode: str) -> None:
    """From now on the workspace looks missing and nothing new comes to it. May be repeated. Raises
    ResourceDoesNotExist."""
    update = Update()
    update.set("leaving", string(mode))
    update.require_exists("PK")
    try:
        table.update(keys.workspace(name), update)
    except ConditionFailed as failed:
        raise missing(name) from failed
    _seen.pop((settings().table_name, name), None)


def entered_at(item: Raw) -> int:
    """When something was last made in a workspace, in milliseconds since the epoch; 0 for never."""
    return int(item["entered_at"]["N"]) if "entered_at" in item else 0


def delete(item: Raw) -> bool:
    """Deletes a workspace unless something came to it after it was read; whether it did."""
    unchanged = Condition()
    if "entered_at" in item:
        unchanged.require_equal("entered_at", item["entered_at"])
    else:
        unchanged.require_absent("entered_at")
    name = item["name"]["S"]
    try:
        table.transact(
            [Delete(keys.workspace(name), unchanged), Delete(keys.workspace_name(name))], new_ulid()
        )
    except TransactionFailed as failed:
        return failed.items.get(0) is None
    _seen.pop((settings().table_name, name), None)
    return True


def _default() -> Raw:
    return {"name": string(DEFAULT_WORKSPACE), "description": string(DEFAULT_DESCRIPTION)}


def _workspace(item: Raw) -> Workspace:
    def text(attribute: str) -> str | None:
        return item[attribute]["S"] if attribute in item else None

    name = item["name"]["S"]
    otherwise = DEFAULT_DESCRIPTION if name == DEFAULT_WORKSPACE else None
    return Workspace(
        name=name,
        description=text("description") if "description" in item else otherwise,
        artifact_root=text("artifact_root"),
        trace_archival_location=text("trace_archival_location"),
        trace_archival_retention=text("trace_archival_retention"),
    )
