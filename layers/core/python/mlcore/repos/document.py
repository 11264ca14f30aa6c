"""A META item (the item of an entity itself) that holds the entity's key-value data in map
attributes. Data that do not fit into the item are in child items.

Readers want everything in one item, but DynamoDB limits an item to 400 KB. Up to
:data:`INLINE_BYTES`, every value is in its map on the item. Beyond that, a new key goes to a child
item that is marked ``outside``, and the item's ``overflow`` attribute tells readers to look there.
A key never moves back, and is never in both the item and a child item:

- A write that moves keys out is a transaction over the item and the children, and requires the
  item's ``version`` to be the one it read.
- A write that does not move keys requires ``overflow`` to be unchanged.
- Once a map has overflowed, no key is added to it: new keys go to child items, and a key in the map
  is written only while it is still there.

A map may be stored as one text (:class:`mlcore.db.attribute_types.TextMapAttribute`), which is
always rewritten as a whole, on the condition of the version that was read. That suits a single
writer; a concurrent writer turns it into a map again, whose keys have separate conditions.

Child items *without* the mark are derived: the indexer makes them from the maps, and this module
ignores them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, NamedTuple

from mlcore.db.attribute_types import TextMapAttribute
from mlcore.db.expression import Raw, Update, string
from mlcore.db.keys import Key
from mlcore.db.table import key_of_item, table
from mlcore.ids import now_ms
from mlcore.models.base import ChildItem, MetaItem

INLINE_BYTES = 300_000
"""Maximum bytes of the keys and values in an item's maps. Leaves room for the other attributes, for
values that grow in place and for errors in the sizes that concurrent writers estimate."""

ALWAYS_FITS = 8
"""A value in its map may grow by this many bytes even if the item is full: turning into NaN must
not move a metric out."""

MOST_TEXT = 16_000
"""Maximum bytes of a map that a write stores as one text, unless the write is ``compact``; larger
maps are stored as DynamoDB maps."""

Texts = Mapping[str, str]

REPLACE = "replace"
"""The last write wins (tags)."""
KEEP = "keep"
"""A value never changes (params, inputs, models)."""
LATER = "later"
"""The greater text wins (latest metrics)."""


Owner = tuple[str, ...]
"""The ids that the keys of a META item's children are made of, such as (experiment id, run id)."""


class Map:
    """A map attribute of a document, such as the params of a run: its attribute, and how the child
    items are keyed and built that hold the values for which the document has no room."""

    def __init__(
        self,
        field: TextMapAttribute[Any],
        rule: str,
        prefix: Callable[[Owner], str],
        key_of: Callable[[Owner, str], Key],
        child: Callable[[Key, str, str], Raw],
        *,
        as_text: bool = False,
    ) -> None:
        """
        Args:
            field: the map attribute.
            rule: what happens to a value that exists: a write replaces it (:data:`REPLACE`), never
                changes it (:data:`KEEP`), or replaces it if the new text is greater
                (:data:`LATER`).
            prefix: sort-key prefix of the child items.
            key_of: returns the key of the child item that holds the value of a map key.
            child: (item key, key, text) → the child item.
            as_text: whether a small map with a single writer is stored as one text.
        """
        self.field = field
        self.attribute = field.attr_name
        self.rule = rule
        self.prefix = prefix
        self.key_of = key_of
        self.child = child
        self.as_text = as_text

    def is_text(self, item: Raw) -> bool:
        """Whether an item stores this map attribute as one text, or lacks it; always False if
        ``as_text`` is False."""
        return self.as_text and self.field.is_text(item)

    def whole(self, texts: Texts, most: int) -> Raw | None:
        """Returns the attribute value that stores all entries of this map, such as a run's tags, in
        the item of the entity.

        The value is one string of the joined entries if the map is one with ``as_text`` and the
        string takes at most ``most`` bytes (0 for never); else a DynamoDB map. Returns None in
        place of a string without entries: the attribute is then absent, because an empty string
        would be no map.
        """
        if not self.as_text or not most:
            return self.field.raw(texts)
        if not texts:
            return None
        text = self.field.text(texts)
        return string(text) if len(text.encode()) <= most else self.field.raw(texts)


_OVERFLOW: Final = MetaItem.overflow.attr_name

Maps = Mapping[str, Map]
"""By attribute, in the order in which they may fill an item."""


