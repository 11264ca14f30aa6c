"""Pages of metric history, each at the cost of what it returns.

A small history is read whole: the batches, then the packs, one request each. Of a large one the
items are taken in the order of their first points, from the first that may reach the page on:
batches from their own sort keys, packs from LSI2, whose keys tell what is in a pack, and even the
point itself where it is alone. Only packs of the page are fetched, and of files only the segments
of the page, of which their items tell. What does not reach the page is not unpacked. As in
:mod:`mlcore.repos.runs.history`, all that a page needs of the batches is read before anything of
the packs and of the files.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final, NamedTuple

from mlcore.db import keys
from mlcore.db.expression import Raw
from mlcore.db.table import Page, table
from mlcore.entities.metrics import Metric
from mlcore.memory import Memory
from mlcore.models.runs import RunMetricBatch, RunMetricFile, RunMetricHistory, RunReference
from mlcore.repos.runs import history, history_files, history_stretches, point_places
from mlcore.repos.runs.history_stretches import Stretch
from mlcore.repos.runs.point_places import Order
from mlcore.settle import settle

IN_VAIN: Final = 18
"""How many items of one class of spans are met that do not reach the page, and a few."""
POINTS_TOGETHER: Final = 500
"""So many are expected in an item that has more than one. Where there are fewer, each further
request of a class asks for more items."""
GROWTH: Final = 4

LARGE_PACKS: Final = 1
LARGE_BATCHES: Final = 2


class HistoryPage(NamedTuple):
    points: list[Metric]
    more: bool
    large: int
    """What turned out to be more than one request reads; tell it when asking for the next page."""


class _Series(NamedTuple):
    experiment_id: str
    run_id: str
    key: str

    @property
    def pk(self) -> str:
        return keys.run(self.experiment_id, self.run_id).pk


Kept = Callable[[list[Metric]], list[Metric]]
"""Those of some points that count."""

_Ask = Callable[[Raw | None, int], tuple[list[Stretch], Raw | None]]
"""From where a class was left, and how many items to ask for: items, and where it goes on."""


_ordered: Memory[str, bool] = Memory("run with ordered history")
"""Runs all whose packs are in LSI2."""


def read(
    experiment_id: str,
    run_id: str,
    key: str,
    after: Order | None,
    size: int,
    large: int = 0,
    beside: Sequence[Callable[[], None]] = (),
    kept: Kept | None = None,
) -> HistoryPage:
    """The first ``size`` distinct points behind ``after`` in MLflow's order.

    Args:
        beside: called during the first request.
        kept: which of the points that were read count; all without it.
    """
    series = _Series(experiment_id, run_id, key)
    few: list[list[Stretch] | None] = [None]

    def read_few() -> None:
        if not large & LARGE_BATCHES:
            few[0] = _few_batches(series)

    table.parallel([read_few, *beside])
    begun = False

    def attempt() -> HistoryPage:
        nonlocal begun
        if begun:
            read_few()
        begun = True
        found, now_large = _read(series, after, size + 1, large, few[0], kept or list)
        return HistoryPage(found[:size], len(found) > size, now_large)

    return settle("history", attempt)


def _few_batches(series: _Series) -> list[Stretch] | None:
    """All batches and segments of files, None if one request does not tell of them."""
    page = table.query(
        series.pk,
        between=keys.run_metric_batches(series.run_id),
        attributes=[RunMetricBatch.SK, *history.BATCH_ATTRIBUTES],
    )
    if page.last_key is not None:
        return None
    found = []
    for item in page.items:
        if history.is_file(item):
            found += _segments(series, item)
        else:
            found.append(history_stretches.of_batch(item, series.key))
    return found


def _read(
    series: _Series,
    after: Order | None,
    wanted: int,
    large: int,
    few: list[Stretch] | None,
    kept: Kept,
) -> tuple[list[Metric], int]:
    """``few`` are the batches, and segments of files, if one request told of them."""

    def load(stretches: Sequence[Stretch]) -> list[Metric]:
        return kept(history_stretches.load(series.pk, series.key, stretches))

    found: list[Metric] = []
    if few is None:
        large |= LARGE_BATCHES
        if not _is_ordered(series.run_id):
            return _behind(kept(history.read(*series)), after, wanted), large
        found += _first(_merged(_batches, series, after, wanted), after, wanted, load)
        few = _all_segments(series)
    packs = None if large & LARGE_PACKS else _few_packs(series)
    if packs is None:
        large |= LARGE_PACKS
        if not _is_ordered(series.run_id):
            return _behind(kept(history.read(*series)), after, wanted), large
        found += _first(_merged(_entries, series, after, wanted), after, wanted, load)
    at = _place(after)
    reaching = [stretch for stretch in (*few, *(packs or ())) if stretch.last >= at]
    reaching.sort(key=lambda stretch: stretch.first)
    found += _first(iter(reaching), after, wanted, load)
    return _behind(found, after, wanted), large


def _few_packs(series: _Series) -> list[Stretch] | None:
    """All packs, None if one request does not read them."""
    page = table.query(
        series.pk,
        prefix=keys.run_metric_history_prefix(series.run_id, series.key),
        attributes=[RunMetricHistory.lsi2sk, *history.PACK_ATTRIBUTES],
    )
    if page.last_key is not None:
        return None
    return [history_stretches.of_pack(item, series.key) for item in page.items]


def _all_segments(series: _Series) -> list[Stretch]:
    files = table.query_all(
        series.pk,
        prefix=keys.run_metric_file_prefix(series.run_id),
        attributes=[RunMetricFile.location, RunMetricFile.directory],
    )
    return [stretch for item in files for stretch in _segments(series, item)]


def _segments(series: _Series, file: Raw) -> list[Stretch]:
    segments = history_files.segments(file, series.key)
    return [history_stretches.of_segment(segment) for segment in segments]


def _place(after: Order | None) -> str:
    return "" if after is None else point_places.place(after)


def _behind(found: Sequence[Metric], after: Order | None, wanted: int) -> list[Metric]:
    ordered = history.distinct(found)
    if after is not None:
        ordered = [point for point in ordered if point_places.order(point) > after]
    return ordered[:wanted]


def _first(
    stretches: Iterator[Stretch],
    after: Order | None,
    wanted: int,
    load: Callable[[Sequence[Stretch]], list[Metric]],
) -> list[Metric]:
    """The first points behind a place out of items that come in the order of their first points."""
    found: dict[Order, Metric] = {}
    upcoming = next(stretches, None)
    further = 2
    while upcoming is not None:
        together, count = [], 0
        asked = max(wanted - len(found), further if found else 0)
        while upcoming is not None and count < asked:
            together.append(upcoming)
            count += upcoming.size
            upcoming = next(stretches, None)
        loaded = load(together)
        if upcoming is None and not found:  # as it mostly is: all at once
            return _behind(loaded, after, wanted)
        for point in loaded:
            at = point_places.order(point)
            if after is None or at > after:
                found[at] = point
        if upcoming is not None and len(found) >= wanted:
            bound = point_places.parse(upcoming.first)
            if sum(at[:3] < bound for at in found) >= wanted:
                break
        further *= GROWTH
    return [found[at] for at in sorted(found)[:wanted]]


def _merged(
    read: Callable[[_Series, int, str], _Ask], series: _Series, after: Order | None, wanted: int
) -> Iterator[Stretch]:
    """Items of all classes of spans that may reach behind a place, by their first points. The
    classes are asked side by side, then one by one for more."""
    at = _place(after)
    classes = [
        read(series, span, point_places.earliest(at, span) if at else "")
        for span in range(len(point_places.SPANS))
    ]
    # Of single points a page has as many as it has points.
    limits = [IN_VAIN + wanted // (POINTS_TOGETHER if span else 1) for span in range(len(classes))]
    pages = table.parallel(
        [partial(ask, None, limit) for ask, limit in zip(classes, limits, strict=True)]
    )

    def rest(ask: _Ask, page: tuple[list[Stretch], Raw | None], limit: int) -> Iterator[Stretch]:
        found, start = page
        while True:
            yield from (stretch for stretch in found if stretch.last >= at)
            if start is None:
                return
            limit *= GROWTH
            found, start = ask(start, limit)

    streams = [rest(*one) for one in zip(classes, pages, limits, strict=True)]
    return heapq.merge(*streams, key=lambda stretch: stretch.first)


def _batches(series: _Series, span: int, first: str) -> _Ask:
    between = keys.run_metric_batch_from(series.run_id, span, first)

    def ask(start: Raw | None, limit: int) -> tuple[list[Stretch], Raw | None]:
        page = table.query(
            series.pk,
            between=between,
            attributes=[RunMetricBatch.SK, RunMetricBatch.data, RunMetricBatch.points],
            limit=limit,
            start=start,
        )
        return [_batch(item, series.key) for item in page.items], page.last_key

    return ask


def _batch(item: Raw, key: str) -> Stretch:
    """Of a run whose batches are in order: unpacked, for to know how many points it has spares
    requests for more."""
    _, first = keys.parse_batch_id(RunMetricBatch.of(item).SK)
    return history_stretches.of_points(history.points_of_batch(item, key))._replace(first=first)


def _entries(series: _Series, span: int, first: str) -> _Ask:
    between = keys.lsi2_metric_history_from(series.run_id, series.key, span, first)

    def ask(start: Raw | None, limit: int) -> tuple[list[Stretch], Raw | None]:
        page: Page = table.query(
            series.pk,
            index="LSI2",
            between=between,
            attributes=[RunMetricHistory.SK, RunMetricHistory.lsi2sk],
            limit=limit,
            start=start,
        )
        found = [history_stretches.of_entry(item, series.key) for item in page.items]
        return found, page.last_key

    return ask


def _is_ordered(run_id: str) -> bool:
    """Whether LSI2 has all packs of a run, and the ids of its batches are in order. Those of runs
    that earlier versions made are not."""
    if run_id not in _ordered:
        item = table.get(keys.run_ref(run_id))
        if item is None or RunReference.of(item).history_order is None:
            return False
        _ordered.put(run_id, True)
    return True
