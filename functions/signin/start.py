"""Begins a sign-in: redirects the browser to the issuer (authorization code with PKCE)."""

from __future__ import annotations

import base64
import hashlib
import secrets
from typing import Final, NamedTuple

from mlcore.http import Request, Response
from mlcore.observability import logger
from mlcore.sign_in import cookie_headers, cookies
from signin import issuers, pages
from signin.addresses import base_url, callback_address, cookie_name, with_query
from signin.issuers import Issuer
from signin.messages import OWN_ISSUER, Start

SECONDS: Final = 600
"""How many seconds a person may take to sign in at the issuer."""


class SignInAttempt(NamedTuple):
    """A sign-in that has begun, as the browser's cookie holds it."""

    state: str
    nonce: str
    verifier: str
    """PKCE's secret (RFC 7636)."""
    issuer: str
    """The name of the issuer to which the browser was sent."""
    issuer_url: str
    return_to: str
    expires_at: int


def start(message: Start, request: Request) -> Response:
    """Redirects the browser to the chosen issuer. If there are several issuers and the request
    names none, returns the page on which people choose."""
    known = issuers.find_all()
    if message.issuer is None and len(known) > 1:
        return pages.choice(known.values(), message.return_to)
    issuer = known.get(message.issuer or OWN_ISSUER)
    if issuer is None:
        return pages.refused(404, "There is no such way to sign in.")
    try:
        endpoint = issuers.endpoints_of(issuer).authorization
    except (OSError, ValueError) as error:
        logger.warning("the issuer's configuration is unusable", extra={"reason": str(error)})
        return pages.refused(503, "The service that knows your account does not answer.")
    return _redirect(issuer, endpoint, message.return_to, base_url(request.headers))


def _redirect(issuer: Issuer, endpoint: str, return_to: str, base: str) -> Response:
    state, nonce, verifier = (secrets.token_urlsafe(32) for _ in range(3))
    attempt = SignInAttempt(
        state,
        nonce,
        verifier,
        issuer.name,
        issuer.issuer,
        return_to,
        issuers.now() + SECONDS,
    )
    challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest())
    query = {
        "response_type": "code",
        "client_id": issuer.client_id,
        "redirect_uri": callback_address(base, issuer.name),
        "scope": issuer.scopes,
        "state": state,
        "nonce": nonce,
        "code_challenge": challenge.rstrip(b"=").decode(),
        "code_challenge_method": "S256",
    }
    name = cookie_name(cookie_headers.SIGN_IN, base)
    cookie = cookie_headers.set_cookie(name, cookies.seal(attempt, name), SECONDS)
    return pages.redirect(with_query(endpoint, query), cookie)
