"""Runs in the order of a metric's value, merged from the three kinds of items of the index of
metric values: rows, segments and RANK items."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final

from mlcore.db import keys
from mlcore.db.sortable import double_of_inverted_bits, inverted_double_bits
from mlcore.db.table import table
from mlcore.repos.index_candidates import Entries
from mlcore.repos.runs.ranks import metric_ranks as run_ranks
from mlcore.repos.runs.ranks.metric_ranks import Ranks, Segment
from mlcore.repos.runs.ranks.rank_columns import Ranked
from mlcore.search.run_plan import MetricOrder

_FIRST: Final = inverted_double_bits(math.inf)
_LAST_NUMBER: Final = inverted_double_bits(-math.inf)
_NAN: Final = inverted_double_bits(math.nan)


class Moved(Exception):
    """The segments of the index of metric values changed while they were read; the caller must read
    them again."""


class _Source:
    """One of the stored lists from which values of a metric come: the rows, the RANK items or one
    segment. ``waiting`` holds values, in the requested order, that were read but not returned yet.
    """

    def __init__(self, waiting: list[Ranked]) -> None:
        self.waiting = waiting
        self.done = True


class _SingleSource(_Source):
    def __init__(self, entries: Entries, size: int) -> None:
        super().__init__([])
        self._entries, self._size = entries, size
        self.done = False

    def read(self) -> None:
        self.waiting = [run_ranks.ranked_of(item) for item in self._entries.read(self._size)]
        self.done = self._entries.done


class _PagedSource(_Source):
    def __init__(self, segment: Segment, numbers: list[int], stretch: _Stretch) -> None:
        super().__init__([])
        self.segment, self._stretch = segment, stretch
        self._numbers = numbers
        self.done = not numbers

    def next_pages(self, count: int) -> list[int]:
        numbers, self._numbers = self._numbers[:count], self._numbers[count:]
        self.done = not self._numbers
        return numbers

    def add(self, entries: list[Ranked]) -> None:
        self.waiting += self._stretch.in_order(entries)


class _Stretch:
    """The values of one metric from rank ``first`` to rank ``last``, in this order or backwards.
    The rank is the 64-bit encoding of a value, the greatest value first."""

    def __init__(self, ranks: Ranks, key: str, first: int, last: int, *, backwards: bool) -> None:
        self._ranks, self._key = ranks, key
        self._first, self._last, self._backwards = first, last, backwards
        self._sign = -1 if backwards else 1
        self._sources: list[_Source] = []
        self._is_begun = False
        self._generation = ranks.generation

    def reads(self, size: int) -> list[Callable[[], None]]:
        """Returns the first reads, which may be made in parallel with others before :meth:`lists`.

        Args:
            size: how many values to read at a time.
        """
        self._is_begun = True
        bounds = keys.rank_metric_range(
            self._key, double_of_inverted_bits(self._first), double_of_inverted_bits(self._last)
        )
        single = _SingleSource(
            run_ranks.singles(self._ranks.experiment_id, bounds, descending=self._backwards), size
        )
        self._sources = [single]
        for segment in self._ranks.segments(self._key):
            if segment.entries is not None:
                self._sources.append(_Source(self.in_order(segment.entries)))
            else:
                numbers = [*segment.pages(self._first, self._last)][:: self._sign]
                self._sources.append(_PagedSource(segment, numbers, self))
        calls: list[Callable[[], None]] = [single.read, partial(self._read_pages, size)]
        return calls if self._ranks.rows.done else [*calls, self._ranks.rows.read]

    def lists(self, size: int) -> Iterator[list[Ranked]]:
        """Yields all values in order, as consecutive lists. Raises Moved.

        Args:
            size: how many values to read at a time.
        """
        if not self._is_begun:
            table.parallel(self.reads(size))
        rows = self._ranks.rows.by_key.get(self._key, ())
        self._sources.append(_Source(self.in_order(rows)))
        while True:
            self._ranks.refresh()
            if self._generation != self._ranks.generation or self._ranks.are_lost:
                raise Moved
            empty = [source for source in self._sources if not source.waiting and not source.done]
            if empty:
                calls: list[Callable[[], None]] = [partial(self._read_pages, size)]
                calls += [
                    empty_source.read
                    for empty_source in empty
                    if isinstance(empty_source, _SingleSource)
                ]
                table.parallel(calls)
                continue
            entries = self._until_a_source_is_empty()
            if not entries:
                return
            yield entries

    def in_order(self, entries: Sequence[Ranked]) -> list[Ranked]:
        return sorted(run_ranks.within(entries, self._first, self._last), reverse=self._backwards)

    def _until_a_source_is_empty(self) -> list[Ranked]:
        ends = [
            source.waiting[-1].inverted_bits * self._sign
            for source in self._sources
            if not source.done
        ]
        end = min(ends, default=None)
        ranked: list[Ranked] = []
        for source in self._sources:
            count = len(source.waiting)
            if end is not None:
                count = bisect_right(
                    source.waiting, end, key=lambda each: each.inverted_bits * self._sign
                )
            ranked += source.waiting[:count]
            source.waiting = source.waiting[count:]
        ranked.sort(reverse=self._backwards)
        return ranked

    def _read_pages(self, size: int) -> None:
        """Reads the next pages of each segment whose values the caller has all received: about
        ``size`` values, or a page of each."""
        empty = [
            source
            for source in self._sources
            if isinstance(source, _PagedSource) and not source.waiting and not source.done
        ]
        if not empty:
            return
        each = max(1, size // (run_ranks.PAGE_ENTRIES * len(empty)))
        pages = [
            (empty_source, number)
            for empty_source in empty
            for number in empty_source.next_pages(each)
        ]
        experiment_id = self._ranks.experiment_id
        items = table.batch_get(
            [empty_source.segment.page_key(experiment_id, at) for empty_source, at in pages]
        )
        for (empty_source, _), item in zip(pages, items, strict=True):
            empty_source.add(self._ranks.page(item))


class InOrder:
    """All runs that have a metric, in the order of its value, NaN last. A run may come twice, and
    with a value that is outdated.

    Args:
        ranks: the index of metric values of the experiment, which has the segments of the metric.
        order: the metric and the direction.
        begin: the value to start at; None for the first, NaN for only the runs with NaN.
    """

    def __init__(self, ranks: Ranks, order: MetricOrder, begin: float | None) -> None:
        stretch = partial(_Stretch, ranks, order.key)
        self._stretches = [stretch(_NAN, _NAN, backwards=False)]
        if begin is None or not math.isnan(begin):
            if order.ascending:
                last = _LAST_NUMBER if begin is None else inverted_double_bits(begin)
                self._stretches.insert(0, stretch(_FIRST, last, backwards=True))
            else:
                first = _FIRST if begin is None else inverted_double_bits(begin)
                self._stretches = [stretch(first, _NAN, backwards=False)]

    def reads(self, size: int) -> list[Callable[[], None]]:
        """Returns functions that read, for :meth:`chunks`, the first values of the metric in the
        requested order. The caller may run them before, in parallel with its own reads.

        Args:
            size: how many values :meth:`chunks` reads at a time.
        """
        return self._stretches[0].reads(size)

    def chunks(self, size: int, more: int) -> Iterator[list[Ranked]]:
        """Yields the runs' values in lists of about ``size``. So that the caller knows all runs
        that share a value, a list ends after the first value that differs from the one before, if
        there is such a value among the ``more`` values after the first ``size``.

        Raises:
            Moved: the index changed; the caller starts again.
        """
        for stretch in self._stretches:
            chunk: list[Ranked] = []
            for added in stretch.lists(size + more):
                chunk += added
                while len(chunk) > size:
                    changes = (
                        at
                        for at in range(size, len(chunk))
                        if chunk[at].inverted_bits != chunk[at - 1].inverted_bits
                    )
                    end = next(changes, len(chunk) - 1) + 1
                    yield chunk[:end]
                    chunk = chunk[end:]
            if chunk:
                yield chunk
