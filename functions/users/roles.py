"""Creates, changes and deletes roles, which are named sets of permissions in a workspace, and
assigns them to users."""

from __future__ import annotations

from typing import Any

from mlcore import errors
from mlcore.auth import permissions
from mlcore.auth.permissions import Grant
from mlcore.entities.users import Assignment, Role, RolePermission
from mlcore.environment import workspaces_enabled
from mlcore.http import Request
from mlcore.limits.experiments import experiment_id
from mlcore.limits.shared_checks import check_text
from mlcore.repos.users import roles, users
from mlcore.repos.users.roles import AlreadyAssigned, NotAssigned, PermissionExists, RoleNameTaken
from mlcore.repos.workspaces import workspaces
from mlcore.responses import users as responses
from mlcore.wire.untyped_message import integer, required, text
from users import messages as m
from users import own_roles, visible_roles

RESERVED_PREFIX = "__user_"
"""Begins the names of the roles that hold single users' own grants."""


MAX_NAME_LENGTH = 255
MAX_DESCRIPTION_LENGTH = 1024


def create_role(message: m.CreateRole, request: Request) -> dict[str, Any]:
    name, workspace = required(message, "name"), required(message, "workspace")
    _check_name(name)
    if not isinstance(workspace, str) or not workspace.strip():
        raise errors.InvalidParameterValue("Workspace cannot be empty.")
    description = message.description
    if description is not None and not isinstance(description, str):
        raise errors.InvalidParameterValue("Role description must be a string or null.")
    if workspaces_enabled() and workspaces.find(workspace) is None:
        raise _no_workspace(workspace)
    _check_not_reserved(name)
    _check_sizes(name, description)
    try:
        role = roles.create(name, workspace, description, in_existing=workspaces_enabled())
    except errors.ResourceDoesNotExist:  # its deletion has begun
        raise _no_workspace(workspace) from None
    except RoleNameTaken:
        raise errors.ResourceAlreadyExists(
            f"Role (name={name}, workspace={workspace}) already exists."
        ) from None
    return {"role": responses.role(role)}


def _no_workspace(name: str) -> errors.InvalidParameterValue:
    return errors.InvalidParameterValue(f"Workspace '{name}' does not exist.")


def get_role(message: m.RoleId, request: Request) -> dict[str, Any]:
    return {"role": responses.role(_get(integer(message, "role_id")))}


def list_roles(message: m.ListRoles, request: Request) -> dict[str, Any]:
    """Lists roles, the oldest first. As with MLflow, these include the roles that hold single
    users' own grants."""
    if any(not workspace.strip() for workspace in message.workspace):
        raise errors.InvalidParameterValue(
            "Parameter 'workspace' must be a non-empty string when provided."
        )
    of_users = [role for profile in users.find_all() for role in responses.own_roles(profile)]
    workspaces = set(message.workspace)
    selected = [
        role
        for role in (*roles.find_all(), *of_users)
        if not workspaces or role.workspace in workspaces
    ]
    return {"roles": [responses.role(role) for role in sorted(selected, key=_number)]}


def update_role(message: m.UpdateRole, request: Request) -> dict[str, Any]:
    role_id = integer(message, "role_id")
    name, description = message.name, message.description
    if name is None and description is None:
        raise errors.InvalidParameterValue(
            "At least one of 'name' or 'description' must be provided to update a role."
        )
    if name is not None:
        _check_name(name)
    if description is not None and not isinstance(description, str):
        raise errors.InvalidParameterValue("Role description must be a string.")
    if name is not None:
        _check_not_reserved(name)
    _check_sizes(name, description)
    try:
        changed = roles.update(role_id, name, description)
    except RoleNameTaken:
        raise errors.ResourceAlreadyExists(
            f"Role with name={name} already exists in workspace={roles.get(role_id).workspace}"
        ) from None
    except errors.ResourceDoesNotExist:
        own_roles.refuse_if_own(role_id)
        raise
    return {"role": responses.role(changed)}


def delete_role(message: m.RoleId, request: Request) -> dict[str, Any]:
    role_id = integer(message, "role_id")
    try:
        roles.delete(role_id)
    except errors.ResourceDoesNotExist:
        if not own_roles.delete(role_id):
            raise
    return {}


