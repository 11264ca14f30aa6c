"""The first page of the dictionary: one item that has the first words and values of an experiment's
texts. Most experiments have no more than it has room for, and a search reads it whole.

A text is there from the write of its entry on, and gone with its entry. Who takes it away marks it
as leaving first, looks whether somebody holds it, and removes the entry while the mark is there;
who comes to hold it meanwhile is seen by that look, or sees the mark and sets the entry anew.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from indexer.child_items import Posting
from mlcore.db import keys
from mlcore.db.expression import Condition, Raw, Update
from mlcore.db.failures import ConditionFailed
from mlcore.db.table import table
from mlcore.models.index import FtsTexts

ROOM: Final = 3_500
"""Bytes of the texts of a page, about: it is read for one unit and written for four."""
LONGEST: Final = 200
"""Bytes of an entry."""
TOGETHER: Final = 50
"""Entries of one write."""

HELD: Final = "held"
LEAVING: Final = "leaving"


class Entry(NamedTuple):
    """A word or a value that entities of a type hold in a field."""

    experiment_id: str
    kind: str
    posting: Posting

    @property
    def name(self) -> str:
        """In the page."""
        field, (_, found) = self.posting
        return json.dumps([self.kind, field, found], ensure_ascii=False, separators=(",", ":"))


Page = Mapping[str, str]
"""What is known of each entry."""


def texts_of(item: Raw | None) -> Page:
    return {} if item is None else FtsTexts.of(item).texts


def enter(page: Page | None, entries: Sequence[Entry]) -> list[Entry]:
    """Puts what there is room for into the page of one experiment; those that have none.

    Args:
        page: as it was read; None if there was none.
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
    if page is None and fitting and _begun(fitting):
        return others
    for at in range(0, len(fitting), TOGETHER):
        _set(fitting[at : at + TOGETHER])
    return others


def _set(entries: Sequence[Entry]) -> None:
    where = keys.fts_texts(entries[0].experiment_id)
    update = Update()
    for entry in entries:
        update.set((FtsTexts.texts, entry.name), HELD)
    update.require_exists(FtsTexts.PK)
    try:
        table.update(where, update)
    except ConditionFailed:
        if not _begun(entries):
            table.update(where, update)


def _begun(entries: Sequence[Entry]) -> bool:
    """Makes the page; False if somebody else was first."""
    where = keys.fts_texts(entries[0].experiment_id)
    first = Condition()
    first.require_absent(FtsTexts.PK)
    made = FtsTexts(PK=where.pk, SK=where.sk, texts={entry.name: HELD for entry in entries})
    try:
        table.put(made.serialize(), first)
    except ConditionFailed:
        return False
    return True


def begin_leaving(entry: Entry) -> bool:
    """Marks a text that is there; False if it is not."""
    return _changed(entry, None)


def end_leaving(entry: Entry) -> None:
    """Removes a text that is still marked."""
    _changed(entry, LEAVING)


def stay(entries: Iterable[Entry]) -> None:
    """Somebody holds them after all."""
    for entry in entries:
        _set([entry])


def _changed(entry: Entry, known: str | None) -> bool:
    place = (FtsTexts.texts, entry.name)
    update = Update()
    if known is None:
        update.set(place, LEAVING)
        update.require_exists(place)
    else:
        update.remove(place)
        update.require_equal(place, known)
    try:
        table.update(keys.fts_texts(entry.experiment_id), update)
    except ConditionFailed:
        return False
    return True
