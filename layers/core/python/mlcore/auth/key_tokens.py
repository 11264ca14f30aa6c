"""The form of this server's API keys, and the headers in which requests bring them."""

from __future__ import annotations

import base64
import contextlib
import re
from typing import Final

TOKEN: Final = re.compile(r"mlk_(?P<key>[1-9][0-9]{0,15}-[0-9a-f]{20})_(?P<secret>[\w-]{43})", re.A)
KEY_HEADERS: Final = ("x-api-key", "x-goog-api-key")
"""Headers in which the SDKs of Anthropic and Google send their API key. Calls of the AI gateway may
bring a key of this server there."""

_BASIC: Final = "basic"


def keys_in(value: str) -> frozenset[str]:
    """Returns the API keys that a text holds, such as the value of a header: anywhere in it, or in
    what HTTP Basic encodes. They need not exist."""
    scheme, _, encoded = value.strip().partition(" ")
    if scheme.lower() == _BASIC:
        with contextlib.suppress(ValueError):
            value = base64.b64decode(encoded).decode("utf-8", "replace")
    return frozenset(match[0] for match in TOKEN.finditer(value))
