"""Encodes response bodies as JSON text."""

from __future__ import annotations

import json
import math
import secrets
from collections.abc import Mapping
from json.encoder import encode_basestring_ascii
from typing import Any, Final

_SEPARATORS: Final = (",", ":")
_PLACEHOLDER: Final = secrets.token_hex(16)
"""Marks the position of an :class:`Encoded` while the JSON around it is encoded. Random, so no
request can contain it."""

quoted: Final = encode_basestring_ascii
"""Encodes a text as a JSON string in ASCII."""


class Encoded:
    """A part of a response body that is JSON text already, so that long lists need not be built as
    dicts first."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text

    def __bool__(self) -> bool:
        """False for an empty list or object."""
        return self.text not in ("[]", "{}")


def encode(body: Mapping[str, Any]) -> str:
    """Returns the body as compact JSON; NaN and infinities become "NaN", "Infinity" and
    "-Infinity", as in protobuf's JSON."""
    parts: list[str] = []

    def put_aside(value: Any) -> str:
        if value.__class__ is not Encoded:
            raise TypeError(f"{type(value).__name__} is no JSON")
        parts.append(value.text)
        return _PLACEHOLDER

    encoder = json.JSONEncoder(
        separators=_SEPARATORS, allow_nan=False, check_circular=False, default=put_aside
    )
    try:
        text = encoder.encode(body)
    except ValueError:
        parts.clear()
        text = encoder.encode(_quote_non_finite(body))
    if not parts:
        return text
    around = text.split(f'"{_PLACEHOLDER}"')
    return "".join([piece for pair in zip(around, [*parts, ""], strict=True) for piece in pair])


def number(value: float) -> str:
    """Returns a double as the JSON text that :func:`encode` writes for it."""
    return repr(value) if math.isfinite(value) else f'"{_quote_non_finite(value)}"'


def _quote_non_finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, dict):
        return {key: _quote_non_finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_quote_non_finite(item) for item in value]
    return value
