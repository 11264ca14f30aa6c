"""Computes the child items that a source item must have: pure functions from images (an item before
or after a write, as in a stream record) to keys and items.

A stream record only shows *which* keys changed; the child items are computed from the source item
as it is when the record is handled. So records that come twice, late or out of order result in the
same items.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from mlcore.db.attribute_types import texts_in
from mlcore.db.expression import Raw
from mlcore.db.keys import Key
from mlcore.models.base import ChildItem
from mlcore.repos.document import REPLACE, Maps, Owner
from mlcore.search.text_tokens import IndexToken

Changes = set[tuple[str, str]]
"""Changed entries of an item's maps, as (map attribute, key) pairs."""


class SourceEntity(NamedTuple):
    """An entity whose texts are in the full-text index: an experiment, a run or a trace."""

    experiment_id: str
    kind: str
    entity_id: str


class Posting(NamedTuple):
    """A token (a word, value or trigram) in one field of an entity, as the full-text index has
    it."""

    field: str
    token: IndexToken


class Writes(NamedTuple):
    """The derived items (child and index items) of an entity to put, and the keys of those to
    remove."""

    puts: list[Raw]
    careful_puts: list[Raw]
    """Child items to put, unless the stored item holds a value of its own (the value may have been
    moved out of the source since the source was read)."""
    deletes: list[Key]
    """Keys of child items whose entry the source no longer has; to remove unless they hold a value
    of their own."""
    removals: Sequence[Key] = ()
    """Keys of index items to remove after the puts; they never hold a value of their own."""
    removed_postings: Sequence[tuple[SourceEntity, Posting]] = ()
    """The removed postings, whose tokens the dictionary may no longer need."""
    after: Sequence[Raw] = ()
    """Items to put after all of ``puts``: child items whose existence tells readers that their
    value is indexed."""


def changes(old: Raw | None, new: Raw | None, maps: Iterable[str]) -> Changes:
    """Returns the entries of an item's maps that a write changed, as (map, key) pairs.

    Args:
        old, new: the item before and after the write, as in a stream record; None for no item.
        maps: the names of the maps to compare.
    """
    changed: Changes = set()
    for attribute in maps:
        if (old or {}).get(attribute) == (new or {}).get(attribute):
            continue
        before = content(old, attribute)
        after = content(new, attribute)
        changed |= {
            (attribute, key)
            for key in before.keys() | after.keys()
            if before.get(key) != after.get(key)
        }
    return changed


def children(current: Raw | None, owner: Owner, maps: Maps, changed: Changes) -> Writes:
    """Returns the writes that make child items equal to the changed entries of their source item's
    maps: puts for entries that exist, removals for the others.

    Args:
        current: the source item as it is now; None if it was removed.
        owner: the id of the source, which is part of the child items' keys.
        maps: how to make the child items of each map.
        changed: the changed entries, as (map, key) pairs.
    """
    puts: list[Raw] = []
    careful_puts: list[Raw] = []
    deletes: list[Key] = []
    texts = {name: content(current, name) for name in {attribute for attribute, _ in changed}}
    for attribute, key in sorted(changed):
        entry = maps[attribute]
        text = texts[attribute].get(key)
        if text is not None:
            child = entry.child(entry.key_of(owner, key), key, text)
            (careful_puts if entry.rule == REPLACE else puts).append(child)
        else:
            deletes.append(entry.key_of(owner, key))
    return Writes(puts, careful_puts, deletes)


def is_outside(item: Raw) -> bool:
    """Whether a child item holds a value (such as a tag) that the run, trace or experiment item to
    which it belongs had no room for."""
    return ChildItem.of(item).outside is not None


def content(image: Raw | None, attribute: str) -> dict[str, str]:
    """Returns the keys and values of one map of an item, as it was read or as in a stream record;
    empty without the item or the map."""
    return {} if image is None or attribute not in image else texts_in(image[attribute])
