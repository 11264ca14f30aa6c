"""Exchanges the authorization code of an OpenID issuer for the claims of who signed in."""

from __future__ import annotations

import base64
import hmac
from collections.abc import Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from mlcore.observability import logger
from mlcore.oidc.issuer_documents import fetch_json
from mlcore.oidc.tokens import MAXIMUM_TOKEN, verified_claims
from signin import issuers
from signin.issuers import Endpoints, Issuer

_REQUIRED: Final = ("exp", "iat", "iss", "aud", "sub")


class SignInRefused(Exception):
    """Raised if the issuer's answer does not prove who signed in. The message is for the log."""


class Proof(NamedTuple):
    """The verified claims and the ID token of the person who signed in."""

    claims: Mapping[str, Any]
    id_token: str


def exchange(
    issuer: Issuer, endpoints: Endpoints, *, code: str, verifier: str, nonce: str, address: str
) -> Proof:
    """Exchanges an authorization code for the verified claims of the person who signed in.

    Args:
        address: the redirect URI with which the sign-in began.

    Raises:
        SignInRefused: the issuer rejects the code, or its token is not valid for this server.
        OSError, ValueError: the issuer does not answer, or its answer is malformed.
        TemporarilyUnavailable: the client secret cannot be read.
    """
    form = {
        "grant_type": "authorization_code",
        "code": code,
        "redirect_uri": address,
        "code_verifier": verifier,
    }
    headers = {}
    secret = issuers.client_secret(issuer)
    if secret and endpoints.takes_basic:
        login = f"{quote(issuer.client_id, safe='')}:{quote(secret, safe='')}"
        headers["Authorization"] = f"Basic {base64.b64encode(login.encode()).decode()}"
    else:
        form |= {"client_id": issuer.client_id} | ({"client_secret": secret} if secret else {})
    answer = fetch_json(endpoints.token, headers, form)
    token = answer.get("id_token")
    if not isinstance(token, str) or not 0 < len(token) <= MAXIMUM_TOKEN:
        raise SignInRefused("the answer has no ID token")
    claims = verified_claims(token, issuers.keys_of(issuer), issuer.client_id, _REQUIRED)
    if claims is None:
        raise SignInRefused("the ID token is not valid")
    if not hmac.compare_digest(str(claims.get("nonce", "")).encode(), nonce.encode()):
        raise SignInRefused("the ID token has another nonce")
    audiences = claims["aud"]
    authorized = claims.get("azp", issuer.client_id if isinstance(audiences, str) else None)
    if isinstance(audiences, list) and len(audiences) == 1 and "azp" not in claims:
        authorized = issuer.client_id
    if authorized != issuer.client_id:
        raise SignInRefused("the ID token was issued to another client")
    return Proof(_complete(issuer, endpoints, claims, answer.get("access_token")), token)


def _complete(
    issuer: Issuer, endpoints: Endpoints, claims: Mapping[str, Any], access_token: Any
) -> Mapping[str, Any]:
    """Returns the claims of the ID token, completed with those that only the issuer's
    user-information endpoint returns, because some issuers keep ID tokens small."""
    is_complete = issuer.username_claim in claims and issuer.groups_claim.split(".")[0] in claims
    if is_complete or not endpoints.user_information or not isinstance(access_token, str):
        return claims
    try:
        more = fetch_json(endpoints.user_information, {"Authorization": f"Bearer {access_token}"})
    except (OSError, ValueError) as error:
        logger.warning("user information cannot be read", extra={"reason": type(error).__name__})
        return claims
    if more.get("sub") != claims["sub"]:
        raise SignInRefused("the user information is about somebody else")
    return {**more, **claims}
