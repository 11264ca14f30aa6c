"""Looks at what nobody counts: each item leads to one with a chance, so that there is one in so
many bytes on average."""

from __future__ import annotations

from typing import Final

from mlcore.db.keys import Key

_DIGITS: Final = 8


def is_due(place: Key, chance: float) -> bool:
    """Whether an item leads to a look. Its own digest, which its key ends with, decides: one that
    comes twice says the same."""
    return int(place.sk[-_DIGITS:], 16) / 16**_DIGITS < chance
