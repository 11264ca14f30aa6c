"""The form of this server's API keys, and further headers in which requests may send them."""

from __future__ import annotations

import base64
import contextlib
import re
from typing import Final

TOKEN: Final = re.compile(r"mlk_(?P<key>[1-9][0-9]{0,15}-[0-9a-f]{20})_(?P<secret>[\w-]{43})", re.A)
KEY_HEADERS: Final = ("x-api-key", "x-goog-api-key")
"""Headers in which the SDKs of Anthropic and Google send their API key. In calls of the AI gateway
they may contain a key of this server."""

_BASIC: Final = "basic"


def keys_in(value: str) -> frozenset[str]:
    """Returns the texts with the form of API keys in a text such as the value of a header: anywhere
    in it or, for HTTP Basic, in the decoded credentials. Whether such keys exist is not checked."""
    scheme, _, encoded = value.strip().partition(" ")
    if scheme.lower() == _BASIC:
        with contextlib.suppress(ValueError):
            value = base64.b64decode(encoded).decode("utf-8", "replace")
    return frozenset(match[0] for match in TOKEN.finditer(value))
