"""A META item that carries its entity's key-value data as map attributes, and spills what it cannot
hold.

Reads want everything in one item; DynamoDB takes 400 KB. Up to :data:`INLINE_BYTES` every value is
in its map on
the item. Beyond, a new key goes to a child item of its own that is marked ``outside``, and the
item's ``overflow``
attribute makes readers look there. A key never moves back, and is never in both places:

* a write that spills requires the item's ``version`` to be the one it read;
* a write that does not spill requires ``overflow`` to be unchanged.

Child items *without* the mark are projections that the indexer makes of the maps; nothing reads
them here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import NamedTuple

from mlcore.db.expression import Condition, Raw, Update, number, string
from mlcore.db.failures import ConditionFailed
from mlcore.db.keys import Key
from mlcore.db.table import table
from mlcore.ids import now_ms

INLINE_BYTES = 300_000
"""Room is left for the other attributes, for values that grow in place and for racing writers'
estimates."""

Texts = Mapping[str, str]

REPLACE = "replace"
"""The last write wins (tags)."""
KEEP = "keep"
"""A value never changes (params)."""
LATER = "later"
"""The greater text wins (latest metrics)."""


class Map(NamedTuple):
    """One map attribute of a kind of META item."""

    attribute: str
    rule: str
    prefix: str
    """Sort-key prefix of its child items."""
    child: Callable[[str, str], Raw]
    """(key, text) → the child item."""
    place: Callable[[str], Key]
    """key → where its child item is."""


class Document(NamedTuple):
    item: Raw
    maps: Mapping[str, Map]
    outside: Mapping[str, Mapping[str, str]]
    """Texts that live in child items only, by map and key."""

    def texts(self, attribute: str) -> dict[str, str]:
        """Everything of one map, wherever it lives."""
        inline = {key: value["S"] for key, value in self.item[attribute]["M"].items()}
        return {**self.outside.get(attribute, {}), **inline} if self.outside else inline

    @property
    def key(self) -> Key:
        return Key(self.item["PK"]["S"], self.item["SK"]["S"])


def load(item: Raw, maps: Iterable[Map]) -> Document:
    """The document of a META item; a further Query for each map that overflowed."""
    by_name = {entry.attribute: entry for entry in maps}
    names = item.get("overflow", {}).get("S", "").split()
    found = table.parallel(
        [partial(_read_outside, item["PK"]["S"], by_name[name]) for name in names]
    )
    return Document(item, by_name, dict(zip(names, found, strict=True)))


def initial(maps: Iterable[Map], contents: Mapping[str, Texts]) -> tuple[Raw, list[Raw]]:
    """Attributes of a new META item, and the child items that must be written before it."""
    attributes: Raw = {}
    children: list[Raw] = []
    overflowed = []
    size = 0
    for entry in maps:
        inline: Raw = {}
        for key, text in contents.get(entry.attribute, {}).items():
            weight = _weight(key, text)
            if size + weight <= INLINE_BYTES:
                inline[key] = string(text)
                size += weight
            else:
                children.append(_outside(entry, key, text))
                if entry.attribute not in overflowed:
                    overflowed.append(entry.attribute)
        attributes[entry.attribute] = {"M": inline}
    attributes["bytes"] = number(size)
    if overflowed:
        attributes["overflow"] = string(" ".join(overflowed))
    return attributes, children


def touch(update: Update) -> None:
    """What every update of an item does: the next version, the time of the write."""
    update.add("version", 1)
    update.set("updated_at", number(now_ms()))


def write(
    document: Document,
    sets: Mapping[str, Texts],
    removals: Iterable[tuple[str, str]],
    complete: Callable[[Update], None],
) -> None:
    """Writes texts into the maps, the caller having left out what its rules make no change.

    Args:
        removals: (map, key) pairs to take away.
        complete: adds the caller's own attributes and conditions.

    Raises:
        ConditionFailed: the item is not as it was read; read again and decide again.
    """
    inline: dict[str, dict[str, str]] = {}
    outside: dict[str, dict[str, str]] = {}
    room = INLINE_BYTES - int(document.item["bytes"]["N"])
    if room < sum(_weight(key, text) for texts in sets.values() for key, text in texts.items()):
        room = INLINE_BYTES - _size(document)
    for attribute, texts in sets.items():
        present = document.item[attribute]["M"]
        elsewhere = document.outside.get(attribute, {})
        for key, text in texts.items():
            growth = _weight(key, text) - (_weight(key, present[key]["S"]) if key in present else 0)
            if key not in elsewhere and (growth <= room or (key in present and growth <= 0)):
                inline.setdefault(attribute, {})[key] = text
                room -= growth
            else:
                outside.setdefault(attribute, {})[key] = text
    gone = list(removals)
    leaving = [
        (attribute, key)
        for attribute, keys in (*outside.items(), *((name, (key,)) for name, key in gone))
        for key in keys
        if key in document.item[attribute]["M"]
    ]
    update = Update()
    _set_each(document, inline, leaving, update)
    _account(document, outside, INLINE_BYTES - room, update)
    complete(update)
    if not update.fits():
        update = Update()
        _set_whole(document, inline, leaving, update)
        _account(document, outside, INLINE_BYTES - room, update)
        complete(update)
    table.update(document.key, update)
    _write_outside(document, outside, gone)


def _set_each(
    document: Document,
    inline: Mapping[str, Texts],
    leaving: Iterable[tuple[str, str]],
    update: Update,
) -> None:
    """Each key on its own, so that writers of different keys never meet."""
    for attribute, texts in inline.items():
        rule = document.maps[attribute].rule
        for key, text in texts.items():
            path = (attribute, key)
            if rule == LATER:
                update.require_absent_or_less(path, string(text))
            elif rule == KEEP:
                update.require_absent(path)
            update.set(path, string(text))
    for path in leaving:
        update.remove(path)


def _set_whole(
    document: Document,
    inline: Mapping[str, Texts],
    leaving: Iterable[tuple[str, str]],
    update: Update,
) -> None:
    """Whole maps, for more keys than an expression holds; only if nobody else has written since the
    read."""
    changed: dict[str, Raw] = {}
    for attribute, key in leaving:
        changed.setdefault(attribute, dict(document.item[attribute]["M"])).pop(key, None)
    for attribute, texts in inline.items():
        content = changed.setdefault(attribute, dict(document.item[attribute]["M"]))
        content.update((key, string(text)) for key, text in texts.items())
    for attribute, content in changed.items():
        update.set(attribute, {"M": content})
    update.require_equal("version", document.item["version"])


def _account(document: Document, outside: Mapping[str, Texts], size: int, update: Update) -> None:
    """The item's version, its size, and which of its maps have texts outside."""
    touch(update)
    update.add("bytes", size - int(document.item["bytes"]["N"]))
    known = document.item.get("overflow", {}).get("S", "")
    added = [name for name in outside if name not in known.split()]
    if outside:
        update.require_equal("version", document.item["version"])
    elif known:
        update.require_equal("overflow", string(known))
    else:
        update.require_absent("overflow")
    if added:
        update.set("overflow", string(" ".join([*known.split(), *added])))


