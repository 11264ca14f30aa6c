"""Candidates for a search by a text, out of full text; reads no run and no trace.

A word or a value leads to its entities: one list. Which words and values hold a stretch of the
pattern is read first, from a list for each stretch and from one item that has the first texts of an
experiment: a round trip more. So that a search does not wait for it, :class:`Foreseen` reads them
beside what is read first, and what they name is read together with them as they are then. The index
follows through the stream, and what it may be wrong about is marked; only what is read after the
marks counts.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from mlcore.db import keys
from mlcore.db.expression import Raw
from mlcore.db.keys import Key
from mlcore.db.table import table
from mlcore.models.index import Fts, FtsTexts
from mlcore.repos.runs import index as run_index
from mlcore.repos.runs.index import Candidates, Entries
from mlcore.search import text, text_fields
from mlcore.search.lookups import Lookup
from mlcore.search.plan import Text
from mlcore.search.text import LONG, TRIGRAM
from mlcore.search.text_fields import Indexed

LISTED = 1_000
"""Texts of a stretch that are read; where there are more, it leads to too many."""
FOLLOWED = 100
"""Texts whose entities are read list by list; those of more are sought in all lists of the
field."""
STRETCHES = 2
"""Lists of a pattern's stretches that are read, of which the shortest counts."""
FORESEEN = 2
"""In a search of more experiments nothing is read beforehand."""


class Foreseen:
    """Lists of texts that a search is likely to ask for; ``calls`` read them."""

    def __init__(
        self, experiment_ids: Sequence[str], accesses: Iterable[object], entity_type: str
    ) -> None:
        self.calls: list[Callable[[], object]] = []
        self._lists: dict[tuple[str, str, str], Entries] = {}
        self._pages: dict[str, _Page] = {}
        if len(experiment_ids) > FORESEEN:
            return
        asked = [access for access in accesses if isinstance(access, Text)]
        stretched = any(lookup.stretches for access in asked for lookup in access.lookups)
        for experiment_id in experiment_ids if stretched else ():
            self._pages[experiment_id] = _Page(experiment_id)
            for field, lookups in asked:
                for lookup in lookups:
                    for stretch in _spread(lookup.stretches):
                        place = (experiment_id, field, stretch)
                        self._lists[place] = _texts(*place, entity_type)
        self.calls += [one.read for one in (*self._lists.values(), *self._pages.values())]

    def page(self, experiment_id: str) -> _Page | None:
        """The first page of the dictionary as it was."""
        return self._pages.get(experiment_id)

    def shortest(
        self, experiment_id: str, field: str, lookup: Lookup
    ) -> tuple[str, Entries] | None:
        """The stretch whose list is the shortest, and the list as it was."""
        found = [
            (stretch, entries)
            for stretch in lookup.stretches
            if (entries := self._lists.get((experiment_id, field, stretch))) and entries.done
        ]
        return min(found, key=lambda one: len(one[1].items), default=None)


def candidates(
    experiment_id: str,
    access: Text,
    indexed: Indexed | None,
    entity_type: str,
    foreseen: Foreseen,
) -> list[Candidates]:
    """One for each lookup, the entities of texts without tokens being in all of them; none if the
    index does not hold the field.

    Args:
        indexed: the texts that the full-text index of the experiment holds completely.
    """
    if indexed is None or not indexed.covers(access.field):
        return []
    long = _holding(experiment_id, access.field, LONG.level, LONG.text, entity_type)
    page = _Page(experiment_id)
    made = (_Reader(experiment_id, access.field, one, entity_type) for one in access.lookups)
    return [_Candidates(reader, long, page, foreseen) for reader in made]


class _Page(Entries):
    """The first page of the dictionary: one item, read as if it were a list."""

    def __init__(self, experiment_id: str) -> None:
        super().__init__(experiment_id)
        self.place = keys.fts_texts(experiment_id)
        self.names: list[str] = []

    def read(self, limit: int | None = None) -> list[Raw]:
        del limit
        item = table.get(self.place)
        self.names = [] if item is None else list(FtsTexts.of(item).texts)
        self.done = True
        return []


