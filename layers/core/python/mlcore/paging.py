"""Page tokens: opaque text that holds the position of the last row given and belongs to one query.

A position is a list of JSON scalars that the query's own order compares, so pages stay right while
rows come, go and change: the next page holds what comes after that position then.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
from collections.abc import Callable, Iterable, Sequence
from hashlib import blake2b
from typing import TypeVar

from mlcore.errors import InvalidParameterValue

T = TypeVar("T")

Position = Sequence[object]

RESPONSE_WEIGHT = 3_500_000
"""About as many bytes of JSON as a page may have: a Lambda response ends at 6 MB. A token leads
on."""


def token(position: Position, query: object = None) -> str:
    """The token for the page after ``position``; ``query`` is whatever makes up the query (JSON
    values)."""
    content = json.dumps([_digest(query), list(position)], separators=(",", ":"))
    return base64.urlsafe_b64encode(content.encode()).decode()


def position_of(text: str, query: object = None) -> list[object] | None:
    """The position in a token; None for the empty token of a first page.

    Raises:
        InvalidParameterValue: the text is no token, or a token of another query.
    """
    if not text:
        return None
    try:
        decoded = base64.urlsafe_b64decode(text.encode())
    except (binascii.Error, ValueError) as error:
        raise InvalidParameterValue("Invalid page token, could not base64-decode") from error
    try:
        digest, position = json.loads(decoded)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidParameterValue(f"Invalid page token, decoded value={decoded!r}") from error
    if digest != _digest(query) or not isinstance(position, list):
        raise InvalidParameterValue("Invalid page token: it belongs to another request.")
    if not all(map(is_scalar, position)):
        raise InvalidParameterValue("Invalid page token")
    return position


def is_scalar(value: object) -> bool:
    """Whether the value is one that a position can hold, as no forged one may break a query."""
    if isinstance(value, str):
        return value.isascii() or not any("\ud800" <= character <= "\udfff" for character in value)
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, int) and abs(value) <= 2**63


def _digest(query: object) -> str:
    return blake2b(json.dumps(query, sort_keys=True).encode(), digest_size=6).hexdigest()


def fitting(rows: list[T], weigh: Callable[[T], int]) -> list[T]:
    """As many of the first rows as fit a response, one at least."""
    weight = 0
    for count, row in enumerate(rows):
        weight += weigh(row)
        if weight > RESPONSE_WEIGHT and count:
            return rows[:count]
    return rows


def weight_of(texts: Iterable[str]) -> int:
    """The bytes that texts may take in JSON, at most."""
    texts = list(texts)
    whole = "".join(texts)
    if whole.isascii():  # as they mostly are
        return len(whole)
    return sum(len(text) if text.isascii() else 12 * len(text) for text in texts)
