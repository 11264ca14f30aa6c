"""The public keys of an OpenID Connect issuer, fetched over HTTPS and cached for an hour."""

from __future__ import annotations

from typing import Any, Final

import jwt

from mlcore.errors import TemporarilyUnavailable
from mlcore.observability import logger
from mlcore.oidc.issuer_documents import configuration_of, fetch_json
from mlcore.process_cache import Moment

KEPT_SECONDS: Final = 3_600
RETRY_SECONDS: Final = 30
"""Unknown key ids, and failed fetches, cause at most one fetch in this many seconds: anybody can
send tokens."""
MAXIMUM_KEYS: Final = 100
MINIMUM_RSA_BITS: Final = 2_048

_ALGORITHMS: Final = {"RSA": "RS256", "EC": "ES256"}


class SigningKeys:
    """The public keys of an OpenID Connect issuer, by id. While the issuer does not answer, the
    last keys stay in use."""

    __slots__ = ("_fetched_at", "_keys", "issuer")

    def __init__(self, issuer: str) -> None:
        self.issuer = issuer
        self._keys: dict[str, jwt.PyJWK] | None = None
        self._fetched_at: Moment | None = None

    def find(self, kid: str) -> jwt.PyJWK | None:
        """Returns the identity provider's signing key with the id ``kid``; None if it has no usable
        key with this id. Fetches the provider's keys if the known ones are old or (at most every
        RETRY_SECONDS) lack this id. A failed fetch is only logged.

        Raises:
            TemporarilyUnavailable: this process has never fetched the provider's keys.
        """
        age = None if self._fetched_at is None else self._fetched_at.age()
        is_known = self._keys is not None and kid in self._keys
        if age is None or age > KEPT_SECONDS or (age > RETRY_SECONDS and not is_known):
            self._fetch()
        if self._keys is None:
            raise TemporarilyUnavailable("The identity provider's keys cannot be fetched.")
        return self._keys.get(kid)

    def _fetch(self) -> None:
        self._fetched_at = Moment.now()
        try:
            configuration = configuration_of(self.issuer)
            jwks = fetch_json(str(configuration["jwks_uri"]))["keys"]
            usable = {jwk["kid"]: key for jwk in jwks[:MAXIMUM_KEYS] if (key := _key(jwk))}
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            logger.warning("the issuer's keys cannot be fetched", extra={"reason": str(error)})
            return
        self._keys = usable


def _key(jwk: dict[str, Any]) -> jwt.PyJWK | None:
    """Converts a JWK to a key for RS256 or ES256; None for a JWK of another kind or of too few
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
