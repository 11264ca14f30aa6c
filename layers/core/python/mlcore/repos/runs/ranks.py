"""What is ranked of the metrics of settled runs, read by searches; the indexer writes it.

The metrics of runs that are settled together are *rows*, one item. Many rows are sorted into
*segments*, one for each metric: values in order, in the segment itself or on pages. Segments are
merged as they get many. RANK items, one for a value, are of values outside their run and of earlier
versions. An entry may be of a value that its run had before, and come twice; a search tests the
runs themselves. See ``docs/adr/0056``.

What has moved on is never missed, though nothing is read at one moment:

* marks are read before rows: without a mark, what follows from a run is in rows, or was;
* rows go after they are in segments and ``RANK_ROWS_SORTED`` has counted that. The count is read
  with the rows, behind them: if it is not what it was before the segments were read, they are read
  again. What it was is remembered of an earlier search (a first one takes it that nothing was
  sorted): side by side with the segments it might be read after them;
* segments that were merged go after the merged one is there, which is behind them in key order;
* a page that is not there has gone with its segment: the segments are read again.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple

from mlcore.db import keys
from mlcore.db.expression import Raw
from mlcore.db.keys import Key
from mlcore.db.sortable import descending_place, value_at
from mlcore.db.table import table
from mlcore.memory import Memory
from mlcore.models.base import Item
from mlcore.models.index import RankMetric, RankPage, RankRows, RankRowsSorted, RankSegment
from mlcore.repos.runs import index as run_index
from mlcore.repos.runs import rank_columns
from mlcore.repos.runs.index import PAGE_IDS, Candidates, Entries
from mlcore.repos.runs.rank_columns import Ranked
from mlcore.search.plan import MetricRange

PAGE_ENTRIES: Final = 150
"""Values on a page: a read unit, four write units."""
TRIES: Final = 4
"""So often the segments are read again for one search. What is wrong then stays wrong, until
somebody rebuilds it: the search goes another way."""

_sorted: Memory[str, int] = Memory("how often rows of an experiment were sorted")


class Segment(NamedTuple):
    """Values of a metric in their order."""

    key: str
    level: int
    segment_id: str
    size: int
    """How many values."""
    entries: Sequence[Ranked] | None
    """All of them, if they are few."""
    bounds: Sequence[int]
    """The places that its pages begin with, and the last place."""

    def pages(self, first: int, last: int) -> range:
        """The numbers of the pages that may have values of a stretch."""
        if self.entries is not None or not self.bounds or first > self.bounds[-1]:
            return range(0)
        # Values of one place may be on two pages.
        begin = max(0, bisect_left(self.bounds, first) - 1)
        return range(begin, min(len(self.bounds) - 1, bisect_right(self.bounds, last)))

    def places(self, experiment_id: str) -> list[Key]:
        """Where all its pages are."""
        return [self.place(experiment_id, number) for number in self.all_pages()]

    def place(self, experiment_id: str, number: int) -> Key:
        return keys.rank_page(experiment_id, self.key, self.segment_id, number)

    def all_pages(self) -> range:
        return range(max(0, len(self.bounds) - 1))


def segment_of(item: Raw) -> Segment:
    found = RankSegment.of(item)
    return Segment(
        found.key,
        found.level,
        found.segment_id,
        found.count,
        None if found.data is None else rank_columns.unpack(found.data),
        [] if found.bounds is None else rank_columns.unpack_places(found.bounds),
    )


def segments(experiment_id: str, key: str) -> list[Segment]:
    """The segments of a metric: one Query."""
    pk = keys.experiment(experiment_id).pk
    return [segment_of(one) for one in table.query_all(pk, prefix=keys.rank_segment_prefix(key))]


def every_segment(experiment_id: str) -> Iterator[Segment]:
    """The segments of all metrics."""
    pk = keys.experiment(experiment_id).pk
    return map(segment_of, table.query_all(pk, prefix=keys.rank_segment_prefix()))


def every(experiment_id: str) -> Iterator[tuple[str, list[Ranked]]]:
    """All that is ranked in rows and segments, by metric; some of it may come twice."""
    for item in every_row(experiment_id):
        yield from by_key([item]).items()
    for segment in every_segment(experiment_id):
        yield segment.key, values_of(segment, table.batch_get(segment.places(experiment_id)))


def every_row(experiment_id: str) -> Iterator[Raw]:
    """The items of all rows."""
    pk = keys.experiment(experiment_id).pk
    return table.query_all(pk, prefix=keys.rank_rows_prefix())


def by_key(rows: Iterable[Raw], wanted: Sequence[str] | None = None) -> dict[str, list[Ranked]]:
    """What rows have of each metric, in no order; of some metrics, if they are named."""
    found: dict[str, list[Ranked]] = {}
    for item in rows:
        for key, entries in rank_columns.unpack_runs(RankRows.of(item).data, wanted).items():
            found.setdefault(key, []).extend(entries)
    return found


def values_of(segment: Segment, pages: Iterable[Raw | None]) -> list[Ranked]:
    """What a segment has, with those of its pages that are there."""
    found = [*(segment.entries or ())]
    for page in pages:
        found += [] if page is None else page_of(page)
    return found


def are_ranked(experiment_id: str, wanted: Mapping[str, Ranked]) -> set[str]:
    """Of some metrics of a run those whose values are ranked in rows or a segment."""
    ranks = Ranks(experiment_id, list(wanted))
    table.parallel(ranks.reads())
    candidates = {}
    for key, one in wanted.items():
        value = value_at(one.place)
        candidates[key] = MetricCandidates(ranks, MetricRange(key, value, value))
    while not ranks.are_lost and (left := [one for one in candidates.values() if not one.done]):
        run_index.read(left)
    return {
        key
        for key, one in candidates.items()
        if keys.run(experiment_id, wanted[key].run_id) in one.places()
    }


def page_of(item: Raw) -> list[Ranked]:
    return rank_columns.unpack(RankPage.of(item).data)


class Rows:
    """All rows of an experiment, and how often some were sorted into segments."""

    def __init__(self, experiment_id: str, wanted: Sequence[str]) -> None:
        self._experiment_id = experiment_id
        self._wanted = wanted
        self.by_key: dict[str, list[Ranked]] = {}
        self.sorted = 0
        self.done = False

    def read(self) -> None:
        pk = keys.experiment(self._experiment_id).pk
        items = list(table.query_all(pk, between=keys.rank_rows_range()))
        if items and Item.of(items[-1]).type == RankRowsSorted.pattern.name:
            self.sorted = RankRowsSorted.of(items.pop()).version
        self.by_key = by_key(items, self._wanted)
        self.done = True


class Ranks:
    """The segments of some metrics and the rows of an experiment, as one search reads them."""

    def __init__(self, experiment_id: str, wanted: Sequence[str]) -> None:
        self.experiment_id = experiment_id
        self._wanted = wanted
        self._segments: dict[str, list[Segment]] = {}
        self._sorted = _sorted.get(experiment_id) or 0
        """What was read of the count before any segment was."""
        self._gone = False
        self.rows = Rows(experiment_id, wanted)
        self.generation = 0
        """How often the segments were read again."""

    def reads(self) -> list[Callable[[], None]]:
        """What must be called, side by side, before all else; for one round trip less, beside the
        reading of the marks."""
        unread = [key for key in self._wanted if key not in self._segments]
        return [partial(self._read_segments, key) for key in unread]

    def begin(self) -> None:
        """Calls them, unless somebody did."""
        table.parallel(self.reads())

    def segments(self, key: str) -> Sequence[Segment]:
        return self._segments[key]

    @property
    def are_lost(self) -> bool:
        """Whether a segment lacks what it says that it has, however often it is read."""
        return self.generation > TRIES

    def page(self, item: Raw | None) -> list[Ranked]:
        """The values of a page that was read."""
        if item is None:
            self._gone = True
            return []
        return page_of(item)

    def refresh(self) -> None:
        """After each reading: reads the segments again if they are others by now."""
        moved = self.rows.done and self.rows.sorted != self._sorted
        if not (moved or self._gone) or self.are_lost:
            return
        if moved:
            self._sorted = self.rows.sorted
            _sorted.put(self.experiment_id, self._sorted)
        self._gone = False
        self._segments.clear()
        self.begin()
        self.generation += 1

    def _read_segments(self, key: str) -> None:
        self._segments[key] = segments(self.experiment_id, key)


class _Pages:
    """The values of a stretch that are in segments, read on demand."""

    def __init__(self, ranks: Ranks, key: str, first: int, last: int) -> None:
        self._ranks = ranks
        self.items: list[Ranked] = []
        self._waiting: list[tuple[Segment, int]] = []
        for segment in ranks.segments(key):
            if segment.entries is not None:
                self.items += within(segment.entries, first, last)
            self._waiting += [(segment, number) for number in segment.pages(first, last)]
        self._next = PAGE_IDS // PAGE_ENTRIES
        self._first, self._last = first, last

    @property
    def done(self) -> bool:
        return not self._waiting

    @property
    def most(self) -> int:
        """How many values there are at most."""
        return len(self.items) + PAGE_ENTRIES * len(self._waiting)

    def read(self) -> None:
        asked, self._waiting = self._waiting[: self._next], self._waiting[self._next :]
        self._next *= 4
        experiment_id = self._ranks.experiment_id
        found = table.batch_get([one.place(experiment_id, number) for one, number in asked])
        for item in found:
            self.items += within(self._ranks.page(item), self._first, self._last)


class MetricCandidates(Candidates):
    """Every run whose latest value of a metric is in a range, but perhaps for marked ones."""

    __slots__ = (
        "_first",
        "_generation",
        "_key",
        "_last",
        "_of_rows",
        "_pages",
        "_ranks",
        "_singles",
    )

    def __init__(self, ranks: Ranks, access: MetricRange) -> None:
        self._ranks, self._key = ranks, access.key
        self._first = descending_place(access.highest)
        self._last = descending_place(access.lowest)
        bounds = keys.rank_metric_range(access.key, access.highest, access.lowest)
        self._singles = singles(ranks.experiment_id, bounds)
        self._of_rows: list[Ranked] | None = None
        super().__init__(MetricRange.__name__)
        self._begin()

    def _begin(self) -> None:
        self._generation = self._ranks.generation
        self._pages = _Pages(self._ranks, self._key, self._first, self._last)
        self.ranges = (self._singles, self._ranks.rows, self._pages)

    @property
    def done(self) -> bool:
        return not self._ranks.are_lost and super().done

    @property
    def seen(self) -> int:
        if self._ranks.are_lost:
            return PAGE_IDS
        return self._singles.seen + len(self._pages.items) + len(self._in_rows())

    @property
    def cost(self) -> float:
        return math.inf if self._ranks.are_lost else super().cost

    @property
    def named(self) -> int:
        return self.seen

    @property
    def most(self) -> int | None:
        """Without segments there may be RANK items instead, which nobody has counted."""
        return self._pages.most if self._ranks.segments(self._key) else None

    def places(self) -> dict[Key, None]:
        experiment_id = self._ranks.experiment_id
        found = dict.fromkeys(self._singles.places())
        for one in (*self._in_rows(), *self._pages.items):
            found[keys.run(experiment_id, one.run_id)] = None
        return found

    def follow(self) -> None:
        self._ranks.refresh()
        if self._generation != self._ranks.generation:
            self._begin()

    def _in_rows(self) -> list[Ranked]:
        if self._of_rows is None:
            found = within(self._ranks.rows.by_key.get(self._key, ()), self._first, self._last)
            if not self._ranks.rows.done:
                return found
            self._of_rows = found
        return self._of_rows


def within(entries: Sequence[Ranked], first: int, last: int) -> list[Ranked]:
    """Those of a stretch."""
    return [one for one in entries if first <= one.place <= last]


def singles(experiment_id: str, bounds: tuple[str, str], *, descending: bool = False) -> Entries:
    """RANK items."""
    return Entries(
        experiment_id,
        between=bounds,
        descending=descending,
        attributes=[RankMetric.run_id, RankMetric.value],
    )


def ranked_of(item: Raw) -> Ranked:
    found = RankMetric.of(item)
    return Ranked(descending_place(found.value), found.run_id, 0, 0)
