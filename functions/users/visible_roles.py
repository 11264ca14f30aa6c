"""Finds the roles of a user that a caller may see, and the user whose own grants a role holds."""

from __future__ import annotations

from mlcore.entities.users import Profile, Role
from mlcore.http import Request
from mlcore.policies.access import administrated_workspaces
from mlcore.repos.users import roles, users
from mlcore.responses import users as responses


def of_user(username: str, request: Request) -> tuple[Profile, list[Role]]:
    """Returns a user and the user's visible roles, including those that hold the user's own grants.
    Administrators and the user see all, others those in workspaces that they administer. Raises
    ResourceDoesNotExist if the user does not exist."""
    profile = users.get_profile(username)
    visible = of_profile(profile)
    access = request.caller()
    if not (access.is_admin or access.username == username):
        workspaces = administrated_workspaces(access.profile(), access.roles())
        visible = [role for role in visible if role.workspace in workspaces]
    return profile, visible


def of_profile(profile: Profile) -> list[Role]:
    """Returns all roles of a user, including those that hold the user's own grants, the oldest
    first."""
    found = [*responses.own_roles(profile), *roles.of_profile(profile)]
    return sorted(found, key=lambda role: role.role_id)


def owner_of(role_id: int) -> tuple[Profile, Role] | None:
    """Returns the user whose own grants MLflow's API shows as the role with this id, and that role;
    None if it is no such role. Reads all users."""
    for profile in users.find_all():
        for role in responses.own_roles(profile):
            if role.role_id == role_id:
                return profile, role
    return None
