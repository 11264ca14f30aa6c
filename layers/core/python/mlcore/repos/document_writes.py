"""Writes of documents (items with maps of key-value data): decides which values are written into
the item's maps and which move to child items because the item is full, and sets the conditions."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import NamedTuple

from mlcore.db.expression import MapEntry, Raw, Update, string
from mlcore.db.failures import ConditionFailed
from mlcore.db.table import (
    Delete,
    ItemUpdate,
    Operation,
    Put,
    TransactionFailed,
    key_of_operation,
    table,
)
from mlcore.ids import new_ulid
from mlcore.models.base import ChildItem, MetaItem
from mlcore.repos import document as documents
from mlcore.repos.document import (
    KEEP,
    LATER,
    REPLACE,
    Document,
    Texts,
    outside_item,
    touch,
    weight,
    weight_of,
)

MOVES_TOGETHER = 90
"""Child items that one transaction writes; DynamoDB allows 100 operations."""
BYTES_TOGETHER = 1_000_000
"""Bytes of text that one transaction moves: DynamoDB allows 4 MB, and an outside text counts
twice."""


def write(
    document: Document,
    sets: Mapping[str, Texts],
    removals: Iterable[tuple[str, str]],
    complete: Callable[[Update], None],
    beside: Sequence[Operation] = (),
    *,
    exclusive: bool = False,
    shared: bool = False,
    compact: bool = False,
    returning: bool = False,
    overriding: bool = False,
) -> Raw | None:
    """Writes values into the maps (such as tags) of a document: an entity's item with those of its
    child items that hold map entries. The caller has already left out values that change nothing.

    Args:
        sets: values to set, by map and key.
        removals: (map, key) pairs to remove.
        complete: adds the caller's own attributes and conditions to the update.
        beside: further operations of the same transaction.
        exclusive: fail if the item was written since it was read.
        shared: other processes write at the same time; a changed map that is stored as one text is
            stored as a map.
        compact: store each map as one text if possible, because few writes will follow; the write
            then fails if the item was written since it was read.
        returning: whether the caller wants the item.
        overriding: the values replace others whatever the rules of their maps are; only together
            with ``exclusive``.

    Returns:
        The item after the write, if ``returning`` and if the write was a single UpdateItem or an
        exclusive transaction that moved no value; else None.

    Raises:
        ConditionFailed: another writer has changed the item since it was read, or a condition that
            ``complete`` added does not hold. The caller must read the item and compute the change
            again.
        TransactionFailed: a condition of ``beside`` does not hold; positions are those in
            ``beside``.
        ItemTooLarge: the item would become larger than 400 KB.
    """
    present = document.inline()
    inline, outside, size = _placed(document, present, sets)
    gone = list(removals)
    moves = [
        _Move((name, key), outside_item(document.owner, document.maps[name], key, text))
        for name, texts in outside.items()
        for key, text in texts.items()
    ]
    moves += [_Move(path, None) for path in gone if path[1] in document.outside.get(path[0], {})]
    first, *later = _groups(moves)
    leaving = [
        path for path in (*gone, *(move.path for move in first)) if path[1] in present[path[0]]
    ]

    most = 0 if shared or later else documents.MOST_TEXT
    change = _Change(document, present, inline, leaving, most, overriding=overriding)
    packed = change.all_as_text() if compact and most and not moves else {}

    def update_by(whole: Mapping[str, Raw | None]) -> Update:
        update = Update()
        change.set_each(update, but=whole)
        for name, value in whole.items():
            field = document.maps[name].field
            if value is None:
                update.remove(field)
            else:
                update.set_raw(field, value)
        alone = exclusive or bool(moves) or bool(whole)
        _account(document, list(outside), size, update, exclusive=alone)
        complete(update)
        return update

    update = update_by({**change.whole(texts_only=True), **packed})
    if not update.fits():
        update = update_by(change.whole(texts_only=False))
    if not moves and not beside:
        return table.update(document.key, update, returning=returning) or None
    _move(document, update, first, beside)
    if returning and exclusive and not moves:
        return update.applied(document.item)
    for number_done, group in enumerate(later, start=1):
        update = Update()
        touch(update)
        for move in group:
            if move.path[1] in present[move.path[0]]:
                update.remove(_place(document, move.path))
        update.require_equal(MetaItem.version, document.version + number_done)
        _move(document, update, group)
    return None


class _Move(NamedTuple):
    path: tuple[str, str]
    item: Raw | None
    """The child item to put; None to delete it."""


def _place(document: Document, path: tuple[str, str]) -> MapEntry:
    name, key = path
    return document.maps[name].field, key


def _placed(
    document: Document, present: Mapping[str, Texts], sets: Mapping[str, Texts]
) -> tuple[dict[str, dict[str, str]], dict[str, dict[str, str]], int]:
    """Returns the values to write into the item's maps, the values to write to child items because
    the item has no room for them, and the size of the maps afterwards in bytes.

    Args:
        present: the keys and values that the item has, by map.
        sets: the values to set, by map and key.
    """
    inline: dict[str, dict[str, str]] = {}
    outside: dict[str, dict[str, str]] = {}
    size = weight(present)
    for attribute, texts in sets.items():
        known = present[attribute]
        elsewhere = document.outside.get(attribute, {})
        full = attribute in document.overflowed
        for key, text in texts.items():
            old = weight_of(key, known[key]) if key in known else 0
            growth = weight_of(key, text) - old
            room = documents.INLINE_BYTES - size
            if key in known:
                stays = key not in elsewhere and growth <= max(room, documents.ALWAYS_FITS)
            else:
                stays = not full and growth <= room
            (inline if stays else outside).setdefault(attribute, {})[key] = text
            size += growth if stays else -old
    return inline, outside, size


def _groups(moves: Sequence[_Move]) -> list[list[_Move]]:
    """Splits moves (puts and deletions of child items) into lists that fit one transaction each;
    returns one empty list if there are none."""
    groups: list[list[_Move]] = [[]]
    weight = 0
    for move in moves:
        moved = 0 if move.item is None else len((ChildItem.of(move.item).text or "").encode())
        if groups[-1] and (len(groups[-1]) == MOVES_TOGETHER or weight + moved > BYTES_TOGETHER):
            groups.append([])
            weight = 0
        groups[-1].append(move)
        weight += moved
    return groups


def _move(
    document: Document, update: Update, moves: Sequence[_Move], beside: Sequence[Operation] = ()
) -> None:
    """Executes the update of a document's item, puts and deletions of its child items, and the
    operations ``beside`` in one transaction; of those, operations on the same child items are left
    out. Raises ConditionFailed if the document's own condition does not hold, TransactionFailed if
    one of ``beside`` does not."""
    operations = [
        Delete(document.maps[attribute].key_of(document.owner, key)) if item is None else Put(item)
        for (attribute, key), item in moves
    ]
    moved = {document.maps[attribute].key_of(document.owner, key) for (attribute, key), _ in moves}
    others = [
        position
        for position, operation in enumerate(beside)
        if key_of_operation(operation) not in moved
    ]
    parts = [*operations, *(beside[position] for position in others)]
    try:
        table.transact([ItemUpdate(document.key, update), *parts], token=new_ulid())
    except TransactionFailed as failed:
        if 0 in failed.items:
            raise ConditionFailed(failed.items[0]) from failed
        first = 1 + len(operations)
        raise TransactionFailed(
            {others[position - first]: item for position, item in failed.items.items()}
        ) from failed


class _Change(NamedTuple):
    """The changes that a write makes in the maps of a document's item."""

    document: Document
    present: Mapping[str, Texts]
    """The texts that the item holds."""
    inline: Mapping[str, Texts]
    """Texts to set."""
    leaving: Sequence[tuple[str, str]]
    """(map, key) pairs to remove from the item."""
    most: int
    """Maximum bytes of a map that is stored as one text; 0 to store maps."""
    overriding: bool = False
    """Whether a value replaces any other, whatever the rule of its map is."""

    def set_each(self, update: Update, but: Container[str]) -> None:
        """Adds to ``update`` one assignment for each changed key, so that writers of different keys
        conflict only if a map overflows or becomes one text. Leaves out the maps in ``but``."""
        document = self.document
        for name in self._touched():
            if name not in but and document.maps[name].as_text:
                # If the run has ended meanwhile, the map may be one text.
                update.require_map(document.maps[name].field)
        for attribute, texts in self.inline.items():
            if attribute in but:
                continue
            rule = REPLACE if self.overriding else document.maps[attribute].rule
            full = attribute in document.overflowed
            known = self.present[attribute]
            for key, text in texts.items():
                path = _place(document, (attribute, key))
                if rule == LATER:
                    require = update.require_less if full else update.require_absent_or_less
                    require(path, text)
                elif rule == KEEP and key in known:
                    update.require_equal(path, known[key])
                elif rule == KEEP:
                    update.require_absent(path)
                elif full:
                    update.require_exists(path)
                update.set(path, text)
        for removed in self.leaving:
            if removed[0] not in but:
                update.remove(_place(document, removed))

    def whole(self, *, texts_only: bool) -> dict[str, Raw | None]:
        """Returns changed maps as whole attribute values by name; None means to remove the
        attribute.

        Args:
            texts_only: only maps that are stored as one text now. If false, all changed maps:
                needed when a change has more keys than an update expression can hold.
        """
        return {
            name: self.document.maps[name].whole(self._after(name), self.most)
            for name in self._touched()
            if not texts_only or self._is_text(name)
        }

    def _touched(self) -> list[str]:
        written = [name for name, texts in self.inline.items() if texts]
        return list(dict.fromkeys([*written, *(name for name, _ in self.leaving)]))

    def _is_text(self, name: str) -> bool:
        return self.document.maps[name].is_text(self.document.item)

    def _after(self, name: str) -> dict[str, str]:
        """Returns the keys and values that a map has in the item after the write."""
        removed = {key for attribute, key in self.leaving if attribute == name}
        remaining = {key: text for key, text in self.present[name].items() if key not in removed}
        return {**remaining, **self.inline.get(name, {})}

    def all_as_text(self) -> dict[str, Raw | None]:
        """Returns the attribute values that store each map after the write as one text; None for
        an empty map. Leaves out unchanged maps that are stored so already, and maps without
        :attr:`Map.as_text`. Empty if the texts do not fit into the item, or if values are in child
        items."""
        maps, touched = self.document.maps, self._touched()
        packed = [
            name
            for name, entry in maps.items()
            if entry.as_text and (name in touched or not self._is_text(name))
        ]
        if not packed or self.document.overflowed:
            return {}
        texts = {name: entry.field.text(self._after(name)) for name, entry in maps.items()}
        if sum(len(text.encode()) for text in texts.values()) > documents.INLINE_BYTES:
            return {}
        return {name: string(texts[name]) if texts[name] else None for name in packed}


def _account(
    document: Document, outside: Sequence[str], size: int, update: Update, *, exclusive: bool
) -> None:
    """Adds to ``update`` the item's next version, its size, and the list of maps that have values
    in child items. Adds the condition that no other writer has changed this list or, if
    ``exclusive``, the item.

    Args:
        outside: names of the maps of which values move to child items.
        size: bytes of the maps after the write.
        exclusive: whether the item must not have been written at all since it was read.
    """
    touch(update)
    update.set(MetaItem.bytes, size)
    known = document.overflowed
    added = [name for name in outside if name not in known]
    if exclusive:
        update.require_equal(MetaItem.version, document.version)
    elif known:
        update.require_equal(MetaItem.overflow, " ".join(known))
    else:
        update.require_absent(MetaItem.overflow)
    if added:
        update.set(MetaItem.overflow, " ".join([*known, *added]))
