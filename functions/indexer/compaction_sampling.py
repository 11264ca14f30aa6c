"""Decides by sampling when to check whether something must be compacted: about once per N bytes
written, without a counter."""

from __future__ import annotations

from typing import Final

from mlcore.db.keys import Key

_DIGITS: Final = 8


def is_due(key: Key, probability: float) -> bool:
    """Decides whether the write of an item triggers a check for compaction: yes for about the given
    share of all keys.

    The decision depends only on the share and on the digest at the end of the item's key, so a
    redelivered record decides the same.

    Args:
        probability: the share; from 1 on, each write triggers a check.
    """
    return int(key.sk[-_DIGITS:], 16) / 16**_DIGITS < probability
