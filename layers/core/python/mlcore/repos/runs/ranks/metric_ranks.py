"""Reads the index of metric values in order (ranks) for searches of runs; the indexer writes it.

The *rank* of a value is its 64-bit encoding, by which the greatest value comes first and NaN last.
A run is settled when it has ended or has not been written for a while. The metrics of runs that
were settled together are *rows*, one item. When there are many rows, they are sorted into
*segments*, one per metric: values in order, in the segment item itself or on pages. Many segments
are merged into one. RANK items, one per value, hold values that live outside their run's item. An
entry of the index may be outdated or appear twice; a search tests the runs themselves. See
``docs/adr/0056``.

The reads are separate requests, but no value is missed while it moves:

- Marks (keys of runs that the indexer has not processed) are read before rows: an unmarked run is
  in rows, or was.
- Rows are deleted after they are in segments and ``RANK_ROWS_SORTED`` has counted that. The count
  is read with the rows, after them. If it differs from what it was before the segments were read,
  the segments are read again. The count before is cached from an earlier search (the first search
  assumes that nothing was sorted): read in parallel with the segments, it might be read after them.
- Merged segments are deleted after the new one exists, which sorts after them.
- A missing page was deleted with its segment: the segments are read again.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple

from mlcore.db import keys
from mlcore.db.expression import Raw
from mlcore.db.keys import Key
from mlcore.db.sortable import double_of_inverted_bits, inverted_double_bits
from mlcore.db.table import table
from mlcore.models.base import Item
from mlcore.models.search_index import RankMetric, RankPage, RankRows, RankRowsSorted, RankSegment
from mlcore.process_cache import ProcessCache
from mlcore.repos import index_candidates
from mlcore.repos.index_candidates import PAGE_IDS, Candidates, Entries
from mlcore.repos.runs.ranks import rank_columns
from mlcore.repos.runs.ranks.rank_columns import Ranked
from mlcore.search.run_plan import MetricRange

PAGE_ENTRIES: Final = 150
"""Values on a page: one read unit, four write units."""
TRIES: Final = 4
"""If one search has read the segments again more often than this, they need a rebuild, and the
search uses another access path."""

_sorted: ProcessCache[str, int] = ProcessCache("how often rows of an experiment were sorted")


class Segment(NamedTuple):
    """A part of the index of metric values: values of one metric across runs, in order. They are in
    the segment's item if they are few, else in items called pages."""

    key: str
    level: int
    segment_id: str
    size: int
    """Number of values."""
    entries: Sequence[Ranked] | None
    """All values, if they are few."""
    bounds: Sequence[int]
    """The ranks of the first value on each page, and the rank of the last value."""

    def pages(self, first: int, last: int) -> range:
        """Returns the numbers of those of the segment's pages that may have values with a rank from
        ``first`` to ``last``. The rank of a value is its 64-bit encoding, the greatest value first.
        """
        if self.entries is not None or not self.bounds or first > self.bounds[-1]:
            return range(0)
        # Equal values may be on two pages.
        begin = max(0, bisect_left(self.bounds, first) - 1)
        return range(begin, min(len(self.bounds) - 1, bisect_right(self.bounds, last)))

    def page_keys(self, experiment_id: str) -> list[Key]:
        """Returns the keys of the items with all pages of the segment (values of one metric in
        order)."""
        return [self.page_key(experiment_id, number) for number in self.all_pages()]

    def page_key(self, experiment_id: str, number: int) -> Key:
        return keys.rank_page(experiment_id, self.key, self.segment_id, number)

    def all_pages(self) -> range:
        return range(max(0, len(self.bounds) - 1))


def segment_of(item: Raw) -> Segment:
    view = RankSegment.of(item)
    return Segment(
        view.key,
        view.level,
        view.segment_id,
        view.count,
        None if view.data is None else rank_columns.unpack(view.data),
        [] if view.bounds is None else rank_columns.unpack_places(view.bounds),
    )


def segments(experiment_id: str, key: str) -> list[Segment]:
    """Returns the segments of a metric in the index of metric values (each has values in order);
    one Query per MB."""
    pk = keys.experiment(experiment_id).pk
    return [segment_of(item) for item in table.query_all(pk, prefix=keys.rank_segment_prefix(key))]


