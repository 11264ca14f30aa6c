"""Authentication by API keys, as a bearer token or as the password of HTTP Basic."""

from __future__ import annotations

from typing import Any

from authorizer.basic_authentication import credentials
from mlcore.auth.api_key_scopes import KeyLimits
from mlcore.repos.users import api_keys


def token_in(authorization: str) -> tuple[str, str] | None:
    """Returns the username ("" with a bearer token) and the API key in an Authorization header;
    None if the header holds no API key. Another method then checks it."""
    scheme, _, value = authorization.partition(" ")
    if scheme.lower() == "bearer":
        name, token = "", value.strip()
    else:
        name, token = credentials(authorization) or ("", "")
    return (name, token) if api_keys.is_token(token) else None


def authenticate(username: str, token: str) -> dict[str, Any]:
    """Returns the fields about the caller for the authorizer's context: the key's owner, whether
    the owner is an administrator, and the id and the scopes of the key. Empty if the key is
    refused.

    The field with the owner is ``key_user`` and not ``username``: functions of a release without
    API keys then find no caller, instead of a caller without the key's limits.

    Args:
        username: sent beside the key; it must be the owner's name, unless it is empty.
    """
    verified = api_keys.verify(token)
    if verified is None:
        return {}
    key, user = verified
    if username not in ("", user.username):
        return {}
    limits = "" if key.scopes is None else KeyLimits(key.workspace, key.scopes).encoded()
    return {
        "key_user": user.username,
        "key_id": key.key_id,
        "is_admin": user.is_admin,
        "scopes": limits,
    }
