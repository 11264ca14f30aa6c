"""Size of an item as DynamoDB counts it, for requests that write several items and must write none
of them if one is too large."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from mlcore.db import failures
from mlcore.db.expression import Raw

_MAX_BYTES: Final = 400 * 1024
TRANSACTION_OPERATIONS: Final = 100
"""Maximum operations of one TransactWriteItems."""
TRANSACTION_BYTES: Final = 3_500_000
"""Size of the items that one transaction writes; DynamoDB allows 4 MB for the whole request."""


def check(item: Raw) -> None:
    """Raises ItemTooLarge if DynamoDB would not store the item, by :func:`estimate`."""
    if estimate(item) > _MAX_BYTES:
        raise failures.item_too_large()


def estimate(item: Raw) -> int:
    """Returns the size of an item in bytes: never too low, and too high only by some bytes for each
    number."""
    return sum(_text(name) + _bytes(value) for name, value in item.items())


def batches(items: Iterable[Raw], most: int, most_bytes: int) -> Iterator[list[Raw]]:
    """Yields items, in their order, in groups for one request each: at most ``most`` items and
    ``most_bytes`` bytes, but at least one item."""
    batch, size = list[Raw](), 0
    for item in items:
        more = estimate(item)
        if batch and (len(batch) == most or size + more > most_bytes):
            yield batch
            batch, size = [], 0
        batch.append(item)
        size += more
    if batch:
        yield batch


def _bytes(value: Raw) -> int:
    ((kind, content),) = value.items()
    return _content_bytes(kind, content)


def _content_bytes(kind: str, content: Any) -> int:
    if kind == "M":
        return 3 + sum(1 + _text(name) + _bytes(inner) for name, inner in content.items())
    if kind == "L":
        return 3 + sum(1 + _bytes(inner) for inner in content)
    if kind == "S":
        return _text(content)
    if kind == "N":
        return len(content) + 1  # two digits take one byte, and the number one or two more
    if kind == "B":
        return len(content)
    return 1 if kind in {"BOOL", "NULL"} else sum(_content_bytes(kind[0], one) for one in content)


def _text(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())
