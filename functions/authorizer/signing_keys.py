"""The public keys of an OpenID Connect issuer, fetched over HTTPS and cached for an hour."""

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
"""Unknown key ids cause at most one fetch in this many seconds: anybody can send them."""
TIMEOUT_SECONDS: Final = 3.0
MAXIMUM_BYTES: Final = 262_144
MAXIMUM_KEYS: Final = 100
MINIMUM_RSA_BITS: Final = 2_048

_ALGORITHMS: Final = {"RSA": "RS256", "EC": "ES256"}


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Refuses redirects: keys are fetched only from the address that the issuer names."""

    def redirect_request(self, *_arguments: Any) -> None:
        return None


_opener: Final = urllib.request.build_opener(_NoRedirect)


class SigningKeys:
    """The issuer's keys by id. While the issuer does not answer, the last keys stay in use."""

    __slots__ = ("_fetched_at", "_issuer", "_keys")

    def __init__(self, issuer: str) -> None:
        self._issuer = issuer
        self._keys: dict[str, jwt.PyJWK] = {}
        self._fetched_at: float | None = None

    def find(self, kid: str) -> jwt.PyJWK | None:
        """Returns the key with this id; None if the issuer has none. Fetches the keys if needed."""
        age = None if self._fetched_at is None else time.monotonic() - self._fetched_at
        if age is None or age > KEPT_SECONDS or (age > RETRY_SECONDS and kid not in self._keys):
            self._fetch()
        return self._keys.get(kid)

    def _fetch(self) -> None:
        self._fetched_at = time.monotonic()
        try:
            configuration = _fetch_json(
                f"{self._issuer.rstrip('/')}/.well-known/openid-configuration"
            )
            if configuration.get("issuer") != self._issuer:
                raise ValueError("the configuration belongs to another issuer")
            jwks = _fetch_json(str(configuration["jwks_uri"]))["keys"]
            usable = {jwk["kid"]: key for jwk in jwks[:MAXIMUM_KEYS] if (key := _key(jwk))}
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            logger.warning("the issuer's keys cannot be fetched", extra={"reason": str(error)})
            return
        self._keys = usable


def _fetch_json(url: str) -> dict[str, Any]:
    parts = urlsplit(url)
    if parts.scheme != "https" and parts.hostname not in {"127.0.0.1", "localhost"}:
        raise ValueError("keys are fetched over HTTPS only")
    with _opener.open(url, timeout=TIMEOUT_SECONDS) as response:
        text = response.read(MAXIMUM_BYTES + 1)
    if len(text) > MAXIMUM_BYTES:
        raise ValueError("the document is too large")
    document = json.loads(text)
    if not isinstance(document, dict):
        raise ValueError("the document is not a JSON object")
    return document


def _key(jwk: dict[str, Any]) -> jwt.PyJWK | None:
    """Returns the key of a JWK for RS256 or ES256; None for a JWK of another kind or of too few
    bits."""
    algorithm = _ALGORITHMS.get(str(jwk.get("kty")))
    if algorithm is None or not isinstance(jwk.get("kid"), str):
        return None
    if jwk.get("use", "sig") != "sig" or jwk.get("alg", algorithm) != algorithm:
        return None
    try:
        key = jwt.PyJWK(jwk, algorithm=algorithm)
    except jwt.PyJWTError:
        return None
    if algorithm == "RS256" and key.key.key_size < MINIMUM_RSA_BITS:
        return None
    if algorithm == "ES256" and key.key.curve.name != "secp256r1":
        return None
    return key
