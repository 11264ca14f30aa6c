"""Reads key ranges of an experiment's indexes page by page. A search that may use several ranges
reads them in parallel, until it is known which of the ranges gives the whole answer at the lowest
cost. This module knows no filter, and reads no run and no trace."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import chain
from operator import itemgetter
from typing import Any, Final, Protocol

from mlcore.db import keys
from mlcore.db.expression import Raw
from mlcore.db.keys import Key
from mlcore.db.table import table
from mlcore.models.base import Item
from mlcore.models.search_index import EntityEntry

PAGE_IDS = 1000
GROWTH = 4
"""Each page of a range is this many times as long as the page before."""
RUN_COST = 10
"""Cost of reading a run, in index entries."""

NARROWING_SHARE = 2
"""After the cheapest condition, index entries of further conditions are read as long as that costs
less than the runs or traces of the cheapest condition, divided by this number. Only the runs or
traces that all these conditions refer to are then read."""

FEW = 250
"""A page is never limited to fewer entries: reading them costs as much as a further round trip."""

RUN, TRACE = "run", "trace"

_SORT_KEY: Final = Item.SK.attr_name


class Range(Protocol):
    """A part of an index that lists an experiment's runs or traces, read page by page; ``done`` is
    true after the last page."""

    @property
    def done(self) -> bool: ...

    def read(self) -> object: ...


class Entries:
    """The entries of one key range of an index, read page by page. ``items`` holds the matching
    entries so far, ``seen`` counts all entries read, ``done`` is true after the last page.

    Args:
        keep: filter on entries; all are kept without it.
        first: length of the first page; later pages are longer.
        refer: returns the sort keys of the runs or traces that entries refer to; None to take them
            from the entries' attributes.
    """

    def __init__(
        self,
        experiment_id: str,
        keep: Callable[[Raw], bool] | None = None,
        first: int | None = None,
        refer: Callable[[list[Raw]], Iterable[str]] | None = None,
        **query: Any,
    ) -> None:
        self._experiment_id = experiment_id
        self._query = query
        self._keep = keep
        self._refer = refer or partial(map, partial(sort_key_named_by, experiment_id))
        self._next = PAGE_IDS if first is None else first
        self._start: Raw | None = None
        self.items: list[Raw] = []
        self.seen = 0
        self.done = False

    def read(self, limit: int | None = None) -> list[Raw]:
        """Reads the next page of this index range and returns the entries that it added to
        ``items``."""
        if limit is None:
            limit, self._next = self._next, self._next * GROWTH
        page = table.query(
            keys.experiment(self._experiment_id).pk,
            start=self._start,
            limit=limit,
            **self._query,
        )
        self._start = page.last_key
        self.done = page.last_key is None
        self.seen += len(page.items)
        keep = self._keep
        added = page.items if keep is None else [item for item in page.items if keep(item)]
        self.items += added
        return added

    def read_all(self, limit: int | None = None) -> None:
        """Reads all pages that are left.

        Args:
            limit: most entries of a page; None for a limit that grows.
        """
        while not self.done:
            self.read(limit)

    def hold(self, most: int) -> None:
        """Limits the next page of this index range to ``most`` entries."""
        self._next = min(self._next, most)

    def sort_keys(self) -> Iterable[str]:
        """Returns the sort keys of the runs or traces that the index entries read so far refer
        to."""
        return self._refer(self.items)

    def candidate_keys(self) -> list[Key]:
        """Returns the keys of the runs or traces that the index entries read so far refer to."""
        pk = keys.experiment(self._experiment_id).pk
        return [Key(pk, sk) for sk in self.sort_keys()]


class Candidates:
    """The candidates of one condition: ranges of an index whose entries together refer to every run
    or trace that can meet the condition. All are of one experiment, so that sort keys identify
    them."""

    __slots__ = ("access", "beside", "late", "ranges")

    def __init__(self, access: str, *ranges: Range) -> None:
        self.access = access
        """The name of the access path (which index answers the condition, and how), for the log."""
        self.ranges: tuple[Range, ...] = ranges
        self.late = False
        """Whether the indexer writes these entries. Then runs and traces that it has not processed
        (which have a mark) may be missing."""
        self.beside = 0
        """Number of other runs or traces that must be read as well, such as those with a mark."""

    @property
    def done(self) -> bool:
        return all(entries.done for entries in self.ranges)

    @property
    def is_abandoned(self) -> bool:
        """Whether these candidates can never be complete, so that a search does not wait for them:
        the index that names them is damaged, or changes faster than it can be read."""
        return False

    @property
    def seen(self) -> int:
        return sum(entries.seen for entries in self._entries())

    @property
    def named(self) -> int:
        """Number of matching index entries read so far. Each refers to a run or trace; several may
        refer to the same one."""
        return sum(len(entries.items) for entries in self._entries())

    @property
    def cost(self) -> float:
        """Estimated cost of the index entries read so far and of reading the runs or traces to
        which they refer. The unit is the cost of one index entry."""
        return self.seen + RUN_COST * (self.beside + self.named)

    @property
    def most(self) -> int | None:
        """Upper bound of the number of runs or traces that can meet a search condition; None if it
        is unknown before the items of the search index are read."""
        return None

    def sort_keys(self) -> dict[str, None]:
        """Returns the sort keys of the runs or traces that the index entries read so far refer
        to."""
        return dict.fromkeys(chain.from_iterable(each.sort_keys() for each in self._entries()))

    def hold(self, most: int) -> None:
        """Limits the next page of each range of these index entries to ``most`` entries."""
        for entries in self._entries():
            entries.hold(most)

    def _entries(self) -> list[Entries]:
        return [entries for entries in self.ranges if isinstance(entries, Entries)]

    def follow(self) -> None:
        """Is called after each read of pages; does nothing here. A subclass whose first ranges of
        entries lead to further ranges overrides it and sets ``ranges`` to the further ones."""


def sort_key_named_by(experiment_id: str, entry: Raw) -> str:
    """Returns the sort key of the run or trace that an index entry refers to."""
    named = EntityEntry.of(entry)
    run_id = named.run_id or named.entity_id
    if run_id is None:
        sort_key: str = entry[_SORT_KEY]["S"]
        return sort_key
    if named.entity_type == TRACE:
        return keys.trace(experiment_id, run_id).sk
    return keys.run(experiment_id, run_id).sk


def own_sort_keys(entries: Iterable[Raw]) -> list[str]:
    """Returns the attribute ``SK`` of each index entry. An entry of a local secondary index has the
    ``SK`` of its run or trace; an entry that is an item of its own has an ``SK`` of its own."""
    return [entry[_SORT_KEY]["S"] for entry in entries]


def read_first_pages(competitors: Sequence[Candidates]) -> None:
    """Reads, in parallel, the first pages of several ranges of index entries, each of which could
    answer a search (``competitors``), until one of them is complete or each has a full page or is
    abandoned (can never be complete).

    If it is known how many runs or traces one competitor has, the first pages of the others are
    limited: reading more of their entries would cost more than it can save.
    """
    known = [
        (competitor.most, competitor) for competitor in competitors if competitor.most is not None
    ]
    if known:
        fewest, which = min(known, key=itemgetter(0))
        for each in competitors:
            if each is not which:
                each.hold(max(fewest * RUN_COST // NARROWING_SHARE, FEW))
    while not any(competitor.done for competitor in competitors):
        waiting = [
            competitor
            for competitor in competitors
            if competitor.seen < PAGE_IDS and not competitor.is_abandoned
        ]
        if not waiting:
            return
        read_next_pages(waiting)


def race(conditions: Sequence[Candidates], everything: Candidates) -> list[Candidates]:
    """Reads the candidates of several conditions, and ``everything`` (the list of all runs or
    traces), in parallel, page by page. Returns those that were read completely, cheapest first.

    Incomplete candidates are read on as long as they can become cheaper than the cheapest complete
    ones, or can narrow these down at a small part of their cost (:data:`NARROWING_SHARE`)."""
    while True:
        ended = sorted(
            (each for each in (*conditions, everything) if each.done), key=lambda each: each.cost
        )
        rest = [each for each in conditions if not each.done and not each.is_abandoned]
        if not ended:
            read_next_pages([*rest, everything])
            continue
        cheapest = ended[0]
        share = cheapest.named * RUN_COST // NARROWING_SHARE // max(1, len(rest))
        pages = {each: max(_cheaper_by(each, cheapest), share - each.seen) for each in rest}
        if not everything.done:
            pages[everything] = _cheaper_by(everything, cheapest)
        running = [each for each, most in pages.items() if most > 0]
        if not running:
            return ended
        for each in running:
            each.hold(max(FEW, pages[each]))
        read_next_pages(running)


def _cheaper_by(candidates: Candidates, cheapest: Candidates) -> int:
    """Returns how many further entries of incomplete candidates can be read before they cost as
    much as ``cheapest``; 0 if they do already."""
    left = cheapest.cost - candidates.cost
    return 0 if left <= 0 else max(1, int(left) // (1 + RUN_COST))


def read_next_pages(competitors: Sequence[Candidates]) -> None:
    """Reads the next page of each incomplete range of all candidates of a search, in parallel."""
    ranges = dict.fromkeys(entries for competitor in competitors for entries in competitor.ranges)
    table.parallel([entries.read for entries in ranges if not entries.done])
    for competitor in competitors:
        competitor.follow()