def add_role_permission(message: m.AddRolePermission, request: Request) -> dict[str, Any]:
    role_id = integer(message, "role_id")
    resource_type = text(message, "resource_type")
    pattern = text(message, "resource_pattern")
    permission = text(message, "permission")
    permissions.check_level(permission, resource_type)
    permissions.check_pattern(pattern, resource_type)
    permissions.check_skill(pattern, resource_type)
    if resource_type == permissions.EXPERIMENT and pattern != permissions.ANY:
        pattern = experiment_id(pattern)  # also accepts ids of imported experiments
    grant = Grant(resource_type, pattern, permission)
    try:
        added = _add_permission(role_id, grant)
    except PermissionExists:
        raise errors.ResourceAlreadyExists(
            f"Role permission (role_id={role_id}, resource_type={resource_type}, "
            f"resource_pattern={pattern}) already exists."
        ) from None
    return {"role_permission": responses.role_permission(added, role_id)}


def _add_permission(role_id: int, grant: Grant) -> RolePermission:
    try:
        return roles.add_permission(role_id, grant)
    except errors.ResourceDoesNotExist:
        if grant.resource_type == permissions.WORKSPACE:
            raise
        return own_roles.add_permission(role_id, grant)


def remove_role_permission(message: m.RolePermissionId, request: Request) -> dict[str, Any]:
    roles.replace_permission(integer(message, "role_permission_id"), None)
    return {}


def list_role_permissions(message: m.RoleId, request: Request) -> dict[str, Any]:
    role = _get(integer(message, "role_id"))
    answered = [
        responses.role_permission(permission, role.role_id) for permission in role.permissions
    ]
    return {"role_permissions": answered}


def update_role_permission(message: m.UpdateRolePermission, request: Request) -> dict[str, Any]:
    permission_id = integer(message, "role_permission_id")
    permission = text(message, "permission")
    role, current = roles.find_permission(permission_id)
    permissions.check_level(permission, current.grant.resource_type)
    changed = roles.replace_permission(permission_id, permission)
    return {"role_permission": responses.role_permission(changed, role.role_id)}


def assign_role(message: m.RoleAssignment, request: Request) -> dict[str, Any]:
    username, role_id = text(message, "username"), integer(message, "role_id")
    user = users.get(username)
    try:
        assignment = roles.assign(user, role_id)
    except AlreadyAssigned:
        raise errors.ResourceAlreadyExists(
            f"User role assignment (user_id={user.user_id}, role_id={role_id}) already exists"
        ) from None
    except errors.ResourceDoesNotExist:
        own_roles.refuse_if_own(role_id)
        raise
    return {"assignment": responses.assignment(assignment)}


def unassign_role(message: m.RoleAssignment, request: Request) -> dict[str, Any]:
    username, role_id = text(message, "username"), integer(message, "role_id")
    user = users.get(username)
    try:
        roles.unassign(user, role_id)
    except NotAssigned:
        if not own_roles.delete(role_id, username):
            raise errors.ResourceDoesNotExist(
                f"User role assignment (user_id={user.user_id}, role_id={role_id}) not found"
            ) from None
    return {}


def list_user_roles(message: m.UserName, request: Request) -> dict[str, Any]:
    """Returns those roles of a user that the caller may see."""
    _, roles_of_user = visible_roles.of_user(text(message, "username"), request)
    return {"roles": [responses.role(role) for role in roles_of_user]}


def list_role_users(message: m.RoleId, request: Request) -> dict[str, Any]:
    role_id = integer(message, "role_id")
    try:
        assignments = roles.assignments(role_id)
    except errors.ResourceDoesNotExist:
        owner = visible_roles.owner_of(role_id)
        if owner is None:
            raise
        # It is never stored as assigned. A role has one such user, so its id serves for both.
        assignments = [Assignment(role_id, owner[0].user.user_id, role_id)]
    return {"assignments": [responses.assignment(assignment) for assignment in assignments]}


def _get(role_id: int) -> Role:
    """Returns a role, also one that holds a user's own grants: the list of roles shows its id.
    Raises ResourceDoesNotExist."""
    try:
        return roles.get(role_id)
    except errors.ResourceDoesNotExist:
        owner = visible_roles.owner_of(role_id)
        if owner is None:
            raise
        return owner[1]


def _number(role: Role) -> int:
    return role.role_id


def _check_name(name: Any) -> None:
    if not isinstance(name, str) or not name.strip():
        raise errors.InvalidParameterValue("Role name cannot be empty.")


def _check_sizes(name: str | None, description: str | None) -> None:
    check_text("Role name", MAX_NAME_LENGTH, name or "")
    check_text("Role description", MAX_DESCRIPTION_LENGTH, description or "")


def _check_not_reserved(name: str) -> None:
    if name.startswith(RESERVED_PREFIX):
        raise errors.InvalidParameterValue(
            f"Role name {name!r} uses the reserved '__user_' prefix, which is held for the "
            "per-user permission representation. Choose a different name."
        )