class Document(NamedTuple):
    item: Raw
    owner: Owner
    maps: Maps
    outside: Mapping[str, Mapping[str, str]]
    """Texts that are only in child items, by map and key."""

    @property
    def overflowed(self) -> list[str]:
        """Names of the entity's maps (such as its tags) that have, or once had, values in child
        items, because the entity's item had no room for them."""
        return (MetaItem.of(self.item).overflow or "").split()

    def texts(self, attribute: str) -> dict[str, str]:
        """Returns all keys and values of one map of the entity, such as its tags, from its item and
        from its child items."""
        inline = self.maps[attribute].field.of(self.item)
        return {**self.outside.get(attribute, {}), **inline} if self.outside else inline

    def inline(self) -> dict[str, dict[str, str]]:
        """Returns the keys and values of maps (such as tags) in the item itself, by map's name."""
        return {name: entry.field.of(self.item) for name, entry in self.maps.items()}

    @property
    def version(self) -> int:
        """The version of the document's item: how often it was written."""
        return MetaItem.of(self.item).version

    @property
    def key(self) -> Key:
        return key_of_item(self.item)


def load(item: Raw, owner: Owner, maps: Maps) -> Document:
    """Returns the document of a META item (the item of an entity itself); one more Query per MB for
    each map that overflowed.

    Args:
        item: the META item.
        owner: the ids of which the keys of its child items are made.
        maps: the maps that entities of this kind have.
    """
    if _OVERFLOW not in item:
        return Document(item, owner, maps, {})
    names = (MetaItem.of(item).overflow or "").split()
    outside = table.parallel([partial(_read_outside, maps[name], owner) for name in names])
    return Document(item, owner, maps, dict(zip(names, outside, strict=True)))


def initial(owner: Owner, maps: Maps, contents: Mapping[str, Texts]) -> tuple[Raw, list[Raw]]:
    """Returns the attributes with the maps of a new META item (the item of an entity itself), and
    the child items to write before it, which hold the values that do not fit into the item.

    Args:
        owner: the ids in the keys of the child items, such as (experiment id, run id).
        maps: the maps that entities of this kind have.
        contents: the keys and values of each map.
    """
    attributes: Raw = {}
    children: list[Raw] = []
    overflowed = []
    size = 0
    for entry in maps.values():
        inline: dict[str, str] = {}
        for key, text in contents.get(entry.attribute, {}).items():
            weight = weight_of(key, text)
            if size + weight <= INLINE_BYTES:
                inline[key] = text
                size += weight
            else:
                children.append(outside_item(owner, entry, key, text))
                if entry.attribute not in overflowed:
                    overflowed.append(entry.attribute)
        whole = entry.whole(inline, MOST_TEXT)
        if whole is not None:
            attributes[entry.attribute] = whole
    attributes[MetaItem.bytes.attr_name] = MetaItem.bytes.raw(size)
    if overflowed:
        attributes[MetaItem.overflow.attr_name] = MetaItem.overflow.raw(" ".join(overflowed))
    return attributes, children


def touch(update: Update) -> None:
    """Adds to ``update``, an update of a META item (the item of an entity itself), the item's next
    version and the time of the update. Every write of such an item must do so."""
    update.add(MetaItem.version, 1)
    update.set(MetaItem.updated_at, now_ms())


def outside_item(owner: Owner, entry: Map, key: str, text: str) -> Raw:
    child = entry.child(entry.key_of(owner, key), key, text)
    return {
        **child,
        ChildItem.outside.attr_name: ChildItem.outside.raw(True),
        ChildItem.text.attr_name: ChildItem.text.raw(text),
    }


def _read_outside(entry: Map, owner: Owner) -> dict[str, str]:
    pk = entry.key_of(owner, "").pk
    children = map(ChildItem.of, table.query_all(pk, prefix=entry.prefix(owner)))
    return {child.key: child.text or "" for child in children if child.outside is not None}


def weight(contents: Mapping[str, Texts]) -> int:
    """Returns how many bytes, at most, the keys and values of maps (such as tags) take in a
    DynamoDB item."""
    return sum(weight_of(key, text) for texts in contents.values() for key, text in texts.items())


def weight_of(key: str, text: str) -> int:
    return len(key.encode()) + len(text.encode()) + 8
