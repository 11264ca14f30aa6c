"""What the child items of a source item must be: pure functions from images to keys and items.

A stream record only tells *which* keys changed; what is written for them comes from the source as
it is when the record is handled. Records that come twice, late or out of order therefore lead to
the same items.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from mlcore.db import keys
from mlcore.db.attributes import texts_in
from mlcore.db.expression import Raw
from mlcore.db.keys import Key
from mlcore.models.base import ChildItem, Item
from mlcore.repos.document import REPLACE, Maps, Owner
from mlcore.search.text import Token

Changes = set[tuple[str, str]]
"""(map attribute, key) pairs."""


class Entity(NamedTuple):
    """What full text finds."""

    experiment_id: str
    kind: str
    entity_id: str


class Posting(NamedTuple):
    """One of an entity's texts holds a token."""

    field: str
    token: Token


class Writes(NamedTuple):
    puts: list[Raw]
    careful_puts: list[Raw]
    """Child items whose key may have left the source since it was read. An item that holds a value
    of its own must stay."""
    deletes: list[Key]
    """Child items whose key is gone from the source. An item that holds a value of its own must
    stay."""
    removals: Sequence[Key] = ()
    """Index items that only ever repeat a source, to be taken away when the puts are done."""
    left: Sequence[tuple[Entity, Posting]] = ()
    """What the removals leave, so that the dictionary may have no use for it."""
    before: Sequence[Key] = ()
    """Index items to be taken away before anything is put."""
    after: Sequence[Raw] = ()
    """What is put when all of ``puts`` are there, because it says that they are, or because one of
    them says where it is."""


def changes(old: Raw | None, new: Raw | None, maps: Iterable[str]) -> Changes:
    """The keys of the maps that differ between two images of one item."""
    found: Changes = set()
    for attribute in maps:
        if (old or {}).get(attribute) == (new or {}).get(attribute):
            continue
        before = content(old, attribute)
        after = content(new, attribute)
        found |= {
            (attribute, key)
            for key in before.keys() | after.keys()
            if before.get(key) != after.get(key)
        }
    return found


def children(current: Raw | None, owner: Owner, maps: Maps, changed: Changes) -> Writes:
    """The child items for the changed keys, given the source item as it is now."""
    puts: list[Raw] = []
    careful_puts: list[Raw] = []
    deletes: list[Key] = []
    texts = {name: content(current, name) for name in {attribute for attribute, _ in changed}}
    for attribute, key in sorted(changed):
        entry = maps[attribute]
        text = texts[attribute].get(key)
        if text is not None:
            child = entry.child(entry.place(owner, key), key, text)
            (careful_puts if entry.rule == REPLACE else puts).append(child)
        else:
            deletes.append(entry.place(owner, key))
    return Writes(puts, careful_puts, deletes)


def is_outside(item: Raw) -> bool:
    """Whether an item holds a value of its own, for which its source has no room."""
    return ChildItem.of(item).outside is not None


def is_earlier_metric(item: Raw) -> bool:
    """Whether an earlier version put it for a metric inside its run; it goes when the run is
    settled again."""
    return Item.of(item).type == keys.RUN_METRIC.name and not is_outside(item)


def content(image: Raw | None, attribute: str) -> dict[str, str]:
    """One map of an image: its texts by key."""
    return {} if image is None or attribute not in image else texts_in(image[attribute])
