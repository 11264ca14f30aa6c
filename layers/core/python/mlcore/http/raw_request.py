"""The raw request as API Gateway passed it, before parsing.

Only parsers read it. A route's parser makes one message from it, which the policy, the function and
the redaction of the answer all use (``tests/arch/test_one_reading.py``).
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple, Self
from urllib.parse import parse_qsl

from mlcore import errors
from mlcore.wire import Message

Event = Mapping[str, Any]

_NOT_UTF_8: Final = "The request body is not UTF-8 text."


class Sent(NamedTuple):
    """A request as it arrived, before it is parsed."""

    method: str
    path: str
    headers: Mapping[str, str]
    """Headers, with names in lower case."""
    event: Event
    parameters: Mapping[str, str] = MappingProxyType({})
    """The path variables of the matched route."""

    def pairs(self) -> list[tuple[str, str]]:
        """Returns (name, value) of the query parameters in their order."""
        return parse_qsl(self.query_text(), keep_blank_values=True)

    def query(self) -> dict[str, list[str]]:
        """Returns the query parameters, each with all its values."""
        values: dict[str, list[str]] = {}
        for name, value in self.pairs():
            values.setdefault(name, []).append(value)
        return values

    def arguments(self) -> dict[str, str]:
        """Returns the parameters of the request's query string, each with its first value."""
        return dict(reversed(self.pairs()))

    def query_text(self) -> str:
        """Returns the request's query string as sent, percent-encoded; empty if there is none."""
        return self.event.get("rawQueryString") or ""

    def has_body(self) -> bool:
        return bool(self.event.get("body"))

    def body(self) -> bytes:
        """Returns the request's body as bytes. Raises InvalidParameterValue if it is invalid
        Base64."""
        body: str = self.event.get("body") or ""
        if not self.event.get("isBase64Encoded"):
            return body.encode()
        try:
            return base64.b64decode(body, validate=True)
        except (binascii.Error, ValueError):
            raise errors.InvalidParameterValue("The request body is not Base64.") from None

    def text(self) -> str:
        """Returns the request's body as text. Raises InvalidParameterValue if it is not UTF-8."""
        body: str = self.event.get("body") or ""
        if not self.event.get("isBase64Encoded"):
            if "\ufffd" in body and self._has_replaced_bytes(body):
                raise errors.InvalidParameterValue(_NOT_UTF_8)
            return body
        try:
            return base64.b64decode(body, validate=True).decode()
        except (binascii.Error, ValueError):
            raise errors.InvalidParameterValue(_NOT_UTF_8) from None

    def _has_replaced_bytes(self, body: str) -> bool:
        """Whether API Gateway replaced bytes that are not UTF-8 by U+FFFD, which needs three bytes:
        the text is then longer than what the client sent. False if that length is unknown."""
        sent = self.headers.get("content-length", "")
        return sent.isdecimal() and int(sent) != len(body.encode("utf-8", "surrogatepass"))

    def body_is_incomplete(self) -> bool:
        """Whether the body probably differs from what the client sent: dropped by a proxy for its
        size (empty in spite of its Content-Length), or binary data that API Gateway decoded as text
        because of the Content-Type (a text with U+FFFD)."""
        body: str = self.event.get("body") or ""
        if not body:
            return self.headers.get("content-length", "0") != "0"
        return not self.event.get("isBase64Encoded") and "\ufffd" in body

    def cookies(self) -> tuple[str, ...]:
        """Returns all cookies as they were sent, ``name=value`` each."""
        return tuple(map(str, self.event.get("cookies") or ()))

    def cookie(self, name: str) -> str:
        """Returns the value of the request's cookie with this name; empty if it is missing."""
        return next(filter(None, self.cookie_values(name)), "")

    def cookie_values(self, name: str) -> list[str]:
        """Returns the values of all cookies with this name. There may be several, because a page of
        a neighbouring host may have set one, too."""
        return cookie_values(self.event, name)


def cookie_values(event: Event, name: str) -> list[str]:
    """Returns the values of the cookies with this name in an event of API Gateway, for a function
    or for an authorizer."""
    pairs = (str(cookie).strip().partition("=") for cookie in event.get("cookies") or ())
    return [value for cookie_name, _, value in pairs if cookie_name == name]


class SentMessage(Message):
    """Base of parsed requests that are made from more than the JSON body and the query string."""

    @classmethod
    def of_sent(cls, sent: Sent) -> Self:
        """Parses a raw request into the message. Raises MlflowError if the request is not valid."""
        raise NotImplementedError


Parse = Callable[[Sent], Any]
"""Parses a request into the object for its policy, function and redaction. Raises MlflowError."""


def nothing(_sent: Sent) -> None:
    """Parses nothing and returns None: for routes whose answers do not depend on the request."""
