"""The rules of workspaces, as MLflow's server has them: names, changes, who sees one."""

from __future__ import annotations

import contextlib
import os
from typing import Any, Final

from mlcore import errors
from mlcore.auth.permissions import ANY, WORKSPACE, Grant
from mlcore.entities.workspaces import DEFAULT_WORKSPACE, Workspace
from mlcore.environment import workspaces_enabled
from mlcore.http import Request
from mlcore.http.gate import Refused
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
"""Roles that a new workspace has where callers log in: name, level on the workspace, text."""


def list_workspaces(message: m.ListWorkspaces, request: Request) -> dict[str, Any]:
    """By name, those that the caller may see."""
    check_enabled("")
    found = workspaces.find_all()
    access = request.access
    if access is not None:
        found = [workspace for workspace in found if access.sees_workspace(workspace.name)]
    return {"workspaces": [responses.workspace(workspace) for workspace in found]} if found else {}


def create_workspace(message: m.CreateWorkspace, request: Request) -> dict[str, Any]:
    check_enabled("")
    if message.name == DEFAULT_WORKSPACE:
        raise errors.InvalidParameterValue(
            f"The '{DEFAULT_WORKSPACE}' workspace is reserved and cannot be created"
        )
    limits.check_name(message.name)
    given = _fields(message)
    workspace = Workspace(message.name, given.pop("description", None), **given)
    if workspaces.find(workspace.name) is None:
        # Before the workspace, so that a repeated request finds nothing left to do.
        _seed_roles(workspace.name, request)
    workspaces.create(workspace)
    return {"workspace": responses.workspace(workspace)}


def get_workspace(message: m.GetWorkspace, request: Request) -> dict[str, Any]:
    check_enabled("/<workspace_name>")
    _check_name(message.workspace_name)
    return {"workspace": responses.workspace(workspaces.get(message.workspace_name))}


def update_workspace(message: m.UpdateWorkspace, request: Request) -> dict[str, Any]:
    """An empty text clears what was there."""
    check_enabled("/<workspace_name>")
    _check_name(message.workspace_name)
    changed = _fields(message)
    if not changed:
        raise errors.InvalidParameterValue("Workspace update must have at least one key")
    return {"workspace": responses.workspace(workspaces.change(message.workspace_name, changed))}


def check_enabled(path: str) -> None:
    """Raises Refused where workspaces are off, in the words of MLflow's server."""
    if not workspaces_enabled():
        text = (
            f"Endpoint: /api/3.0/mlflow/workspaces{path} disabled because the server is running "
            "without workspaces support. To enable workspace, run `mlflow server` with "
            "`--enable-workspaces`"
        )
        raise Refused(Response(503, text, "text/html; charset=utf-8"))


def _check_name(name: str) -> None:
    if name != DEFAULT_WORKSPACE:
        limits.check_name(name)


def _fields(message: m.CreateWorkspace | m.UpdateWorkspace) -> dict[str, str]:
    """What a request sets, by the names in :class:`Workspace`."""
    given: dict[str, str] = {}
    if message.has("description"):
        given["description"] = message.description
    if message.has("default_artifact_root"):
        given["artifact_root"] = limits.artifact_root(message.default_artifact_root)
    archival = message.trace_archival_config
    if archival is not None and archival.has("location"):
        given["trace_archival_location"] = limits.archival_location(archival.location)
    if archival is not None and archival.has("retention"):
        given["trace_archival_retention"] = limits.archival_retention(archival.retention)
    return given


def _seed_roles(workspace: str, request: Request) -> None:
    seeds = os.environ.get("MLFLOW_RBAC_SEED_DEFAULT_ROLES", "true").lower() in {"1", "true"}
    if request.access is None or not seeds:
        return
    for name, level, description in DEFAULT_ROLES:
        with contextlib.suppress(RoleNameTaken, PermissionExists):
            role = roles.create(name, workspace, description)
            roles.add_permission(role.role_id, Grant(WORKSPACE, ANY, level))
