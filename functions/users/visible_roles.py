"""The roles of a user, as far as a caller may know of them."""

from __future__ import annotations

from mlcore.entities.users import Profile, Role
from mlcore.http import Request
from mlcore.policies.access import administrated
from mlcore.repos.users import roles, users
from mlcore.responses import users as responses


def of_user(username: str, request: Request) -> tuple[Profile, list[Role]]:
    """A user, and their roles with those that stand for their own grants: all of them for
    themselves and administrators, for others those of the workspaces that they administrate.

    Raises:
        ResourceDoesNotExist: there is no such user.
    """
    found = users.get_profile(username)
    listed = of_profile(found)
    access = request.caller()
    if not (access.is_admin or access.username == username):
        visible = administrated(access.profile(), access.roles())
        listed = [role for role in listed if role.workspace in visible]
    return found, listed


def of_profile(profile: Profile) -> list[Role]:
    """All of them."""
    return [*responses.own_roles(profile), *roles.find_many(profile.role_ids)]
