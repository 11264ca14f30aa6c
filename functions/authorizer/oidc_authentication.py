"""Authentication by bearer tokens of an OpenID Connect issuer. Tokens are verified with the
issuer's keys and never stored.

The first valid token of a user creates the user, without a password and without grants.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from mlcore.auth.claims import values_of
from mlcore.entities.users import User
from mlcore.oidc.signing_keys import SigningKeys
from mlcore.oidc.tokens import MAXIMUM_TOKEN, username_of, verified_claims
from mlcore.repos.users import users


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
        KeyError: issuer or audience is not set. Without the audience, tokens that the issuer made
            for other applications would be accepted.
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
        values = verified_claims(token.strip(), keys, claims.audience)
        return None if values is None else _user_of(values, claims)

    return authenticate


def _user_of(values: Mapping[str, Any], claims: Claims) -> User | None:
    """Returns the user that a verified token names, created if missing; None if it names no valid
    one. Raises PermissionDenied as :func:`mlcore.repos.users.users.ensure` does."""
    username = username_of(values, claims.username)
    if username is None:
        return None
    member_of = values_of(values, claims.groups)
    user = users.ensure(username)
    is_admin = user.is_admin or (bool(claims.administrators) and claims.administrators in member_of)
    return user._replace(is_admin=is_admin)
