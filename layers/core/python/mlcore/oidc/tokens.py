"""Verifies tokens (JWTs) that an OpenID Connect issuer has signed. Tokens are never logged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import jwt

from mlcore.observability import logger
from mlcore.oidc.signing_keys import SigningKeys

MAXIMUM_TOKEN: Final = 16_384
"""Maximum length of a token in characters; a longer one is refused."""
MAXIMUM_NAME: Final = 255
SKEW_SECONDS: Final = 60


def verified_claims(
    token: str, keys: SigningKeys, audience: str, required: Sequence[str] = ("exp", "iss", "aud")
) -> Mapping[str, Any] | None:
    """Returns the claims of a token that the issuer of ``keys`` signed for the audience and that is
    valid now; None for any other token. Raises TemporarilyUnavailable as
    :meth:`SigningKeys.find`."""
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
            audience=audience,
            issuer=keys.issuer,
            leeway=SKEW_SECONDS,
            options={"require": list(required)},
        )
    except (jwt.PyJWTError, ValueError) as error:
        # Not the message: some contain parts of the token.
        logger.info("a token was refused", extra={"reason": type(error).__name__})
        return None
    return values


def username_of(values: Mapping[str, Any], claim: str) -> str | None:
    """Returns the user name in the claim ``claim`` of verified claims. None if it is no text of 1
    to 255 characters, or an e-mail address that the issuer calls unverified."""
    username = values.get(claim)
    if not isinstance(username, str) or not 0 < len(username) <= MAXIMUM_NAME:
        return None
    # Amazon Cognito's user information has the string "true" or "false".
    if claim == "email" and values.get("email_verified") in (False, "false"):
        return None
    return username
