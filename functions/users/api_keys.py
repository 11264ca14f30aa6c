"""Creates, lists, rotates and revokes API keys, and creates service accounts."""

from __future__ import annotations

import os
from typing import Any, Final

from mlcore import errors
from mlcore.auth import api_key_scopes as key_scopes
from mlcore.auth.passwords import SERVICE_ACCOUNT_HASH
from mlcore.auth.permissions import GATEWAY_ENDPOINT
from mlcore.auth.requirements import Requirement
from mlcore.entities.users import ApiKey, Profile, User
from mlcore.environment import AUTHENTICATION, IAM
from mlcore.http import Request
from mlcore.ids import now_ms
from mlcore.limits.shared_checks import check_text
from mlcore.repos.gateway import configuration
from mlcore.repos.users import api_keys, users
from mlcore.repos.users.api_keys import TokenOfKey
from mlcore.repos.users.users import UserExists
from mlcore.responses import users as responses
from mlcore.wire.untyped_message import integer, text
from users import messages as m
from users.service import MAX_USERNAME_LENGTH

MAX_NAME_LENGTH: Final = 255
MAX_SECONDS: Final = 10 * 366 * 86_400
DEFAULT_OVERLAP_SECONDS: Final = 86_400


def create_key(message: m.CreateKey, request: Request) -> dict[str, Any]:
    """Creates an API key and returns it with its token, which is never shown again. Without scopes
    the key has all rights of its owner; without ``expires_in_seconds`` it does not expire."""
    _check_caller(request)
    _check_mode()
    name = _name(message, "name", "Name of an API key", MAX_NAME_LENGTH)
    owner = _owner(message, request)
    if owner.username != request.caller().username and not _is_service_account(owner):
        raise errors.InvalidParameterValue(
            "Administrators make keys for themselves and for service accounts. Other users make "
            "their own."
        )
    scopes = _scopes(message, request)
    if key_scopes.SCIM in (scopes or ()) and not owner.is_admin:
        raise errors.InvalidParameterValue(
            "A key with the scope 'scim' needs an owner who is an administrator, such as a service "
            "account that was made one."
        )
    lifetime = _seconds(message, "expires_in_seconds", 1)
    expires_at = None if lifetime is None else now_ms() + lifetime * 1_000
    return _shown_once(api_keys.create(owner, name, request.workspace, scopes, expires_at))


def list_keys(message: m.ListKeys, request: Request) -> dict[str, Any]:
    """Lists the caller's API keys; for administrators those of any user."""
    _check_caller(request)
    return {"keys": [responses.api_key(key) for key in api_keys.find_all(_owner(message, request))]}


def delete_key(message: m.KeyId, request: Request) -> dict[str, Any]:
    """Revokes an API key, from the next request on. A repeated request gets the same response."""
    _check_caller(request)
    key_id = text(message, "key_id")
    if api_keys.owner_of(key_id) is None:
        raise api_keys.missing(key_id)
    api_keys.delete(key_id)
    return {}


def rotate_key(message: m.RotateKey, request: Request) -> dict[str, Any]:
    """Creates an API key with the owner, name, scopes and lifetime of an existing key; the existing
    key expires after an overlap (by default :data:`DEFAULT_OVERLAP_SECONDS`). An expired key cannot
    be rotated."""
    _check_caller(request)
    _check_mode()
    key_id, now = text(message, "key_id"), now_ms()
    overlap = _seconds(message, "overlap_seconds", 0)
    old = api_keys.find(key_id)
    if old is None or (old.expires_at is not None and old.expires_at <= now):
        raise api_keys.missing(key_id)
    owner = users.get(old.username)
    is_callers = owner.username == request.caller().username
    if owner.user_id != old.user_id or not (is_callers or _is_service_account(owner)):
        raise api_keys.missing(key_id)
    lifetime = None if old.expires_at is None else _lifetime(old)
    expires_at = None if lifetime is None else now + lifetime
    made = api_keys.create(owner, old.name, old.workspace, old.scopes, expires_at)
    seconds = DEFAULT_OVERLAP_SECONDS if overlap is None else overlap
    api_keys.expire(old, now + seconds * 1_000)
    return _shown_once(made)


