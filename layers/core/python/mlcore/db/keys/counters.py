"""The primary keys of the counter items, from which new numeric ids are assigned."""

from __future__ import annotations

from mlcore.db.keys.pattern import Key, Pattern

COUNTER = Pattern("counter", "COUNTERS", "COUNTER#<key>", "the last number that was given out")
ID_COUNTER = Pattern("id_counter", "CTR", "CTR", "the last number that each kind of id was given")

COUNTER_PATTERNS = (COUNTER, ID_COUNTER)


def id_counter() -> Key:
    return Key(ID_COUNTER.pk.text, ID_COUNTER.sk.text)


def counter(name: str) -> Key:
    return Key(COUNTER.pk.text, COUNTER.sk.build(name))