def every_segment(experiment_id: str) -> Iterator[Segment]:
    """Yields the segments of all metrics in the index of metric values of an experiment. A segment
    has values of one metric in order."""
    pk = keys.experiment(experiment_id).pk
    return map(segment_of, table.query_all(pk, prefix=keys.rank_segment_prefix()))


def every(experiment_id: str) -> Iterator[tuple[str, list[Ranked]]]:
    """Yields (metric, values) for all values in the rows and segments of an experiment's index of
    metric values, without those in RANK items; some values come twice."""
    for item in every_row(experiment_id):
        yield from by_key([item]).items()
    for segment in every_segment(experiment_id):
        yield segment.key, values_of(segment, table.batch_get(segment.page_keys(experiment_id)))


def every_row(experiment_id: str) -> Iterator[Raw]:
    """Yields the items with the rows of an experiment's index of metric values: values of runs that
    are in no sorted segment yet."""
    pk = keys.experiment(experiment_id).pk
    return table.query_all(pk, prefix=keys.rank_rows_prefix())


def by_key(rows: Iterable[Raw]) -> dict[str, list[Ranked]]:
    """Returns the metric values, by metric and unordered, in the given items of the index's rows
    (values of runs that are in no segment yet)."""
    return _joined(rank_columns.unpack_runs(RankRows.of(item).data) for item in rows)


def _joined(items: Iterable[dict[str, list[Ranked]]]) -> dict[str, list[Ranked]]:
    ranked: dict[str, list[Ranked]] = {}
    for values in items:
        for key, entries in values.items():
            ranked.setdefault(key, []).extend(entries)
    return ranked


def values_of(segment: Segment, pages: Iterable[Raw | None]) -> list[Ranked]:
    """Returns the values in a segment of the index of metric values (values of one metric, sorted),
    from its own item and from those of its pages that exist."""
    ranked = [*(segment.entries or ())]
    for page in pages:
        ranked += [] if page is None else page_of(page)
    return ranked


def are_ranked(experiment_id: str, wanted: Mapping[str, Ranked]) -> set[str]:
    """Returns the names of those metrics of a run whose values are in the index of metric values:
    in a row, a segment or a RANK item.

    Args:
        wanted: the run's values by metric.
    """
    ranks = Ranks(experiment_id, list(wanted))
    table.parallel(ranks.reads())
    candidates = {}
    for key, candidate_entry in wanted.items():
        value = double_of_inverted_bits(candidate_entry.inverted_bits)
        candidates[key] = MetricCandidates(ranks, MetricRange(key, value, value))
    while not ranks.are_lost and (
        undecided := [candidate for candidate in candidates.values() if not candidate.done]
    ):
        index_candidates.read_next_pages(undecided)
    return {
        key
        for key, candidate_entry in candidates.items()
        if keys.run(experiment_id, wanted[key].run_id).sk in candidate_entry.sort_keys()
    }


def page_of(item: Raw) -> list[Ranked]:
    return rank_columns.unpack(RankPage.of(item).data)


class Rows:
    """The metric values of an experiment's runs that the index of ranks holds in rows, not yet in
    segments, for the wanted metrics; and how often rows were sorted into segments."""

    def __init__(self, experiment_id: str, wanted: Sequence[str]) -> None:
        self._experiment_id = experiment_id
        self._wanted = wanted
        self.by_key: dict[str, list[Ranked]] = {}
        """The values by metric, unordered, without versions and minutes."""
        self.sorted = 0
        self.done = False

    def read(self) -> None:
        pk = keys.experiment(self._experiment_id).pk
        items = list(table.query_all(pk, between=keys.rank_rows_range()))
        if items and Item.of(items[-1]).type == RankRowsSorted.pattern.name:
            self.sorted = RankRowsSorted.of(items.pop()).version
        wanted = frozenset(self._wanted)
        self.by_key = _joined(
            rank_columns.unpack_values(RankRows.of(item).data, wanted) for item in items
        )
        self.done = True