def create_service_account(message: m.ServiceAccount, request: Request) -> dict[str, Any]:
    """Creates a service account: a user without a password, who logs in by API keys only."""
    _check_caller(request)
    _check_mode()
    username = _name(message, "username", "Username", MAX_USERNAME_LENGTH)
    if ":" in username:
        raise errors.InvalidParameterValue("The name of a service account contains no colon.")
    try:
        user = users.create(username, SERVICE_ACCOUNT_HASH, is_admin=False)
    except UserExists:
        raise errors.ResourceAlreadyExists(f"User (username={username}) already exists.") from None
    return {"user": responses.profile(Profile(user, (), ()))}


def _name(
    message: m.CreateKey | m.ServiceAccount, parameter: str, described: str, maximum: int
) -> str:
    """Returns the name in a parameter. Raises InvalidParameterValue for a blank or long one."""
    name = text(message, parameter)
    if not name.strip():
        raise errors.InvalidParameterValue(f"Parameter '{parameter}' must not be empty.")
    check_text(described, maximum, name)
    return name


def _check_caller(request: Request) -> None:
    """Raises PermissionDenied for an administrator who logged in by an API key. The policy
    :mod:`mlcore.policies.api_keys` refuses other users in that case."""
    if request.caller().key_id:
        raise errors.PermissionDenied("API keys are managed after a login without an API key.")


def _check_mode() -> None:
    if os.environ.get(AUTHENTICATION) == IAM:
        raise errors.FeatureDisabled(
            "API keys cannot be used with Authentication=iam: API Gateway accepts AWS signatures "
            "only. Give the machine an IAM role instead."
        )


def _owner(message: m.CreateKey | m.ListKeys, request: Request) -> User:
    named = message.has("username")
    return users.get(text(message, "username") if named else request.caller().username)


def _is_service_account(user: User) -> bool:
    return user.password_hash == SERVICE_ACCOUNT_HASH


def _lifetime(key: ApiKey) -> int:
    """Returns the lifetime with which a key was created, in milliseconds."""
    return max((key.expires_at or 0) - key.created_at, 1_000)


def _scopes(message: m.CreateKey, request: Request) -> tuple[str, ...] | None:
    """Returns the key's scopes, with gateway endpoints by id, so that a renamed endpoint stays in
    scope. None stands for all rights. Raises InvalidParameterValue for an endpoint that is missing
    or that the caller may not use."""
    if not message.has("scopes") or message.scopes is None:
        return None
    scopes = key_scopes.checked(message.scopes)
    return tuple(_with_id(scope, request) for scope in scopes)


def _with_id(scope: str, request: Request) -> str:
    kind, _, name = scope.partition(":")
    if kind != "gateway":
        return scope
    settings = configuration.read(request.workspace)
    endpoint = settings.endpoint_named(name) or settings.endpoints.get(name)
    if endpoint is None or not request.caller().allows(
        Requirement(GATEWAY_ENDPOINT, endpoint.endpoint_id, "use")
    ):
        raise errors.InvalidParameterValue(f"There is no endpoint {name!r} that you may use.")
    return f"gateway:{endpoint.endpoint_id}"


def _seconds(message: m.CreateKey | m.RotateKey, name: str, least: int) -> int | None:
    if not message.has(name) or getattr(message, name) is None:
        return None
    seconds = integer(message, name)
    if not least <= seconds <= MAX_SECONDS:
        raise errors.InvalidParameterValue(
            f"Parameter '{name}' must be from {least} to {MAX_SECONDS} seconds."
        )
    return seconds


def _shown_once(made: TokenOfKey) -> dict[str, Any]:
    return {"key": responses.api_key(made.key), "token": made.token}
