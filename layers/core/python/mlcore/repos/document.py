"""A META item that carries its entity's key-value data as map attributes, and spills what it cannot
hold.

Reads want everything in one item; DynamoDB takes 400 KB. Up to :data:`INLINE_BYTES` every value is
in its map on the item. Beyond, a new key goes to a child item of its own that is marked
``outside``, and the item's ``overflow`` attribute makes readers look there. A key never moves back,
and is never in both places:

* a write that spills is a transaction over both places, and requires the item's ``version`` to be
  the one it read;
* a write that does not spill requires ``overflow`` to be unchanged;
* once a map has overflowed, no key is added to it: new ones go outside, and a key in the map is
  written only where it still is.

A map may be stored as one text (:class:`mlcore.db.attributes.TextMapAttribute`), which is written
whole, by whoever read the version that is there. So it is for one writer at a time: one who was not
the first makes it a map again, whose keys have conditions of their own.

Child items *without* the mark are derived: the indexer makes them of the maps; nothing reads
them here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, NamedTuple

from mlcore.db.attributes import TextMapAttribute
from mlcore.db.expression import Raw, Update, string
from mlcore.db.keys import Key
from mlcore.db.table import key_in, table
from mlcore.ids import now_ms
from mlcore.models.base import ChildItem, MetaItem

INLINE_BYTES = 300_000
"""Room is left for the other attributes, for values that grow in place and for racing writers'
estimates."""

ALWAYS_FITS = 8
"""Bytes by which a value in its map may grow even so: the mark of a NaN moves no metric out."""

MOST_TEXT = 16_000
"""Bytes of a map that is sent as a whole at each write; a larger one is sent key by key."""

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
    """One map attribute of a kind of META item."""

    def __init__(
        self,
        field: TextMapAttribute[Any],
        rule: str,
        prefix: Callable[[Owner], str],
        place: Callable[[Owner, str], Key],
        child: Callable[[Key, str, str], Raw],
        *,
        as_text: bool = False,
    ) -> None:
        """
        Args:
            prefix: sort-key prefix of the child items.
            place: where the child item of a key is.
            child: (place, key, text) → the child item.
            as_text: one text where it is small, and one writes at a time.
        """
        self.field = field
        self.attribute = field.attr_name
        self.rule = rule
        self.prefix = prefix
        self.place = place
        self.child = child
        self.as_text = as_text

    def is_text(self, item: Raw) -> bool:
        """Whether an item has it as one text, or empty as if."""
        return self.as_text and self.field.is_text(item)

    def whole(self, texts: Texts, most: int) -> Raw | None:
        """All of it as an attribute value; as one text if that has not more than so many bytes.
        None for no attribute."""
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
    """Texts that live in child items only, by map and key."""

    @property
    def overflowed(self) -> list[str]:
        """The maps that have texts outside."""
        return (MetaItem.of(self.item).overflow or "").split()

    def texts(self, attribute: str) -> dict[str, str]:
        """Everything of one map, wherever it lives."""
        inline = self.maps[attribute].field.of(self.item)
        return {**self.outside.get(attribute, {}), **inline} if self.outside else inline

    def inline(self) -> dict[str, dict[str, str]]:
        """What the item holds of each map."""
        return {name: entry.field.of(self.item) for name, entry in self.maps.items()}

    @property
    def version(self) -> int:
        """Counts the writes of the item."""
        return MetaItem.of(self.item).version

    @property
    def key(self) -> Key:
        return key_in(self.item)


def load(item: Raw, owner: Owner, maps: Maps) -> Document:
    """The document of a META item; a further Query for each map that overflowed."""
    if _OVERFLOW not in item:
        return Document(item, owner, maps, {})
    names = (MetaItem.of(item).overflow or "").split()
    found = table.parallel([partial(_read_outside, maps[name], owner) for name in names])
    return Document(item, owner, maps, dict(zip(names, found, strict=True)))


def initial(owner: Owner, maps: Maps, contents: Mapping[str, Texts]) -> tuple[Raw, list[Raw]]:
    """Attributes of a new META item, and the child items that must be written before it."""
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
    """What every update of an item does: the next version, the time of the write."""
    update.add(MetaItem.version, 1)
    update.set(MetaItem.updated_at, now_ms())


def outside_item(owner: Owner, entry: Map, key: str, text: str) -> Raw:
    child = entry.child(entry.place(owner, key), key, text)
    return {
        **child,
        ChildItem.outside.attr_name: ChildItem.outside.raw(True),
        ChildItem.text.attr_name: ChildItem.text.raw(text),
    }


def _read_outside(entry: Map, owner: Owner) -> dict[str, str]:
    pk = entry.place(owner, "").pk
    children = map(ChildItem.of, table.query_all(pk, prefix=entry.prefix(owner)))
    return {child.key: child.text or "" for child in children if child.outside is not None}


def weight(contents: Mapping[str, Texts]) -> int:
    """Bytes of the texts of maps in their item."""
    return sum(weight_of(key, text) for texts in contents.values() for key, text in texts.items())


def weight_of(key: str, text: str) -> int:
    return len(key.encode()) + len(text.encode()) + 8
