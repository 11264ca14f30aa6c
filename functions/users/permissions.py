"""Grants permissions to single users, revokes them, and returns which permissions a user has."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from mlcore import errors
from mlcore.auth import permissions
from mlcore.auth.permissions import Grant
from mlcore.entities.users import Role, User
from mlcore.http import Request
from mlcore.policies.access import grants_of
from mlcore.policies.resource_workspaces import workspace_of
from mlcore.repos.users import grants, roles, users
from mlcore.repos.users.grants import GrantExists, GrantMissing
from mlcore.wire.untyped_message import text
from users import messages as m
from users import visible_roles


def grant_user_permission(message: m.UserPermission, request: Request) -> dict[str, Any]:
    username, resource_type, pattern = _user_and_resource(message)
    permission = text(message, "permission")
    user = users.get(username)
    permissions.check_no_workspace(resource_type)
    permissions.check_pattern(pattern, resource_type)
    permissions.check_level(permission, resource_type)
    permissions.check_skill(pattern, resource_type)
    if resource_type == permissions.EXPERIMENT:
        pattern = permissions.canonical_experiment_id(pattern)
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
    username, resource_type, pattern = _user_and_resource(message)
    user = users.get(username)
    permissions.check_no_workspace(resource_type)
    permissions.check_resource_type(resource_type)
    permissions.check_skill(pattern, resource_type)
    try:
        _delete(user, request.workspace, resource_type, pattern)
    except GrantMissing:
        raise errors.ResourceDoesNotExist(
            f"Permission for user={username} on resource_type={resource_type}, "
            f"resource_id={pattern} not found."
        ) from None
    return {}


def _delete(user: User, workspace: str, resource_type: str, pattern: str) -> None:
    """Deletes a grant. 0.1.0 stored the id as the request spelled it, not in canonical form.
    Raises GrantMissing."""
    try:
        grants.delete(user, workspace, resource_type, pattern)
    except GrantMissing:
        if resource_type != permissions.EXPERIMENT:
            raise
        canonical = permissions.canonical_experiment_id(pattern)
        grants.delete(user, workspace, resource_type, canonical)


def get_user_permission(message: m.UserPermission, request: Request) -> dict[str, Any]:
    """Returns a user's permission on a resource, by the same rules as requests are checked."""
    username, resource_type, resource_id = _user_and_resource(message)
    profile = users.get_profile(username)
    permissions.check_no_workspace(resource_type)
    permissions.check_resource_type(resource_type)
    if resource_id != permissions.ANY:
        permissions.check_grantable(resource_type, resource_id)
    workspace = workspace_of(resource_type, resource_id, request.workspace)
    if workspace is None:
        level = permissions.NO_PERMISSIONS
    else:
        user_grants = grants_of(profile, roles.of_profile(profile), workspace)
        level = user_grants.effective(resource_type, resource_id)
    return {"allowed": level.can_use, "permission": level.name}


def list_current_user_permissions(message: m.Nothing, request: Request) -> dict[str, Any]:
    access = request.caller()
    profile = access.profile()
    rows = _rows(visible_roles.of_profile(profile))
    return {"is_admin": profile.user.is_admin, "permissions": rows}


def list_user_permissions(message: m.UserName, request: Request) -> dict[str, Any]:
    """Returns those permissions of a user that the caller may see."""
    profile, roles_of_user = visible_roles.of_user(text(message, "username"), request)
    return {"is_admin": profile.user.is_admin, "permissions": _rows(roles_of_user)}


def _user_and_resource(message: m.UserPermission) -> tuple[str, str, str]:
    return text(message, "username"), text(message, "resource_type"), text(message, "resource_id")


def _rows(roles_of_user: Iterable[Role]) -> list[dict[str, Any]]:
    """Returns the JSON of all permissions of the roles."""
    return [
        {
            "role_id": role.role_id,
            "role_name": role.name,
            "workspace": role.workspace,
            "resource_type": permission.grant.resource_type,
            "resource_pattern": permission.grant.resource_pattern,
            "permission": permission.grant.permission,
        }
        for role in roles_of_user
        for permission in role.permissions
    ]
