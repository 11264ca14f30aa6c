"""Candidates for a search by text (the keys of runs or traces that may match), from the full-text
index; reads no run and no trace.

The index has a list of entities for each text: a word, or a whole value. For a pattern (LIKE) whose
beginning is not known, the texts that contain its trigrams (three characters) are read first, which
costs one more round trip: from a list for each trigram, and from the dictionary, one item with the
first texts of an experiment. :class:`Foreseen` reads these in parallel with the first requests of
the search, so the search does not wait for them.

The indexer updates the index asynchronously; entities whose entries may be stale have a mark. A
search reads the marks first, then the lists; lists that were read ahead are read again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Any

from mlcore.db import keys
from mlcore.db.expression import Raw
from mlcore.db.table import table
from mlcore.models.search_index import Fts, FtsTexts
from mlcore.repos import index_candidates
from mlcore.repos.index_candidates import Candidates, Entries
from mlcore.search import text_fields, text_tokens
from mlcore.search.run_plan import TextLookups
from mlcore.search.text_fields import IndexedFields
from mlcore.search.text_lookups import FullTextLookup
from mlcore.search.text_tokens import LONG_TEXT_TOKEN, TRIGRAM

LISTED = 1_000
"""Texts read from the list of a trigram; a trigram with more texts is not selective enough."""
FOLLOWED = 100
"""Texts whose entities are read list by list. For more texts, all lists of the field are
scanned."""
TRIGRAMS_READ = 2
"""How many trigrams of a pattern are looked up; the shortest of their lists is used."""
FORESEEN = 2
"""Searches of more experiments than this read nothing ahead."""


class Foreseen:
    """Reads ahead those lists in the full-text index that a search is likely to need: the texts
    (words and values) that contain a trigram. The search runs ``calls`` in parallel with its own
    first requests. Reads nothing for a search in more than :data:`FORESEEN` experiments."""

    def __init__(
        self, experiment_ids: Sequence[str], accesses: Iterable[object], entity_type: str
    ) -> None:
        self.calls: list[Callable[[], object]] = []
        self._lists: dict[tuple[str, str, str], Entries] = {}
        self._pages: dict[str, _Page] = {}
        if len(experiment_ids) > FORESEEN:
            return
        text_lookups = [access for access in accesses if isinstance(access, TextLookups)]
        by_trigrams = any(lookup.trigrams for access in text_lookups for lookup in access.lookups)
        for experiment_id in experiment_ids if by_trigrams else ():
            self._pages[experiment_id] = _Page(experiment_id)
            for field, lookups in text_lookups:
                for lookup in lookups:
                    for trigram in _spread(lookup.trigrams):
                        list_id = (experiment_id, field, trigram)
                        self._lists[list_id] = _texts_with(*list_id, entity_type)
        self.calls += [page.read for page in (*self._lists.values(), *self._pages.values())]

    def page(self, experiment_id: str) -> _Page | None:
        """Returns the dictionary item of an experiment (the item with the first texts of its
        full-text index) if it was read ahead; else None."""
        return self._pages.get(experiment_id)

    def shortest(
        self, experiment_id: str, field: str, lookup: FullTextLookup
    ) -> tuple[str, Entries] | None:
        """Returns a trigram of a lookup (a search for words or values in the full-text index), and
        the list of texts that contain the trigram: the pair with the shortest list. Only lists that
        were read ahead completely count; returns None if there are none."""
        lists = [
            (trigram, entries)
            for trigram in lookup.trigrams
            if (entries := self._lists.get((experiment_id, field, trigram))) and entries.done
        ]
        return min(lists, key=lambda list: len(list[1].items), default=None)


def candidates(
    experiment_id: str,
    access: TextLookups,
    indexed: IndexedFields | None,
    entity_type: str,
    foreseen: Foreseen,
) -> list[Candidates]:
    """Returns one set of candidates for each lookup of a text condition. Each lookup is a search in
    the full-text index that alone finds all matches, so the caller may use any of the sets.
    Returns an empty list if the index does not cover the field.

    Entities whose text is too long to be indexed are among the candidates of every lookup.

    Args:
        indexed: the fields that the experiment's full-text index covers completely; None if it must
            not be used.
        entity_type: runs or traces.
        foreseen: the lists that the search has read ahead.
    """
    if indexed is None or not indexed.covers(access.field):
        return []
    long = _entities_with(
        experiment_id, access.field, LONG_TEXT_TOKEN.level, LONG_TEXT_TOKEN.text, entity_type
    )
    page = _Page(experiment_id)
    made = (_Reader(experiment_id, access.field, lookup, entity_type) for lookup in access.lookups)
    return [_Candidates(reader, long, page, foreseen) for reader in made]


class _Page(Entries):
    """The dictionary item, which lists the first texts of an experiment, read through the interface
    of a range of index entries."""

    def __init__(self, experiment_id: str) -> None:
        super().__init__(experiment_id)
        self.key = keys.fts_texts(experiment_id)
        self.names: list[str] = []

    def read(self, limit: int | None = None) -> list[Raw]:
        del limit
        item = table.get(self.key)
        self.names = [] if item is None else list(FtsTexts.of(item).texts)
        self.done = True
        return []


class _Reader:
    """Makes the lazily read ranges of index entries that one lookup (a condition on the texts of a
    field) needs."""

    def __init__(
        self, experiment_id: str, field: str, lookup: FullTextLookup, entity_type: str
    ) -> None:
        self.experiment_id = experiment_id
        self.field = field
        self.lookup = lookup
        self.entity_type = entity_type
        self._holds = lookup.test()
        self._level = text_fields.key_level(lookup.level, field)

    def texts(self, trigram: str) -> Entries:
        return _texts_with(self.experiment_id, self.field, trigram, self.entity_type)

    def matching(self, listed: Entries | None, page: _Page | None) -> list[str]:
        """Returns the texts that meet the condition, each once, from a trigram's list and from the
        dictionary item."""
        texts = [] if listed is None else [Fts.of(entry).entity_id for entry in listed.items]
        for name in [] if page is None else page.names:
            entity_type, field, known = json.loads(name)
            if (entity_type, field) == (self.entity_type, self.field):
                texts.append(known)
        return [known for known in dict.fromkeys(texts) if self._holds(known)]

    def entities(self, word: str, together: int = 1) -> Entries:
        return _entities_with(
            self.experiment_id, self.field, self.lookup.level, word, self.entity_type, together
        )

    def begun(self, begin: str) -> Entries:
        return self._among(prefix=keys.fts_begin(self._level, begin))

    def all(self) -> Entries:
        return self._among(prefix=keys.fts_begin(self._level, ""))

    def numbers(self) -> Entries:
        return self._among(between=keys.fts_numbers(self._level), numbers=True)

    def _among(self, *, numbers: bool = False, **query: Any) -> Entries:
        """Returns the range of those entries in a key range whose text meets the condition; each
        entry refers to an entity with that text.

        Args:
            numbers: whether only texts that are numbers count.
            query: the key range.
        """
        holds = self._holds

        def keep(entry: Raw) -> bool:
            view = Fts.of(entry)
            return (
                view.entity_type == self.entity_type
                and (not numbers or text_tokens.is_number(view.token))
                and holds(view.token)
            )

        attributes = [Fts.token, Fts.entity_type, Fts.entity_id]
        return Entries(self.experiment_id, keep=keep, attributes=attributes, **query)


class _Candidates(Candidates):
    """The candidates of one lookup. A lookup by trigrams first reads the lists of texts that
    contain them; these determine which lists of entities are read next."""

    __slots__ = ("_entities", "_lists", "_page", "_reader")

    def __init__(self, reader: _Reader, long: Entries, page: _Page, foreseen: Foreseen) -> None:
        lookup = reader.lookup
        self._page = page
        self._reader = reader
        self._lists: list[Entries] = []
        self._entities: dict[str, Entries] = {"": long}
        """Ranges of entities by the text that leads to them."""
        if lookup.exact is not None:
            self._add([lookup.exact])
        elif lookup.begin is not None:
            self._entities["begin"] = reader.begun(lookup.begin)
        else:
            known = foreseen.shortest(reader.experiment_id, reader.field, lookup)
            trigrams = _spread(lookup.trigrams) if known is None else [known[0]]
            self._lists = [reader.texts(trigram) for trigram in trigrams]
            if lookup.numbers:
                self._entities["number"] = reader.numbers()
            listed = None if known is None else known[1]
            matching = reader.matching(listed, foreseen.page(reader.experiment_id))
            self._add(matching if len(matching) <= FOLLOWED else [])
        pages = [page] if self._lists else []
        super().__init__(TextLookups.__name__, *pages, *self._lists, *self._entities.values())

    @property
    def done(self) -> bool:
        return not self._lists and super().done

    @property
    def seen(self) -> int:
        return sum(entries.seen for entries in self._entities.values())

    def sort_keys(self) -> dict[str, None]:
        return dict.fromkeys(
            chain.from_iterable(entity.sort_keys() for entity in self._entities.values())
        )

    def hold(self, most: int) -> None:
        """Limits the next page of each list of entities to ``most`` entries. Lists of texts are not
        limited: one is useless until it is complete."""
        for entries in self._entities.values():
            entries.hold(most)

    def follow(self) -> None:
        """Is called after each read. After the first pages of the lists of texts, replaces these by
        the lists of entities of the texts that match. If no list of texts is complete, or too many
        texts match, replaces them by the list of all entities."""
        if not self._page.done or not any(list.seen or list.done for list in self._lists):
            return
        ended = [list for list in self._lists if list.done]
        shortest = min(ended, key=lambda posting_list: posting_list.seen, default=None)
        matching = None if shortest is None else self._reader.matching(shortest, self._page)
        self._lists = []
        if matching is not None and len(matching) <= FOLLOWED:
            self._add(matching)
        else:
            self._entities["all"] = self._reader.all()
        self.ranges = tuple(self._entities.values())

    def _add(self, words: Sequence[str]) -> None:
        for word in words:
            # A word may be called as one of the other ranges is.
            self._entities.setdefault(f"#{word}", self._reader.entities(word, len(words)))


def _texts_with(experiment_id: str, field: str, trigram: str, entity_type: str) -> Entries:
    """Returns the list of the texts (words or values of a field) that contain a trigram."""
    level = text_fields.key_level(TRIGRAM, field)
    prefix = keys.fts_of_type_prefix(level, trigram, text_fields.text_entity_type(entity_type))
    return Entries(experiment_id, first=LISTED, prefix=prefix, attributes=[Fts.entity_id])


def _entities_with(
    experiment_id: str, field: str, level: str, token: str, entity_type: str, together: int = 1
) -> Entries:
    """Returns the list of the entities of one type whose field has a token (a word or a whole
    value).

    Args:
        level: whether the token is a word, a value, or the token for all texts that are too long
            to be indexed.
        together: how many such lists are read at once; the first page is shorter accordingly.
    """
    prefix = keys.fts_of_type_prefix(text_fields.key_level(level, field), token, entity_type)
    return Entries(
        experiment_id,
        first=max(1, index_candidates.PAGE_IDS // together),
        prefix=prefix,
        attributes=[Fts.entity_type, Fts.entity_id],
    )


def _spread(trigrams: Sequence[str]) -> Sequence[str]:
    step = max(1, -(-len(trigrams) // TRIGRAMS_READ))
    return trigrams[::step]
