"""Page tokens: opaque texts with the position of the last returned row, valid for one query.

A position is a list of JSON scalars that the query's order can compare. So pages stay correct while
rows are added, deleted or changed: the next page holds the rows after the position at that time.
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

MAX_RESPONSE_BYTES = 3_500_000
"""Approximate maximum of a page's JSON; Lambda's limit for a response is 6 MB. The rest is on the
next page."""


def token(position: Position, query: object = None) -> str:
    """Returns the page token for the page after ``position``.

    Args:
        query: identifies the list or search request (JSON values); the token is valid for it only.
    """
    content = json.dumps([_digest(query), list(position)], separators=(",", ":"))
    return base64.urlsafe_b64encode(content.encode()).decode()


def position_of(text: str, query: object = None) -> list[object] | None:
    """Returns the position in a page token; None for an empty token (the first page). Raises
    InvalidParameterValue if the text is not a page token, or one from the answer to a request with
    another ``query`` (such as filter and order)."""
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
    """Whether a value may be in the position of a page token: a valid Unicode text, a finite float
    or a 64-bit integer. Other values, which only forged tokens have, could break a query."""
    if isinstance(value, str):
        return value.isascii() or not any("\ud800" <= character <= "\udfff" for character in value)
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, int) and abs(value) <= 2**63


def _digest(query: object) -> str:
    return blake2b(json.dumps(query, sort_keys=True).encode(), digest_size=6).hexdigest()


def fitting(rows: list[T], weigh: Callable[[T], int], most: int = MAX_RESPONSE_BYTES) -> list[T]:
    """Returns the first of the rows that together take at most ``most`` bytes in a response, at
    least one row. ``weigh`` returns the bytes of a row."""
    weight = 0
    for count, row in enumerate(rows):
        weight += weigh(row)
        if weight > most and count:
            return rows[:count]
    return rows


def weight_of(texts: Iterable[str]) -> int:
    """Estimates the bytes that the texts of one search result take in a page of results (JSON): one
    for each character of an ASCII text, 12 for each character of any other text."""
    texts = list(texts)
    whole = "".join(texts)
    if whole.isascii():  # the usual case
        return len(whole)
    return sum(len(text) if text.isascii() else 12 * len(text) for text in texts)
