"""AWS Signature Version 4 for POST requests without a query string.

The rules are those of "Create a signed AWS API request" in the AWS IAM User Guide.
"""

from __future__ import annotations

import hashlib
import hmac
import time
from typing import Final, NamedTuple

_ALGORITHM: Final = "AWS4-HMAC-SHA256"


class Credentials(NamedTuple):
    """AWS credentials; ``token`` is the session token of temporary credentials."""

    access_key: str
    secret_key: str
    token: str | None = None


class Signer:
    """Signs requests to one AWS service in one region. Caches the signing key, valid for a day."""

    __slots__ = ("_derived", "_region", "_service")

    def __init__(self, service: str, region: str) -> None:
        self._service = service
        self._region = region
        self._derived: tuple[str, str, bytes] = ("", "", b"")

    def sign(
        self, keys: Credentials, headers: dict[str, str], body: bytes, now: float, path: str = "/"
    ) -> None:
        """Signs a POST: adds X-Amz-Date, Authorization and, for temporary credentials,
        X-Amz-Security-Token to its headers.

        Args:
            headers: all of them are signed; must contain ``Host``.
            now: seconds since the epoch.
        """
        moment = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(now))
        headers["X-Amz-Date"] = moment
        if keys.token:
            headers["X-Amz-Security-Token"] = keys.token
        signed = sorted((name.lower(), value) for name, value in headers.items())
        names = ";".join([name for name, _ in signed])
        lines = "".join([f"{name}:{value}\n" for name, value in signed])
        request = f"POST\n{path}\n\n{lines}\n{names}\n{hashlib.sha256(body).hexdigest()}"
        day = moment[:8]
        scope = f"{day}/{self._region}/{self._service}/aws4_request"
        digest = hashlib.sha256(request.encode()).hexdigest()
        text = f"{_ALGORITHM}\n{moment}\n{scope}\n{digest}"
        signature = hmac.digest(self._key(keys.secret_key, day), text.encode(), "sha256").hex()
        headers["Authorization"] = (
            f"{_ALGORITHM} Credential={keys.access_key}/{scope}, "
            f"SignedHeaders={names}, Signature={signature}"
        )

    def _key(self, secret: str, day: str) -> bytes:
        cached = self._derived
        if cached[:2] == (secret, day):
            return cached[2]
        key = b"AWS4" + secret.encode()
        for part in (day, self._region, self._service, "aws4_request"):
            key = hmac.digest(key, part.encode(), "sha256")
        self._derived = (secret, day, key)
        return key
