"""Lists, creates, reads and changes workspaces. :mod:`workspaces.removal` deletes them."""

from __future__ import annotations

import contextlib
import os
from typing import Any, Final

from mlcore import errors
from mlcore.auth.permissions import ANY, WORKSPACE, Grant
from mlcore.entities.users import Role
from mlcore.entities.workspaces import DEFAULT_WORKSPACE, Workspace
from mlcore.environment import workspaces_enabled
from mlcore.http import Request
from mlcore.http.gate import RequestRefused
from mlcore.http.response import Response
from mlcore.limits import workspaces as limits
from mlcore.repos.users import roles
from mlcore.repos.users.roles import PermissionExists, RoleNameTaken
from mlcore.repos.workspaces import workspaces
from mlcore.responses import workspaces as responses
from workspaces import messages as m

DEFAULT_ROLES: Final = (
    ("admin", "MANAGE", "Full MANAGE authority over the workspace."),
    (
        "user",
        "USE",
        "Read every resource in the workspace and create new experiments and registered models; "
        "the creator-as-owner mechanism grants MANAGE on what you create, with no write or delete "
        "access to resources owned by other users.",
    ),
)
"""Roles of a new workspace on a server with logins: name, permission on the workspace,
description."""


def list_workspaces(message: m.ListWorkspaces, request: Request) -> dict[str, Any]:
    """Lists the workspaces that the caller may see, by name."""
    check_enabled("")
    visible = workspaces.find_all()
    access = request.access
    if access is not None:
        visible = [workspace for workspace in visible if access.sees_workspace(workspace.name)]
    if not visible:
        return {}
    return {"workspaces": [responses.workspace(workspace) for workspace in visible]}


def create_workspace(message: m.CreateWorkspace, request: Request) -> dict[str, Any]:
    check_enabled("")
    if message.name == DEFAULT_WORKSPACE:
        raise errors.InvalidParameterValue(
            f"The '{DEFAULT_WORKSPACE}' workspace is reserved and cannot be created"
        )
    limits.check_name(message.name)
    fields = _fields(message)
    workspace = Workspace(message.name, fields.pop("description", None), **fields)
    if workspaces.find(workspace.name) is None:
        # Before the workspace is created, so that a repeated request has nothing left to do.
        _seed_roles(workspace.name, request)
    workspaces.create(workspace)
    return {"workspace": responses.workspace(workspace)}


def get_workspace(message: m.GetWorkspace, request: Request) -> dict[str, Any]:
    check_enabled("/<workspace_name>")
    _check_name(message.workspace_name)
    return {"workspace": responses.workspace(workspaces.get(message.workspace_name))}


def update_workspace(message: m.UpdateWorkspace, request: Request) -> dict[str, Any]:
    """Sets the workspace's fields that the request has. An empty text clears a field."""
    check_enabled("/<workspace_name>")
    _check_name(message.workspace_name)
    changes = _fields(message)
    if not changes:
        raise errors.InvalidParameterValue("Workspace update must have at least one key")
    return {"workspace": responses.workspace(workspaces.change(message.workspace_name, changes))}


def check_enabled(path: str) -> None:
    """Raises RequestRefused (503) with the message of MLflow's server, unless workspaces are on."""
    if not workspaces_enabled():
        text = (
            f"Endpoint: /api/3.0/mlflow/workspaces{path} disabled because the server is running "
            "without workspaces support. To enable workspace, run `mlflow server` with "
            "`--enable-workspaces`"
        )
        raise RequestRefused(Response(503, text, "text/html; charset=utf-8"))


def _check_name(name: str) -> None:
    if name != DEFAULT_WORKSPACE:
        limits.check_name(name)


def _fields(message: m.CreateWorkspace | m.UpdateWorkspace) -> dict[str, str]:
    """Returns the checked fields of a request, by their names in :class:`Workspace`."""
    fields: dict[str, str] = {}
    if message.has("description"):
        fields["description"] = message.description
    if message.has("default_artifact_root"):
        fields["artifact_root"] = limits.artifact_root(message.default_artifact_root)
    archival = message.trace_archival_config
    if archival is not None and archival.has("location"):
        fields["trace_archival_location"] = limits.archival_location(archival.location)
    if archival is not None and archival.has("retention"):
        fields["trace_archival_retention"] = limits.archival_retention(archival.retention)
    return fields


def _seed_roles(workspace: str, request: Request) -> None:
    seeds = os.environ.get("MLFLOW_RBAC_SEED_DEFAULT_ROLES", "true").lower() in {"1", "true"}
    if request.access is None or not seeds:
        return
    for name, level, description in DEFAULT_ROLES:
        role: Role | None
        try:
            role = roles.create(name, workspace, description)
        except RoleNameTaken:  # an interrupted request may have made it, without its permission
            role = roles.find_named(workspace, name)
        if role is not None:
            with contextlib.suppress(PermissionExists):
                roles.add_permission(role.role_id, Grant(WORKSPACE, ANY, level))
