"""Applies :class:`indexer.child_items.Writes`: puts in batches, and puts and removals that spare
items with a value of their own."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from indexer import text_dictionary, text_page
from indexer.child_items import Writes
from indexer.text_page import Entry
from mlcore.db.expression import Condition, Raw
from mlcore.db.failures import ConditionFailed
from mlcore.db.keys import Key
from mlcore.db.table import table
from mlcore.models.base import ChildItem, Item
from mlcore.models.index import Fts

TOGETHER = 25
"""Items of one BatchWriteItem."""


def apply(wanted: Iterable[Writes]) -> None:
    """Puts first, removals after: whoever reads an index in between finds an entity twice, and
    never not at all, but for what is to be taken away before."""
    everything = list(wanted)
    table.batch_write(deletes=_once(key for writes in everything for key in writes.before))
    puts = [put for writes in everything for put in writes.puts]
    table.batch_write(puts)
    if any(Item.of(put).type == Fts.pattern.name for put in puts):
        _list_texts(puts)
    after = [put for writes in everything for put in writes.after]
    gone = _once(key for writes in everything for key in writes.removals)
    calls: list[Callable[[], object]] = []
    calls += [partial(_put, item) for writes in everything for item in writes.careful_puts]
    calls += [partial(_remove, key) for writes in everything for key in writes.deletes]
    calls += [
        partial(table.batch_write, after[at : at + TOGETHER])
        for at in range(0, len(after), TOGETHER)
    ]
    calls += [
        partial(table.batch_write, deletes=gone[at : at + TOGETHER])
        for at in range(0, len(gone), TOGETHER)
    ]
    table.parallel(calls)
    text_dictionary.release(left for writes in everything for left in writes.left)


def _list_texts(puts: Sequence[Raw]) -> None:
    """Puts what the dictionary lacks of texts that were put. Texts that have no room in the first
    page are many items."""
    without_room: list[Entry] = []
    calls: list[Callable[[], object]] = [
        lambda page=page, entries=entries: without_room.extend(  # type: ignore[misc]
            text_page.enter(page, entries)
        )
        for page, entries in text_dictionary.missing(puts)
    ]
    table.parallel(calls)
    text_dictionary.put_all(without_room)


def _once(keys: Iterable[Key]) -> list[Key]:
    """A batch names no item twice."""
    return list(dict.fromkeys(keys))


def _put(item: Raw) -> None:
    with contextlib.suppress(ConditionFailed):
        table.put(item, _projected())


def _remove(key: Key) -> None:
    with contextlib.suppress(ConditionFailed):
        table.delete(key, _projected())


def _projected() -> Condition:
    """Fails where the key moved out of the source item: the item there is where it lives now."""
    projected = Condition()
    projected.require_absent(ChildItem.outside)
    return projected
