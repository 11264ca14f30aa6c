"""Creates, lists, changes and deletes users."""

from __future__ import annotations

from typing import Any

from mlcore import errors
from mlcore.auth.passwords import (
    SERVICE_ACCOUNT_HASH,
    UNMATCHABLE_HASH,
    check_password,
    hash_password,
)
from mlcore.entities.users import Profile
from mlcore.environment import workspaces_enabled
from mlcore.http import Request
from mlcore.limits.shared_checks import check_text
from mlcore.policies import access as policy
from mlcore.repos.users import roles, scim_groups, users
from mlcore.repos.users.users import PasswordChanged, UserExists
from mlcore.responses import users as responses
from mlcore.wire.untyped_message import required, text
from users import messages as m
from users.deletion import delete_everything_of

MINIMUM_PASSWORD_LENGTH = 12
MAX_USERNAME_LENGTH = 255


def create_user(message: m.CreateUser, request: Request) -> dict[str, Any]:
    username, password = text(message, "username"), text(message, "password")
    if not username or not password:
        raise errors.InvalidParameterValue("Username and password cannot be empty.")
    check_text("Username", MAX_USERNAME_LENGTH, username)
    try:
        user = users.create(username, hash_password(checked_password(password)), is_admin=False)
    except UserExists:
        raise errors.ResourceAlreadyExists(f"User (username={username}) already exists.") from None
    return {"user": responses.profile(Profile(user, (), ()))}


def get_user(message: m.UserName, request: Request) -> dict[str, Any]:
    username = text(message, "username")
    profile = users.get_profile(username)
    return {"user": responses.profile(profile)}


def list_users(message: m.Nothing, request: Request) -> dict[str, Any]:
    """Lists users with the roles that the caller may see: all roles for administrators and for the
    caller's own user, else those in workspaces that the caller administers. If workspaces are on,
    callers who are not administrators see only themselves and the users who have a role in the
    request's workspace.

    Raises:
        EndpointNotFound: the server has no login. The UI's page for administrators shows the
            message; an empty list would make it ask for the current user without end.
    """
    if request.access is None:
        raise errors.EndpointNotFound("There are no users: this server has no login.")
    access = request.caller()
    profiles = users.find_all()
    roles_by_id = {role.role_id: role for role in roles.find_all()} if profiles else {}
    has_groups = any(profile.group_ids for profile in profiles)
    groups = {group.group_id: group for group in scim_groups.find_all()} if has_groups else {}
    administered = policy.administrated_workspaces(access.profile(), access.roles())
    answered = []
    for profile in profiles:
        role_ids = [*profile.role_ids]
        for group_id in profile.group_ids:
            role_ids += groups[group_id].role_ids if group_id in groups else ()
        assigned_roles = [
            roles_by_id[role_id] for role_id in dict.fromkeys(role_ids) if role_id in roles_by_id
        ]
        held = (*responses.own_roles(profile), *assigned_roles)
        if (
            workspaces_enabled()
            and not access.is_admin
            and profile.user.username != access.username
            and all(role.workspace != request.workspace for role in held)
        ):
            continue
        visible = [
            role
            for role in held
            if access.is_admin
            or profile.user.username == access.username
            or role.workspace in administered
        ]
        visible_json = [responses.role(role) for role in visible]
        answered.append({**responses.user(profile.user), "roles": visible_json})
    return {"users": sorted(answered, key=lambda user: user["id"])}


def get_current_user(message: m.Nothing, request: Request) -> dict[str, Any]:
    user = request.caller().profile().user
    return {"user": responses.user(user), "is_basic_auth": request.caller().by_password}


def update_password(message: m.UpdatePassword, request: Request) -> dict[str, Any]:
    """Changes a password. To change their own, users must send the current one too, so an open
    browser session is not enough."""
    username, password = text(message, "username"), required(message, "password")
    is_own, current = request.caller().username == username, message.current_password
    if is_own and not current:
        raise errors.InvalidParameterValue(
            "Current password is required when changing your own password."
        )
    stored = users.get(username).password_hash
    if is_own:
        if not check_password(str(current), stored or UNMATCHABLE_HASH):
            raise errors.InvalidParameterValue("Current password does not match.")
        if password == current:
            raise errors.InvalidParameterValue(
                "New password must differ from the current password."
            )
    if stored == SERVICE_ACCOUNT_HASH:
        raise errors.InvalidParameterValue(
            f"{username} is a service account, which logs in by its API keys only."
        )
    hashed = hash_password(checked_password(password))
    try:
        users.update(username, password_hash=hashed, replaces=stored if is_own else None)
    except PasswordChanged:  # so the current one is another one now
        raise errors.InvalidParameterValue("Current password does not match.") from None
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
    delete_everything_of(users.get_profile(username))
    return {}


def checked_password(password: Any) -> str:
    """Returns the password if it is long enough. Raises InvalidParameterValue if it is not."""
    if not isinstance(password, str) or len(password) < MINIMUM_PASSWORD_LENGTH:
        raise errors.InvalidParameterValue(
            f"Password must be at least {MINIMUM_PASSWORD_LENGTH} characters."
        )
    return password
