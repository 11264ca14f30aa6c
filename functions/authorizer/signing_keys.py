"""The public keys of an issuer, fetched from it and kept for an hour."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from typing import Any, Final
from urllib.parse import urlsplit

import jwt

from mlcore.observability import logger

KEPT_SECONDS: Final = 3_600
RETRY_SECONDS: Final = 30
"""An unknown key makes us ask at most this often, or strangers could make us ask all the time."""
TIMEOUT_SECONDS: Final = 3.0
MAXIMUM_BYTES: Final = 262_144
MAXIMUM_KEYS: Final = 100
MINIMUM_RSA_BITS: Final = 2_048

_ALGORITHMS: Final = {"RSA": "RS256", "EC": "ES256"}


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """The keys come from where the issuer says, not from where somebody sends us."""

    def redirect_request(self, *_arguments: Any) -> None:
        return None


_opener: Final = urllib.request.build_opener(_NoRedirect)


class SigningKeys:
    """Keys by their ids. With an issuer that does not answer the last ones stay in use."""

    __slots__ = ("_asked", "_issuer", "_keys")

    def __init__(self, issuer: str) -> None:
        self._issuer = issuer
        self._keys: dict[str, jwt.PyJWK] = {}
        self._asked: float | None = None

    def find(self, kid: str) -> jwt.PyJWK | None:
        """The key of an id, None when the issuer has none of that id."""
        age = None if self._asked is None else time.monotonic() - self._asked
        if age is None or age > KEPT_SECONDS or (age > RETRY_SECONDS and kid not in self._keys):
            self._fetch()
        return self._keys.get(kid)

    def _fetch(self) -> None:
        self._asked = time.monotonic()
        try:
            about = _document(f"{self._issuer.rstrip('/')}/.well-known/openid-configuration")
            if about.get("issuer") != self._issuer:
                raise ValueError("the configuration is another issuer's")
            found = _document(str(about["jwks_uri"]))["keys"]
            usable = {key["kid"]: made for key in found[:MAXIMUM_KEYS] if (made := _key(key))}
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            logger.warning("the issuer's keys cannot be had", extra={"reason": str(error)})
            return
        self._keys = usable


def _document(url: str) -> dict[str, Any]:
    parts = urlsplit(url)
    if parts.scheme != "https" and parts.hostname not in {"127.0.0.1", "localhost"}:
        raise ValueError("keys are fetched by HTTPS only")
    with _opener.open(url, timeout=TIMEOUT_SECONDS) as answer:
        text = answer.read(MAXIMUM_BYTES + 1)
    if len(text) > MAXIMUM_BYTES:
        raise ValueError("the document is too large")
    found = json.loads(text)
    if not isinstance(found, dict):
        raise ValueError("the document is no object")
    return found


def _key(jwk: dict[str, Any]) -> jwt.PyJWK | None:
    """A key for signatures with RS256 or ES256; None for any other."""
    algorithm = _ALGORITHMS.get(str(jwk.get("kty")))
    if algorithm is None or not isinstance(jwk.get("kid"), str):
        return None
    if jwk.get("use", "sig") != "sig" or jwk.get("alg", algorithm) != algorithm:
        return None
    try:
        made = jwt.PyJWK(jwk, algorithm=algorithm)
    except jwt.PyJWTError:
        return None
    if algorithm == "RS256" and made.key.key_size < MINIMUM_RSA_BITS:
        return None
    if algorithm == "ES256" and made.key.curve.name != "secp256r1":
        return None
    return made
