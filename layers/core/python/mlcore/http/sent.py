"""The raw request: what API Gateway passed on, before it is parsed.

Only parsers read it. A route's parser makes one object of it, and the policy, the function and what
hides parts of the answer all get that object (``tests/arch/test_one_reading.py``).
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

from mlcore import errors

Event = Mapping[str, Any]


class Sent(NamedTuple):
    """A request as it was sent."""

    method: str
    path: str
    headers: Mapping[str, str]
    """Names in lower case."""
    event: Event
    parameters: Mapping[str, str] = MappingProxyType({})
    """The values of the path's variables, by the route that was found."""

    def pairs(self) -> list[tuple[str, str]]:
        """The arguments of the query string, in order."""
        return parse_qsl(self.event.get("rawQueryString") or "", keep_blank_values=True)

    def query(self) -> dict[str, list[str]]:
        """The arguments of the query string, each with all its values."""
        found: dict[str, list[str]] = {}
        for name, value in self.pairs():
            found.setdefault(name, []).append(value)
        return found

    def arguments(self) -> dict[str, str]:
        """The arguments of the query string; of one that is repeated, the first value."""
        return dict(reversed(self.pairs()))

    def has_query(self) -> bool:
        return bool(self.event.get("rawQueryString"))

    def has_body(self) -> bool:
        return bool(self.event.get("body"))

    def body(self) -> bytes:
        """The body's bytes. Raises InvalidParameterValue: it is not the Base64 that it claims."""
        body: str = self.event.get("body") or ""
        if not self.event.get("isBase64Encoded"):
            return body.encode()
        try:
            return base64.b64decode(body, validate=True)
        except (binascii.Error, ValueError):
            raise errors.InvalidParameterValue("The request body is not Base64.") from None

    def text(self) -> str:
        """The body as text. Raises InvalidParameterValue: it is not UTF-8."""
        body: str = self.event.get("body") or ""
        if not self.event.get("isBase64Encoded"):
            return body
        try:
            return base64.b64decode(body, validate=True).decode()
        except (binascii.Error, ValueError):
            raise errors.InvalidParameterValue("The request body is not UTF-8 text.") from None

    def body_is_incomplete(self) -> bool:
        """Whether the body is not what the client sent: a proxy dropped it for its size, or API
        Gateway decoded bytes as text because their Content-Type says text."""
        body: str = self.event.get("body") or ""
        if not body:
            return self.headers.get("content-length", "0") != "0"
        return not self.event.get("isBase64Encoded") and "\ufffd" in body

    def cookie(self, name: str) -> str:
        """The value of a cookie, empty without one."""
        for cookie in self.event.get("cookies") or ():
            found, _, value = cookie.strip().partition("=")
            if found == name and value:
                return str(value)
        return ""


Parse = Callable[[Sent], Any]
"""Makes the one object of a request that its policy, its function and its redaction get. Raises
MlflowError."""


def nothing(_sent: Sent) -> None:
    """The parser of a route whose answer depends on nothing that the request says."""
