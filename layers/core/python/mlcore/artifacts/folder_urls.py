"""Signs and checks URLs of files in the local folder store, in place of S3's presigned URLs.

A URL allows one method (GET with HEAD, or PUT) on one key until a time. A URL for GET also states
the content type and the content disposition of the response.
"""

from __future__ import annotations

import hashlib
import hmac
import time
from collections.abc import Mapping
from typing import Final
from urllib.parse import parse_qsl, quote, unquote, urlencode

PREFIX: Final = "/artifact-storage/"
"""Path prefix under which the local runner serves such URLs."""

_SIGNATURE: Final = "signature"


class Signer:
    """Signs URLs of files in the local folder store and checks their signatures, with one secret
    key."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    def url(self, method: str, key: str, seconds: int, origin: str, **arguments: str) -> str:
        arguments["expires"] = str(int(time.time()) + seconds)
        arguments[_SIGNATURE] = self._signature(method, key, arguments)
        return f"{origin}{PREFIX}{quote(key)}?{urlencode(arguments)}"

    def check(self, method: str, path: str, query: str) -> tuple[str, dict[str, str]] | None:
        """Checks a URL, given by path and query as they were sent. Returns the file's key and the
        URL's arguments; None if it has expired or its signature does not match the method, key and
        arguments."""
        arguments = dict(parse_qsl(query, keep_blank_values=True))
        signature = arguments.pop(_SIGNATURE, "")
        key = unquote(path.removeprefix(PREFIX))
        expires = arguments.get("expires", "")
        expected = self._signature("GET" if method == "HEAD" else method, key, arguments)
        if not hmac.compare_digest(signature.encode(), expected.encode()):
            return None
        return (key, arguments) if int(expires) >= time.time() else None

    def _signature(self, method: str, key: str, arguments: Mapping[str, str]) -> str:
        signed = "\n".join((method, key, urlencode(sorted(arguments.items()))))
        return hmac.new(self._secret, signed.encode(), hashlib.sha256).hexdigest()
