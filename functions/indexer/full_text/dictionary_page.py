"""The first page of the full-text dictionary: one item with the first words and values of an
experiment's texts. While all fit, there are no other items of the dictionary. A search reads the
page whole.

To remove an entry, a process sets its state to ``leaving``, checks whether an entity still has its
text, and removes the entry if it is still ``leaving``. If another process adds the text meanwhile,
either the check sees the text, or the other process sees ``leaving`` and sets the entry again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from indexer.projection.child_items import Posting
from mlcore.db import keys
from mlcore.db.expression import ConditionExpression, Raw, Update
from mlcore.db.failures import ConditionFailed
from mlcore.db.table import table
from mlcore.models.search_index import FtsTexts

ROOM: Final = 3_500
"""Maximum size of the names on a page in bytes. With the states a full page may have 4.5 KB:
reading it costs two read units at most, writing it five write units."""
LONGEST: Final = 200
"""Maximum size of an entry in bytes; longer texts get items of their own."""
TOGETHER: Final = 50
"""Maximum number of entries that one update adds to a page."""

HELD: Final = "held"
LEAVING: Final = "leaving"


class DictionaryEntry(NamedTuple):
    """An entry of the full-text dictionary: a word or a value that entities of a type have in a
    field."""

    experiment_id: str
    kind: str
    posting: Posting

    @property
    def name(self) -> str:
        """The entry's key in the map that the first page of the full-text dictionary holds."""
        field, (_, posting) = self.posting
        return json.dumps([self.kind, field, posting], ensure_ascii=False, separators=(",", ":"))


Page = Mapping[str, str]
"""The state of each entry (``held`` or ``leaving``), by its name."""


def texts_of(item: Raw | None) -> Page:
    return {} if item is None else FtsTexts.of(item).texts


def add_entries(page: Page | None, entries: Sequence[DictionaryEntry]) -> list[DictionaryEntry]:
    """Adds words and values to the first page of an experiment's full-text dictionary while there
    is room. Returns the entries that did not fit.

    Args:
        page: the page as it was read; None if there was none.
    """
    known = page or {}
    room = ROOM - sum(len(name.encode()) for name in known)
    fitting, others = [], []
    for entry in entries:
        size = len(entry.name.encode())
        if entry.name in known or (size <= LONGEST and size <= room):
            fitting.append(entry)
            room -= 0 if entry.name in known else size
        else:
            others.append(entry)
    if page is None and fitting and _create_page(fitting):
        return others
    for at in range(0, len(fitting), TOGETHER):
        _set_held(fitting[at : at + TOGETHER])
    return others


def _set_held(entries: Sequence[DictionaryEntry]) -> None:
    where = keys.fts_texts(entries[0].experiment_id)
    update = Update()
    for entry in entries:
        update.set((FtsTexts.texts, entry.name), HELD)
    update.require_exists(FtsTexts.PK)
    try:
        table.update(where, update)
    except ConditionFailed:
        if not _create_page(entries):
            table.update(where, update)


def _create_page(entries: Sequence[DictionaryEntry]) -> bool:
    """Creates the first page of an experiment's dictionary with these entries; returns False if
    another process has created it."""
    where = keys.fts_texts(entries[0].experiment_id)
    first = ConditionExpression()
    first.require_absent(FtsTexts.PK)
    made = FtsTexts(PK=where.pk, SK=where.sk, texts={entry.name: HELD for entry in entries})
    try:
        table.put(made.serialize(), first)
    except ConditionFailed:
        return False
    return True


def begin_leaving(entry: DictionaryEntry) -> bool:
    """Sets the state of an entry on the first page of the full-text dictionary to ``leaving``, the
    first step of the entry's removal. Returns False if the page does not have the entry."""
    return _change_state(entry, None)


def end_leaving(entry: DictionaryEntry) -> None:
    """Removes an entry from the first page of a full-text dictionary, unless its removal (state
    ``leaving``) was cancelled meanwhile."""
    _change_state(entry, LEAVING)


def cancel_leaving(entries: Iterable[DictionaryEntry]) -> None:
    """Cancels the removal of entries (state ``leaving``) of the full-text dictionary's first page,
    because an entity still has their text."""
    for entry in entries:
        _set_held([entry])


def _change_state(entry: DictionaryEntry, known: str | None) -> bool:
    name_path = (FtsTexts.texts, entry.name)
    update = Update()
    if known is None:
        update.set(name_path, LEAVING)
        update.require_exists(name_path)
    else:
        update.remove(name_path)
        update.require_equal(name_path, known)
    try:
        table.update(keys.fts_texts(entry.experiment_id), update)
    except ConditionFailed:
        return False
    return True
