"""Transfers workspaces."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mlcore import errors
from mlcore.entities.workspaces import DEFAULT_WORKSPACE, Workspace
from mlcore.repos.workspaces import workspaces
from operate.transfer.mlflow_client import Json, Server, SourceFailed
from operate.transfer.transfer_item import Content, TransferItem

_API = "api/3.0/mlflow"


def listed(server: Server) -> list[Json]:
    """Returns the workspaces of an MLflow server; empty if it has none or they are disabled."""
    try:
        if not server.get(f"{_API}/server-info").get("workspaces_enabled"):
            return []
    except SourceFailed as failed:
        if not failed.unknown:
            raise
        return []
    workspaces: list[Json] = server.get(f"{_API}/workspaces").get("workspaces", [])
    return workspaces


def items(entries: list[Json]) -> Iterator[TransferItem]:
    """Yields, as items to transfer, all workspaces of an MLflow server except the default one,
    which always exists."""
    for entry in entries:
        if entry["name"] != DEFAULT_WORKSPACE:
            yield _item(entry)


def _item(fields: Json) -> TransferItem:
    archival = fields.get("trace_archival_config", {})
    workspace = Workspace(
        fields["name"],
        fields.get("description"),
        fields.get("default_artifact_root"),
        archival.get("location"),
        archival.get("retention"),
    )

    def have() -> Content | None:
        try:
            return _content(workspaces.get(workspace.name))
        except errors.ResourceDoesNotExist:
            return None

    def write(want: Content, existing: Content | None) -> None:
        if existing is None:
            workspaces.create(workspace)
        else:
            workspaces.change(workspace.name, {name: want[name] for name in want if name != "name"})

    return TransferItem("workspace", workspace.name, lambda: _content(workspace), have, write)


def _content(workspace: Workspace) -> Content:
    fields: dict[str, Any] = workspace._asdict()
    return {name: value or "" for name, value in fields.items()}
