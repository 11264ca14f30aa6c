"""What a service of AWS checks of a signed request, by "Create a signed AWS API request" of the IAM
User Guide; shares no code with what signs.

API Gateway and S3 differ in how they spell the path, and S3 refuses headers of its own that are
not signed.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import NamedTuple
from urllib.parse import parse_qsl, quote, unquote

_ALGORITHM = "AWS4-HMAC-SHA256"
_HEADER = re.compile(
    rf"{_ALGORITHM} Credential=([^,]+), ?SignedHeaders=([^,]+), ?Signature=([0-9a-f]{{64}})"
)
_SKEW_SECONDS = 300
_UNSIGNED = "UNSIGNED-PAYLOAD"


class Wrong(Exception):
    """The request is refused; the message says why."""


class Sent(NamedTuple):
    """A request as it came. Header names are lower-case."""

    method: str
    path: str
    """Percent-encoded."""
    query: str
    headers: Mapping[str, str]
    body: bytes


class Caller(NamedTuple):
    access_key: str
    secret_key: str
    token: str | None = None


class Service:
    """One service in one region, with one caller whom it knows."""

    def __init__(self, name: str, region: str, caller: Caller) -> None:
        self._name, self._region, self._caller = name, region, caller

    def check(self, sent: Sent) -> None:
        """Raises Wrong."""
        query = dict(parse_qsl(sent.query, keep_blank_values=True))
        by_query = "X-Amz-Signature" in query
        by_header = "authorization" in sent.headers
        if by_query and by_header:
            raise Wrong("Only one auth mechanism allowed")
        if by_query:
            self._check_query(sent, query)
        elif by_header:
            self._check_header(sent)
        else:
            raise Wrong("Missing Authentication Token")

    def _check_header(self, sent: Sent) -> None:
        match = _HEADER.fullmatch(sent.headers["authorization"])
        if match is None:
            raise Wrong("Authorization header requires a signature")
        moment = sent.headers.get("x-amz-date", "")
        if abs(_seconds(moment) - time.time()) > _SKEW_SECONDS:
            raise Wrong("Signature expired")
        if sent.headers.get("x-amz-security-token") != self._caller.token:
            raise Wrong("The security token included in the request is invalid.")
        digest = hashlib.sha256(sent.body).hexdigest()
        declared = sent.headers.get("x-amz-content-sha256", digest)
        if declared not in (digest, _UNSIGNED):
            raise Wrong("The provided x-amz-content-sha256 does not match what was computed")
        credential, names, signature = match.groups()
        self._compare(sent, moment, credential, names, declared, signature)

    def _check_query(self, sent: Sent, query: Mapping[str, str]) -> None:
        moment = query.get("X-Amz-Date", "")
        if not 0 <= time.time() - _seconds(moment) <= int(query.get("X-Amz-Expires", "0")):
            raise Wrong("Request has expired")
        if query.get("X-Amz-Security-Token") != self._caller.token:
            raise Wrong("The security token included in the request is invalid.")
        credential, names = query.get("X-Amz-Credential", ""), query.get("X-Amz-SignedHeaders", "")
        body = _UNSIGNED if self._name == "s3" else hashlib.sha256(sent.body).hexdigest()
        self._compare(sent, moment, credential, names, body, query["X-Amz-Signature"])

    def _compare(
        self, sent: Sent, moment: str, credential: str, signed: str, body: str, signature: str
    ) -> None:
        scope = f"{moment[:8]}/{self._region}/{self._name}/aws4_request"
        if credential != f"{self._caller.access_key}/{scope}":
            raise Wrong(f"Credential should be scoped to {scope}, not {credential}")
        names = signed.split(";")
        if "host" not in names:
            raise Wrong("'Host' must be a 'SignedHeader'")
        extra = {header for header in sent.headers if header.startswith("x-amz-")} - set(names)
        if extra:
            raise Wrong(f"There were headers present in the request which were not signed: {extra}")
        lines = "".join(
            f"{name}:{' '.join(sent.headers.get(name, '').split())}\n" for name in names
        )
        canonical = "\n".join(
            (sent.method, self._path(sent.path), _query(sent.query), lines, signed, body)
        )
        hashed = hashlib.sha256(canonical.encode()).hexdigest()
        text = f"{_ALGORITHM}\n{moment}\n{scope}\n{hashed}"
        key = f"AWS4{self._caller.secret_key}".encode()
        for part in scope.split("/"):
            key = hmac.digest(key, part.encode(), "sha256")
        if not hmac.compare_digest(hmac.digest(key, text.encode(), "sha256").hex(), signature):
            raise Wrong(
                "The request signature we calculated does not match the signature you provided."
                f" The canonical request should have been {canonical!r}"
            )

    def _path(self, path: str) -> str:
        """S3 encodes a name once; all others encode what was sent once more."""
        return quote(unquote(path) if self._name == "s3" else path, safe="/~")


def _query(query: str) -> str:
    """Names and values encoded anew (a plus sign is one, not a space), and sorted."""
    pairs = []
    for part in query.split("&") if query else ():
        name, _, value = part.partition("=")
        if name != "X-Amz-Signature":
            pairs.append((quote(unquote(name), safe="-_.~"), quote(unquote(value), safe="-_.~")))
    return "&".join(f"{name}={value}" for name, value in sorted(pairs))


def _seconds(moment: str) -> float:
    try:
        return datetime.strptime(moment, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC).timestamp()
    except ValueError:
        raise Wrong("AWS authentication requires a valid Date") from None
