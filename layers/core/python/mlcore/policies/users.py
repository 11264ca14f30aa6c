"""Permission checks for requests about users, roles and grants."""

from __future__ import annotations

from typing import Any

from mlcore import errors
from mlcore.auth import permissions
from mlcore.auth.permissions import ANY, REGISTERED_MODEL, SCORER
from mlcore.auth.requirements import Requirement
from mlcore.policies.access import Access, administrated_workspaces
from mlcore.policies.resource_workspaces import workspace_of
from mlcore.repos.users import roles, users
from mlcore.wire.untyped_message import integer, text


def oneself(access: Access, message: Any) -> bool:
    return access.username == text(message, "username")


def create_user(access: Access, message: Any) -> bool:
    """Allows creating users to callers who administer some workspace. A new user has no access."""
    return bool(administrated_workspaces(access.profile(), access.roles()))


def list_users(access: Access, message: Any) -> bool:
    return access.may_create()


def manage_role(access: Access, message: Any) -> bool:
    workspace = _workspace_of_role(message)
    return workspace is not None and access.administrates(workspace)


def view_role(access: Access, message: Any) -> bool:
    workspace = _workspace_of_role(message)
    return workspace is not None and workspace in _member_workspaces(access)


def list_roles(access: Access, message: Any) -> bool:
    wanted = {workspace.strip() for workspace in message.workspace if workspace.strip()}
    return bool(wanted) and wanted <= _member_workspaces(access)


def view_user(access: Access, message: Any) -> bool:
    """Allows users to view themselves, and administrators of a workspace to view its users."""
    username = text(message, "username")
    if access.username == username:
        return True
    profile = users.find_profile(username)
    if profile is None:
        return False
    workspaces = {role.workspace for role in roles.of_profile(profile)}
    workspaces |= {held.workspace for held in profile.grants}
    return bool(workspaces & administrated_workspaces(access.profile(), access.roles()))


def manage_resource(access: Access, message: Any) -> bool:
    """Requires MANAGE on a resource to change grants on it; to change grants on all resources of a
    type, the caller must be an administrator of the workspace."""
    resource_type, resource_id = text(message, "resource_type"), text(message, "resource_id")
    permissions.check_no_workspace(resource_type)
    permissions.check_resource_type(resource_type)
    if resource_id == ANY:
        return access.administrates(access.workspace)
    permissions.check_grantable(resource_type, resource_id)
    workspace = workspace_of(resource_type, resource_id, access.workspace)
    return (
        workspace is not None
        and access.grants(workspace).effective(resource_type, resource_id).can_manage
    )


def view_permission(access: Access, message: Any) -> bool:
    """Allows users to view their own permissions, and administrators of the resource's workspace to
    view those of others."""
    resource_type = text(message, "resource_type")
    permissions.check_no_workspace(resource_type)
    username = text(message, "username")
    if access.username == username:
        return True
    if users.find(username) is None:
        return False
    resource_id = text(message, "resource_id")
    if resource_id != ANY and not permissions.is_grantable(resource_type, resource_id):
        return False
    workspace = workspace_of(resource_type, resource_id, access.workspace)
    return workspace is not None and access.administrates(workspace)


def manage_model(access: Access, message: Any) -> bool:
    return access.allows(Requirement(REGISTERED_MODEL, text(message, "name"), "manage"))


def manage_scorer(access: Access, message: Any) -> bool:
    scorer = permissions.scorer_pattern(
        text(message, "experiment_id"), text(message, "scorer_name")
    )
    return access.allows(Requirement(SCORER, scorer, "manage"))


def _member_workspaces(access: Access) -> set[str]:
    """Returns the workspaces in which the caller has a role or a grant."""
    workspaces = {role.workspace for role in access.roles()}
    return workspaces | {held.workspace for held in access.profile().grants}


def _workspace_of_role(message: Any) -> str | None:
    """Returns the workspace that a message names, directly or by a role; None if the role does not
    exist. Raises InvalidParameterValue if it names neither."""
    try:
        if message.has("role_id"):
            return roles.get(integer(message, "role_id")).workspace
        if message.has("role_permission_id"):
            return roles.find_permission(integer(message, "role_permission_id"))[0].workspace
    except errors.ResourceDoesNotExist:
        return None
    if not message.has("workspace"):
        raise errors.InvalidParameterValue(
            "Request must include one of: role_id, role_permission_id, workspace."
        )
    workspace: object = message.workspace
    if not isinstance(workspace, str) or not workspace.strip():
        raise errors.InvalidParameterValue("Parameter 'workspace' must be a non-empty string.")
    return workspace
