"""Writes derived items to the table: in batches; child items that may hold a value which exists
nowhere else, and must then be kept, one by one with a condition."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from indexer.full_text import dictionary_page, text_dictionary
from indexer.full_text.dictionary_page import DictionaryEntry
from indexer.projection.child_items import Writes
from mlcore.db.expression import ConditionExpression, Raw
from mlcore.db.failures import ConditionFailed
from mlcore.db.keys import Key
from mlcore.db.table import table
from mlcore.models.base import ChildItem, Item
from mlcore.models.search_index import Fts

TOGETHER = 25
"""The most items of one BatchWriteItem."""


def apply(writes_of_entities: Iterable[Writes]) -> None:
    """Executes the writes of derived items: first the unconditional puts, then, in parallel, the
    conditional writes of child items, the puts that must come last, and the removals. A search in
    between may return an entity twice, but never misses it."""
    all_writes = list(writes_of_entities)
    puts = [put for writes in all_writes for put in writes.puts]
    table.batch_write(puts)
    if any(Item.of(put).type == Fts.pattern.name for put in puts):
        _add_to_dictionary(puts)
    after = [put for writes in all_writes for put in writes.after]
    removals = _distinct(key for writes in all_writes for key in writes.removals)
    calls: list[Callable[[], object]] = []
    calls += [partial(_put, item) for writes in all_writes for item in writes.careful_puts]
    calls += [partial(_remove, key) for writes in all_writes for key in writes.deletes]
    calls += [
        partial(table.batch_write, after[at : at + TOGETHER])
        for at in range(0, len(after), TOGETHER)
    ]
    calls += [
        partial(table.batch_write, deletes=removals[at : at + TOGETHER])
        for at in range(0, len(removals), TOGETHER)
    ]
    table.parallel(calls)
    text_dictionary.remove_unused(
        posting for writes in all_writes for posting in writes.removed_postings
    )


def _add_to_dictionary(puts: Sequence[Raw]) -> None:
    """Adds the texts of FTS items to the full-text dictionary if it lacks them: to its first page,
    or as items of their own when the page is full."""
    entries_without_room: list[DictionaryEntry] = []
    calls: list[Callable[[], object]] = [
        lambda page=page, entries=entries: entries_without_room.extend(  # type: ignore[misc]
            dictionary_page.add_entries(page, entries)
        )
        for page, entries in text_dictionary.missing_entries(puts)
    ]
    table.parallel(calls)
    text_dictionary.put_all(entries_without_room)


def _distinct(keys: Iterable[Key]) -> list[Key]:
    """Returns the keys without duplicates, which a batch must not contain."""
    return list(dict.fromkeys(keys))


def _put(item: Raw) -> None:
    with contextlib.suppress(ConditionFailed):
        table.put(item, _is_copy())


def _remove(key: Key) -> None:
    with contextlib.suppress(ConditionFailed):
        table.delete(key, _is_copy())


def _is_copy() -> ConditionExpression:
    """Returns the condition that an item repeats a value of its source, and does not hold a value
    of its own."""
    condition = ConditionExpression()
    condition.require_absent(ChildItem.outside)
    return condition
