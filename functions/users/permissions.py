"""Grants of single users, and what a user may in the end."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from mlcore import errors
from mlcore.auth import permissions
from mlcore.auth.permissions import Grant
from mlcore.entities.users import Role
from mlcore.http import Request
from mlcore.policies.access import grants_of
from mlcore.policies.resources import workspace_of
from mlcore.repos.users import grants, roles, users
from mlcore.repos.users.grants import GrantExists, GrantMissing
from mlcore.wire.parameters import text
from users import messages as m
from users import visible_roles


def grant_user_permission(message: m.UserPermission, request: Request) -> dict[str, Any]:
    username, resource_type, pattern = _named(message)
    permission = text(message, "permission")
    user = users.get(username)
    permissions.check_no_workspace(resource_type)
    permissions.check_pattern(pattern, resource_type)
    permissions.check_level(permission, resource_type)
    users.own_role_id(user, request.workspace)
    try:
        grants.create(user, request.workspace, Grant(resource_type, pattern, permission))
    except GrantExists:
        raise errors.ResourceAlreadyExists(
            f"Permission for user={username} on resource_type={resource_type}, "
            f"resource_id={pattern} already exists."
        ) from None
    return {}


def revoke_user_permission(message: m.UserPermission, request: Request) -> dict[str, Any]:
    username, resource_type, pattern = _named(message)
    user = users.get(username)
    permissions.check_no_workspace(resource_type)
    permissions.check_resource_type(resource_type)
    try:
        grants.delete(user, request.workspace, resource_type, pattern)
    except GrantMissing:
        raise errors.ResourceDoesNotExist(
            f"Permission for user={username} on resource_type={resource_type}, "
            f"resource_id={pattern} not found."
        ) from None
    return {}


def get_user_permission(message: m.UserPermission, request: Request) -> dict[str, Any]:
    """What a user may with a resource, by the rules that requests are judged by."""
    username, resource_type, resource_id = _named(message)
    found = users.get_profile(username)
    permissions.check_no_workspace(resource_type)
    permissions.check_resource_type(resource_type)
    if resource_id != permissions.ANY:
        permissions.check_grantable(resource_type, resource_id)
    workspace = workspace_of(resource_type, resource_id, request.workspace)
    if workspace is None:
        level = permissions.NO_PERMISSIONS
    else:
        held = grants_of(found, roles.find_many(found.role_ids), workspace)
        level = held.effective(resource_type, resource_id)
    return {"allowed": level.can_use, "permission": level.name}


def list_current_user_permissions(message: m.Nothing, request: Request) -> dict[str, Any]:
    access = request.caller()
    found = access.profile()
    rows = _rows(visible_roles.of_profile(found))
    return {"is_admin": found.user.is_admin, "permissions": rows}


def list_user_permissions(message: m.UserName, request: Request) -> dict[str, Any]:
    """Every permission of a user, as far as the caller may know of them."""
    found, listed = visible_roles.of_user(text(message, "username"), request)
    return {"is_admin": found.user.is_admin, "permissions": _rows(listed)}


def _named(message: m.UserPermission) -> tuple[str, str, str]:
    return text(message, "username"), text(message, "resource_type"), text(message, "resource_id")


def _rows(listed: Iterable[Role]) -> list[dict[str, Any]]:
    return [
        {
            "role_id": role.role_id,
            "role_name": role.name,
            "workspace": role.workspace,
            "resource_type": held.grant.resource_type,
            "resource_pattern": held.grant.resource_pattern,
            "permission": held.grant.permission,
        }
        for role in listed
        for held in role.permissions
    ]
