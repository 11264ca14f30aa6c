"""Who may do what with users, roles and grants."""

from __future__ import annotations

from typing import Any

from mlcore import errors
from mlcore.auth import permissions
from mlcore.auth.permissions import ANY, REGISTERED_MODEL, SCORER
from mlcore.auth.requirements import Requirement
from mlcore.policies.access import Access, administrated
from mlcore.policies.resources import workspace_of
from mlcore.repos.users import roles, users
from mlcore.wire.parameters import integer, text


def oneself(access: Access, message: Any) -> bool:
    return access.username == text(message, "username")


def create_user(access: Access, message: Any) -> bool:
    """Who administrates a workspace may make accounts for it; an account alone opens nothing."""
    return bool(administrated(access.profile(), access.roles()))


def list_users(access: Access, message: Any) -> bool:
    return access.may_create()


def manage_role(access: Access, message: Any) -> bool:
    workspace = _workspace_of_role(message)
    return workspace is not None and access.administrates(workspace)


def view_role(access: Access, message: Any) -> bool:
    workspace = _workspace_of_role(message)
    return workspace is not None and workspace in _present(access)


def list_roles(access: Access, message: Any) -> bool:
    wanted = {workspace.strip() for workspace in message.workspace if workspace.strip()}
    return bool(wanted) and wanted <= _present(access)


def view_user(access: Access, message: Any) -> bool:
    """Oneself, and the users of a workspace that the caller administrates."""
    username = text(message, "username")
    if access.username == username:
        return True
    found = users.find_profile(username)
    if found is None:
        return False
    theirs = {role.workspace for role in roles.find_many(found.role_ids)}
    theirs |= {held.workspace for held in found.grants}
    return bool(theirs & administrated(access.profile(), access.roles()))


def manage_resource(access: Access, message: Any) -> bool:
    """Granting needs MANAGE on the resource; on all of a type, administration of the workspace."""
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
    """Oneself, and whoever administrates the workspace of the resource."""
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


def _present(access: Access) -> set[str]:
    """The workspaces in which the caller has anything."""
    found = {role.workspace for role in access.roles()}
    return found | {held.workspace for held in access.profile().grants}


def _workspace_of_role(message: Any) -> str | None:
    """The workspace of the role that a message is about, None when there is no such role."""
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