def _write_outside(
    document: Document, outside: Mapping[str, Texts], gone: Iterable[tuple[str, str]]
) -> None:
    calls: list[Callable[[], None]] = []
    for attribute, texts in outside.items():
        entry = document.maps[attribute]
        for key, text in texts.items():
            calls.append(partial(_put_outside, entry, key, text))
    for attribute, key in gone:
        if key in document.outside.get(attribute, {}):
            place = document.maps[attribute].place(key)
            calls.append(partial(_drop, place))
    table.parallel(calls)


def _drop(place: Key) -> None:
    table.delete(place)


def _put_outside(entry: Map, key: str, text: str) -> None:
    condition = Condition()
    if entry.rule == LATER:
        condition.require_absent_or_less("text", string(text))
    elif entry.rule == KEEP:
        condition.require_absent_or_equal("text", string(text))
    try:
        table.put(_outside(entry, key, text), condition if entry.rule != REPLACE else None)
    except ConditionFailed:
        if entry.rule == KEEP:
            raise


def _outside(entry: Map, key: str, text: str) -> Raw:
    return {**entry.child(key, text), "outside": {"BOOL": True}, "text": string(text)}


def _read_outside(pk: str, entry: Map) -> dict[str, str]:
    return {
        item["key"]["S"]: item["text"]["S"]
        for item in table.query_all(pk, prefix=entry.prefix)
        if "outside" in item
    }


def _size(document: Document) -> int:
    return sum(
        _weight(key, value["S"])
        for attribute in document.maps
        for key, value in document.item[attribute]["M"].items()
    )


def _weight(key: str, text: str) -> int:
    return len(key.encode()) + len(text.encode()) + 8