class _Reader:
    """Makes what a lookup asks for."""

    def __init__(self, experiment_id: str, field: str, lookup: Lookup, entity_type: str) -> None:
        self.experiment_id = experiment_id
        self.field = field
        self.lookup = lookup
        self.entity_type = entity_type
        self._holds = lookup.test()
        self._level = text_fields.level_of(lookup.level, field)

    def texts(self, stretch: str) -> Entries:
        return _texts(self.experiment_id, self.field, stretch, self.entity_type)

    def matching(self, listed: Entries | None, page: _Page | None) -> list[str]:
        """The texts of a list and of the first page that meet the condition."""
        found = [] if listed is None else [Fts.of(entry).entity_id for entry in listed.items]
        for name in [] if page is None else page.names:
            entity_type, field, known = json.loads(name)
            if (entity_type, field) == (self.entity_type, self.field):
                found.append(known)
        return [one for one in dict.fromkeys(found) if self._holds(one)]

    def entities(self, word: str, together: int = 1) -> Entries:
        return _holding(
            self.experiment_id, self.field, self.lookup.level, word, self.entity_type, together
        )

    def begun(self, begin: str) -> Entries:
        return self._among(prefix=keys.fts_begin(self._level, begin))

    def all(self) -> Entries:
        return self._among(prefix=keys.fts_begin(self._level, ""))

    def numbers(self) -> Entries:
        return self._among(between=keys.fts_numbers(self._level), numbers=True)

    def _among(self, *, numbers: bool = False, **query: Any) -> Entries:
        """The entities of all texts in a range that meet the condition."""
        holds = self._holds

        def keep(entry: Raw) -> bool:
            found = Fts.of(entry)
            return (
                found.entity_type == self.entity_type
                and (not numbers or text.is_number(found.token))
                and holds(found.token)
            )

        asked = [Fts.token, Fts.entity_type, Fts.entity_id]
        return Entries(self.experiment_id, keep=keep, attributes=asked, **query)


class _Candidates(Candidates):
    """What a lookup finds; the lists of texts are read before it is known which entities' are."""

    __slots__ = ("_entities", "_lists", "_page", "_reader")

    def __init__(self, reader: _Reader, long: Entries, page: _Page, foreseen: Foreseen) -> None:
        lookup = reader.lookup
        self._page = page
        self._reader = reader
        self._lists: list[Entries] = []
        self._entities: dict[str, Entries] = {"": long}
        """By the text that leads to them."""
        if lookup.exact is not None:
            self._add([lookup.exact])
        elif lookup.begin is not None:
            self._entities["begin"] = reader.begun(lookup.begin)
        else:
            known = foreseen.shortest(reader.experiment_id, reader.field, lookup)
            stretches = _spread(lookup.stretches) if known is None else [known[0]]
            self._lists = [reader.texts(stretch) for stretch in stretches]
            if lookup.numbers:
                self._entities["number"] = reader.numbers()
            listed = None if known is None else known[1]
            found = reader.matching(listed, foreseen.page(reader.experiment_id))
            self._add(found if len(found) <= FOLLOWED else [])
        pages = [page] if self._lists else []
        super().__init__(Text.__name__, *pages, *self._lists, *self._entities.values())

    @property
    def done(self) -> bool:
        return not self._lists and super().done

    @property
    def seen(self) -> int:
        return sum(entries.seen for entries in self._entities.values())

    def places(self) -> dict[Key, None]:
        return dict.fromkeys(key for one in self._entities.values() for key in one.places())

    def hold(self, most: int) -> None:
        """Lists of texts are read as far as they are: part of one leads to nobody."""
        for entries in self._entities.values():
            entries.hold(most)

    def follow(self) -> None:
        """The texts that the shortest list has lead to their entities."""
        if not self._page.done or not any(one.seen or one.done for one in self._lists):
            return
        ended = [one for one in self._lists if one.done]
        shortest = min(ended, key=lambda one: one.seen, default=None)
        found = None if shortest is None else self._reader.matching(shortest, self._page)
        self._lists = []
        if found is not None and len(found) <= FOLLOWED:
            self._add(found)
        else:
            self._entities["all"] = self._reader.all()
        self.ranges = tuple(self._entities.values())

    def _add(self, words: Sequence[str]) -> None:
        for word in words:
            # A word may be called as one of the other ranges is.
            self._entities.setdefault(f"#{word}", self._reader.entities(word, len(words)))


def _texts(experiment_id: str, field: str, stretch: str, entity_type: str) -> Entries:
    """The words or values that hold a stretch."""
    level = text_fields.level_of(TRIGRAM, field)
    prefix = keys.fts_of_type_prefix(level, stretch, text_fields.texts_of(entity_type))
    return Entries(experiment_id, first=LISTED, prefix=prefix, attributes=[Fts.entity_id])


def _holding(
    experiment_id: str, field: str, level: str, token: str, entity_type: str, together: int = 1
) -> Entries:
    """The entities of one type that hold a token."""
    prefix = keys.fts_of_type_prefix(text_fields.level_of(level, field), token, entity_type)
    return Entries(
        experiment_id,
        first=max(1, run_index.PAGE_IDS // together),
        prefix=prefix,
        attributes=[Fts.entity_type, Fts.entity_id],
    )


def _spread(stretches: Sequence[str]) -> Sequence[str]:
    step = max(1, -(-len(stretches) // STRETCHES))
    return stretches[::step]
