"""Authentication by bearer tokens of an OpenID Connect issuer. Tokens are verified with the
issuer's keys and never stored.

The first valid token creates the user, without a password and without grants.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import jwt

from authorizer.signing_keys import SigningKeys
from mlcore.entities.users import User
from mlcore.observability import logger
from mlcore.repos.users import users

MAXIMUM_TOKEN: Final = 16_384
MAXIMUM_NAME: Final = 255
SKEW_SECONDS: Final = 60


class Claims(NamedTuple):
    """The configuration of a token's claims: the values to check, and the names of the claims that
    describe the user."""

    issuer: str
    audience: str
    username: str
    """Name of the claim with the username."""
    groups: str
    """Name of the claim with the user's groups."""
    administrators: str
    """The group whose members are administrators; empty for none."""


def authenticator(environment: Mapping[str, str]) -> Callable[[str, str], User | None]:
    """Returns the function that authenticates Authorization headers, configured by the environment.

    Raises:
        KeyError: issuer or audience is not set; without them any token would be accepted.
    """
    claims = Claims(
        environment["OIDC_ISSUER"],
        environment["OIDC_AUDIENCE"],
        environment.get("OIDC_USERNAME_CLAIM") or "email",
        environment.get("OIDC_GROUPS_CLAIM") or "groups",
        environment.get("OIDC_ADMIN_GROUP", ""),
    )
    if not (claims.issuer and claims.audience):
        raise KeyError("OIDC_ISSUER and OIDC_AUDIENCE")
    keys = SigningKeys(claims.issuer)

    def authenticate(authorization: str, _address: str) -> User | None:
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() != "bearer" or not 0 < len(token) <= MAXIMUM_TOKEN:
            return None
        values = _verified(token.strip(), claims, keys)
        return None if values is None else _user_of(values, claims)

    return authenticate


def _verified(token: str, claims: Claims, keys: SigningKeys) -> Mapping[str, Any] | None:
    """Returns the claims of a valid token, else None."""
    try:
        kid = jwt.get_unverified_header(token).get("kid")
        key = keys.find(kid) if isinstance(kid, str) else None
        if key is None:
            return None
        values: Mapping[str, Any] = jwt.decode(
            token,
            key.key,
            # The key determines the algorithm; the token's header must agree.
            algorithms=[key.algorithm_name],
            audience=claims.audience,
            issuer=claims.issuer,
            leeway=SKEW_SECONDS,
            options={"require": ["exp", "iss", "aud"]},
        )
    except (jwt.PyJWTError, ValueError) as error:
        # Not the message: some contain parts of the token.
        logger.info("a token was refused", extra={"reason": type(error).__name__})
        return None
    return values


def _user_of(values: Mapping[str, Any], claims: Claims) -> User | None:
    """Returns the user that a verified token names, created if missing; None if it names no valid
    one."""
    username = values.get(claims.username)
    if not isinstance(username, str) or not 0 < len(username) <= MAXIMUM_NAME:
        return None
    if claims.username == "email" and values.get("email_verified") is False:
        return None  # the issuer has not checked that the address is the user's
    groups = values.get(claims.groups)
    member_of = [groups] if isinstance(groups, str) else groups if isinstance(groups, list) else []
    user = users.ensure(username)
    is_admin = user.is_admin or (bool(claims.administrators) and claims.administrators in member_of)
    return user._replace(is_admin=is_admin)
