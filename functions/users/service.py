"""Users: creating, listing, changing and deleting them."""

from __future__ import annotations

from typing import Any

from mlcore import errors
from mlcore.auth.passwords import NOBODY, check_password, hash_password
from mlcore.entities.users import Profile
from mlcore.http import Request
from mlcore.policies import access as policy
from mlcore.repos.settings import system_tables
from mlcore.repos.users import roles, users
from mlcore.repos.users.users import UserExists
from mlcore.responses import users as responses
from mlcore.wire.parameters import required, text
from users import messages as m

MINIMUM_PASSWORD_LENGTH = 12


def create_user(message: m.CreateUser, request: Request) -> dict[str, Any]:
    username, password = text(message, "username"), text(message, "password")
    if not username or not password:
        raise errors.InvalidParameterValue("Username and password cannot be empty.")
    try:
        made = users.create(username, hash_password(checked_password(password)), is_admin=False)
    except UserExists:
        raise errors.ResourceAlreadyExists(f"User (username={username}) already exists.") from None
    return {"user": responses.profile(Profile(made, (), ()))}


def get_user(message: m.UserName, request: Request) -> dict[str, Any]:
    username = text(message, "username")
    found = users.get_profile(username)
    return {"user": responses.profile(found)}


def list_users(message: m.Nothing, request: Request) -> dict[str, Any]:
    """Each user with the roles that the caller may know of: all for an administrator and for
    oneself, else those of workspaces that the caller administrates.

    Raises:
        EndpointNotFound: nobody logs in. The UI's page for administrators shows what it says; of an
            empty list it would ask without end who its user is.
    """
    if request.access is None:
        raise errors.EndpointNotFound("There are no users: nobody logs in to this server.")
    access = request.caller()
    found = users.find_all()
    assigned = {role.role_id: role for role in roles.find_all()} if found else {}
    administrated = policy.administrated(access.profile(), access.roles())
    listed = []
    for profile in found:
        held = [assigned[role_id] for role_id in profile.role_ids if role_id in assigned]
        visible = [
            role
            for role in (*responses.own_roles(profile), *held)
            if access.is_admin
            or profile.user.username == access.username
            or role.workspace in administrated
        ]
        shown = [responses.role(role) for role in visible]
        listed.append({**responses.user(profile.user), "roles": shown})
    return {"users": sorted(listed, key=lambda user: user["id"])}


def get_current_user(message: m.Nothing, request: Request) -> dict[str, Any]:
    user = request.caller().profile().user
    return {"user": responses.user(user), "is_basic_auth": request.caller().by_password}


def update_password(message: m.UpdatePassword, request: Request) -> dict[str, Any]:
    """Who changes the own password must know it: a browser left open is not enough."""
    username, password = text(message, "username"), required(message, "password")
    if request.caller().username == username:
        current = message.current_password
        if not current:
            raise errors.InvalidParameterValue(
                "Current password is required when changing your own password."
            )
        hashed = users.get(username).password_hash or NOBODY
        if not check_password(str(current), hashed):
            raise errors.InvalidParameterValue("Current password does not match.")
        if password == current:
            raise errors.InvalidParameterValue(
                "New password must differ from the current password."
            )
    users.get(username)
    users.update(username, password_hash=hash_password(checked_password(password)))
    return {}


def update_admin(message: m.UpdateAdmin, request: Request) -> dict[str, Any]:
    username, is_admin = text(message, "username"), required(message, "is_admin")
    if not isinstance(is_admin, bool):
        raise errors.InvalidParameterValue(
            f"Parameter 'is_admin' must be a boolean. Got: {is_admin!r}"
        )
    users.update(username, is_admin=is_admin)
    return {}


def delete_user(message: m.UserName, request: Request) -> dict[str, Any]:
    username = text(message, "username")
    if username == request.caller().username:
        raise errors.BadRequest(
            "Users cannot delete their own account. Ask another admin to delete this user instead."
        )
    found = users.get_profile(username)
    # Before the user, so that a repeated request finds the user and does both.
    system_tables.revoke(username)
    users.delete(found)
    return {}


def checked_password(password: Any) -> str:
    """Raises InvalidParameterValue."""
    if not isinstance(password, str) or len(password) < MINIMUM_PASSWORD_LENGTH:
        raise errors.InvalidParameterValue(
            f"Password must be at least {MINIMUM_PASSWORD_LENGTH} characters."
        )
    return password
