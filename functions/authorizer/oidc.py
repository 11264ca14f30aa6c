"""Bearer tokens of an OpenID Connect issuer: verified with the issuer's keys, never stored.

A user exists from the first valid token on, without a password and without grants.
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
    """What tokens must say, and what they say about their bearer."""

    issuer: str
    audience: str
    username: str
    """The claim that is the user's name."""
    groups: str
    """The claim that lists the bearer's groups."""
    administrators: str
    """The group whose members administrate; empty for none."""


def authenticator(environment: Mapping[str, str]) -> Callable[[str, str], User | None]:
    """Checks Authorization headers as the environment says.

    Raises:
        KeyError: issuer or audience is not set; without them every token would do.
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
        told = _verified(token.strip(), claims, keys)
        return None if told is None else _bearer(told, claims)

    return authenticate


def _verified(token: str, claims: Claims, keys: SigningKeys) -> Mapping[str, Any] | None:
    try:
        kid = jwt.get_unverified_header(token).get("kid")
        key = keys.find(kid) if isinstance(kid, str) else None
        if key is None:
            return None
        told: Mapping[str, Any] = jwt.decode(
            token,
            key.key,
            # The key decides the algorithm; what the token says of it must agree.
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
    return told


def _bearer(claimed: Mapping[str, Any], claims: Claims) -> User | None:
    username = claimed.get(claims.username)
    if not isinstance(username, str) or not 0 < len(username) <= MAXIMUM_NAME:
        return None
    if claims.username == "email" and claimed.get("email_verified") is False:
        return None  # anybody could have claimed the address
    groups = claimed.get(claims.groups)
    member_of = [groups] if isinstance(groups, str) else groups if isinstance(groups, list) else []
    user = users.ensure(username)
    is_admin = user.is_admin or (bool(claims.administrators) and claims.administrators in member_of)
    return user._replace(is_admin=is_admin)