class Ranks:
    """The index of metric values of an experiment as one search reads it: the segments of some
    metrics, and the rows not yet sorted into them."""

    def __init__(self, experiment_id: str, wanted: Sequence[str]) -> None:
        self.experiment_id = experiment_id
        self._wanted = wanted
        self._segments: dict[str, list[Segment]] = {}
        self._sorted = _sorted.get(experiment_id) or 0
        """How often rows had been sorted into segments (``RANK_ROWS_SORTED``), as an earlier search
        read it, before this search reads a segment."""
        self._gone = False
        self.rows = Rows(experiment_id, wanted)
        self.generation = 0
        """How often the segments were read again."""

    def reads(self) -> list[Callable[[], None]]:
        """Returns functions, one per metric, that read the segments of the index of metric values
        that were not read yet. Call them in parallel with the reads of marks (keys of runs that the
        indexer has not processed): then they cost no extra round trip."""
        unread = [key for key in self._wanted if key not in self._segments]
        return [partial(self._read_segments, key) for key in unread]

    def begin(self) -> None:
        """Reads the segments of this search's metrics from the index of metric values, unless they
        were read already."""
        table.parallel(self.reads())

    def segments(self, key: str) -> Sequence[Segment]:
        return self._segments[key]

    @property
    def are_lost(self) -> bool:
        """Whether this search has stopped reading segments of the index of metric values, because
        it has read them again more than :data:`TRIES` times."""
        return self.generation > TRIES

    def page(self, item: Raw | None) -> list[Ranked]:
        """Returns the metric values in ``item``, a page that belongs to a segment read before. If
        the page is missing (None), returns an empty list and lets :meth:`refresh` read the segments
        again."""
        if item is None:
            self._gone = True
            return []
        return page_of(item)

    def refresh(self) -> None:
        """Is called after each read of the index of metric values; reads the segments again if rows
        were sorted or segments merged meanwhile."""
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
    """The values of one metric in segments, from rank ``first`` to rank ``last``. Pages of the
    segments are read on demand."""

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
        """Upper bound of the number of values."""
        return len(self.items) + PAGE_ENTRIES * len(self._waiting)

    def read(self) -> None:
        wanted, self._waiting = self._waiting[: self._next], self._waiting[self._next :]
        self._next *= 4
        experiment_id = self._ranks.experiment_id
        items = table.batch_get(
            [segment.page_key(experiment_id, number) for segment, number in wanted]
        )
        for item in items:
            self.items += within(self._ranks.page(item), self._first, self._last)


class MetricCandidates(Candidates):
    """The candidates of a condition on a metric: every run whose latest value is in a range, except
    runs that the indexer has not processed."""

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
        self._first = inverted_double_bits(access.highest)
        self._last = inverted_double_bits(access.lowest)
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
        return not self.is_abandoned and super().done

    @property
    def is_abandoned(self) -> bool:
        return self._ranks.are_lost

    @property
    def seen(self) -> int:
        return self._singles.seen + len(self._pages.items) + len(self._in_rows())

    @property
    def named(self) -> int:
        return self.seen

    @property
    def most(self) -> int | None:
        """Upper bound of the number of runs whose values in the metric's segments are in the range
        of the search condition; None if the metric has no segments. Runs whose values are still in
        rows or RANK items of the index are not counted."""
        return self._pages.most if self._ranks.segments(self._key) else None

    def sort_keys(self) -> dict[str, None]:
        ranked = (*self._in_rows(), *self._pages.items)
        of_ranked = keys.run_sort_keys([entry.run_id for entry in ranked])
        return dict.fromkeys((*self._singles.sort_keys(), *of_ranked))

    def follow(self) -> None:
        self._ranks.refresh()
        if self._generation != self._ranks.generation:
            self._begin()

    def _in_rows(self) -> list[Ranked]:
        if self._of_rows is None:
            in_rows = within(self._ranks.rows.by_key.get(self._key, ()), self._first, self._last)
            if not self._ranks.rows.done:
                return in_rows
            self._of_rows = in_rows
        return self._of_rows


def within(entries: Sequence[Ranked], first: int, last: int) -> list[Ranked]:
    """Returns those of the metric values whose rank (the 64-bit encoding of a value, the
    greatest value first) is from ``first`` to ``last``."""
    return [entry for entry in entries if first <= entry.inverted_bits <= last]


def singles(experiment_id: str, bounds: tuple[str, str], *, descending: bool = False) -> Entries:
    """Returns the RANK items (one for each value that is outside its run's item) between two sort
    keys, as a range to read page by page."""
    return Entries(
        experiment_id,
        between=bounds,
        descending=descending,
        attributes=[RankMetric.run_id, RankMetric.value],
    )


def ranked_of(item: Raw) -> Ranked:
    view = RankMetric.of(item)
    return Ranked(inverted_double_bits(view.value), view.run_id, 0, 0)
