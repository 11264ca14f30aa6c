"""Pages of metric history, each at a cost proportional to its length.

Points are stored in batches (an item for each request), packs (items with many points of one
metric) and segments of files. A small history is read whole: the batches with the directories of
the files, then the packs, one request each. Of a large one, items are taken in the order of their
first points, starting with the first that may overlap the page: batches by their own sort keys,
packs by LSI2, whose keys contain the bounds of a pack and also single points. Only packs and
segments that overlap the page are fetched and unpacked. As in
:mod:`mlcore.repos.runs.history.metric_history`, batches are read before packs and files.
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
from mlcore.models.runs import RunMetricBatch, RunMetricFile, RunMetricHistory
from mlcore.optimistic_retry import retry_on_conflict
from mlcore.repos.runs.history import (
    history_files,
    history_ranges,
    length_classes,
    metric_history,
    point_positions,
)
from mlcore.repos.runs.history.history_ranges import Stretch
from mlcore.repos.runs.history.point_positions import Order

IN_VAIN: Final = 18
"""Items that a request for one class of spans reads in addition to those that the page needs: they
begin before the page and may end before it."""
POINTS_TOGETHER: Final = 500
"""Points expected in an item that has more than one. If there are fewer, each further request of a
class asks for more items."""
GROWTH: Final = 4

LARGE_PACKS: Final = 1
LARGE_BATCHES: Final = 2


class HistoryPage(NamedTuple):
    points: list[Metric]
    more: bool
    large: int
    """The sum of :data:`LARGE_PACKS` and :data:`LARGE_BATCHES`, each if one request did not read
    all packs, or all batches. The caller passes it when it asks for the next page."""


class _Series(NamedTuple):
    experiment_id: str
    run_id: str
    key: str

    @property
    def pk(self) -> str:
        return keys.run(self.experiment_id, self.run_id).pk


PointFilter = Callable[[list[Metric]], list[Metric]]
"""A function from points that were read to those of them that a page may contain."""

_Ask = Callable[[Raw | None, int], tuple[list[Stretch], Raw | None]]
"""Reads items of one class of spans: (key of the last item read before, number of items) → (their
ranges, key of the last item read now; None after the last item)."""


def read(
    experiment_id: str,
    run_id: str,
    key: str,
    after: Order | None,
    size: int,
    large: int = 0,
    beside: Sequence[Callable[[], None]] = (),
    kept: PointFilter | None = None,
) -> HistoryPage:
    """Returns the first ``size`` distinct points of the metric ``key`` after ``after``, in MLflow's
    order of history (timestamp, step, value).

    Args:
        after: the last point of the page before; None for the first page.
        large: what the page before has found too large to be read whole (``HistoryPage.large``); 0
            for the first page.
        beside: functions to call in parallel with the first request.
        kept: is given points that were read and returns those that the page may contain; None for
            all.
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
        points, now_large = _read(series, after, size + 1, large, few[0], kept or list)
        return HistoryPage(points[:size], len(points) > size, now_large)

    return retry_on_conflict("history", attempt)


def _few_batches(series: _Series) -> list[Stretch] | None:
    """Returns where a run's batches (items with the points of one request) and files have points of
    the metric; None if the run has so many batches that one request does not list them all."""
    page = table.query(
        series.pk,
        between=keys.run_metric_batches(series.run_id),
        attributes=[RunMetricBatch.SK, *metric_history.BATCH_ATTRIBUTES],
    )
    if page.last_key is not None:
        return None
    stretches = []
    for item in page.items:
        if metric_history.is_file(item):
            stretches += _segments(series, item)
        else:
            stretches.append(history_ranges.of_batch(item, series.key))
    return stretches


def _read(
    series: _Series,
    after: Order | None,
    wanted: int,
    large: int,
    few: list[Stretch] | None,
    kept: PointFilter,
) -> tuple[list[Metric], int]:
    """Returns the first ``wanted`` points after ``after``, and the new value of
    ``HistoryPage.large``.

    Args:
        large: ``HistoryPage.large`` of the page before.
        few: the ranges in batches and files; None if one request did not list them all.
        kept: is given points that were read and returns those that the page may contain.
    """

    def load(stretches: Sequence[Stretch]) -> list[Metric]:
        return kept(history_ranges.load(series.pk, series.key, stretches))

    points: list[Metric] = []
    if few is None:
        large |= LARGE_BATCHES
        points += _first(_merged(_batches, series, after, wanted), after, wanted, load)
        few = _all_segments(series)
    packs = None if large & LARGE_PACKS else _few_packs(series)
    if packs is None:
        large |= LARGE_PACKS
        points += _first(_merged(_entries, series, after, wanted), after, wanted, load)
    at = _place(after)
    reaching = [stretch for stretch in (*few, *(packs or ())) if stretch.last >= at]
    reaching.sort(key=lambda stretch: stretch.first)
    points += _first(iter(reaching), after, wanted, load)
    return _behind(points, after, wanted), large


def _few_packs(series: _Series) -> list[Stretch] | None:
    """Returns the ranges of all packs of the metric (items with many points of it); None if there
    are so many that one request does not read them all."""
    page = table.query(
        series.pk,
        prefix=keys.run_metric_history_prefix(series.run_id, series.key),
        attributes=[RunMetricHistory.lsi2sk, *metric_history.PACK_ATTRIBUTES],
    )
    if page.last_key is not None:
        return None
    return [history_ranges.of_pack(item) for item in page.items]


def _all_segments(series: _Series) -> list[Stretch]:
    files = table.query_all(
        series.pk,
        prefix=keys.run_metric_file_prefix(series.run_id),
        attributes=[RunMetricFile.location, RunMetricFile.directory],
    )
    return [stretch for item in files for stretch in _segments(series, item)]


def _segments(series: _Series, file: Raw) -> list[Stretch]:
    segments = history_files.segments(file, series.key)
    return [history_ranges.of_segment(segment) for segment in segments]


def _place(after: Order | None) -> str:
    return "" if after is None else point_positions.position_of(after)


def _behind(points: Sequence[Metric], after: Order | None, wanted: int) -> list[Metric]:
    ordered = metric_history.distinct(points)
    if after is not None:
        ordered = [point for point in ordered if point_positions.order(point) > after]
    return ordered[:wanted]


def _first(
    stretches: Iterator[Stretch],
    after: Order | None,
    wanted: int,
    load: Callable[[Sequence[Stretch]], list[Metric]],
) -> list[Metric]:
    """Returns the first ``wanted`` points after ``after``, and reads only as many of the stored
    ranges as that needs.

    Args:
        stretches: the stored ranges, ordered by their first points.
        load: reads the points in the given ranges.
    """
    points: dict[Order, Metric] = {}
    upcoming = next(stretches, None)
    further = 2
    while upcoming is not None:
        together, count = [], 0
        number_wanted = max(wanted - len(points), further if points else 0)
        while upcoming is not None and count < number_wanted:
            together.append(upcoming)
            count += upcoming.size
            upcoming = next(stretches, None)
        loaded = load(together)
        if upcoming is None and not points:  # as it mostly is: all at once
            return _behind(loaded, after, wanted)
        for point in loaded:
            at = point_positions.order(point)
            if after is None or at > after:
                points[at] = point
        if upcoming is not None and len(points) >= wanted:
            bound = point_positions.parse(upcoming.first)
            if sum(at[:3] < bound for at in points) >= wanted:
                break
        further *= GROWTH
    return [points[at] for at in sorted(points)[:wanted]]


def _merged(
    read: Callable[[_Series, int, str], _Ask], series: _Series, after: Order | None, wanted: int
) -> Iterator[Stretch]:
    """Yields the stored ranges of points that may end after ``after``, ordered by their first
    points. Ranges are classified by how much time they span
    (:data:`mlcore.repos.runs.history.length_classes.SPANS`); each class is a query of its own, and
    the first pages of all classes are read in parallel.

    Args:
        read: (series, class, key to start at) → a function that reads the ranges of this class.
        wanted: how many points the caller needs.
    """
    at = _place(after)
    classes = [
        read(series, span, length_classes.earliest(at, span) if at else "")
        for span in range(len(length_classes.SPANS))
    ]
    # Of single points a page has as many as it has points.
    limits = [IN_VAIN + wanted // (POINTS_TOGETHER if span else 1) for span in range(len(classes))]
    pages = table.parallel(
        [partial(ask, None, limit) for ask, limit in zip(classes, limits, strict=True)]
    )

    def rest(ask: _Ask, page: tuple[list[Stretch], Raw | None], limit: int) -> Iterator[Stretch]:
        points, start = page
        while True:
            yield from (stretch for stretch in points if stretch.last >= at)
            if start is None:
                return
            limit *= GROWTH
            points, start = ask(start, limit)

    streams = [rest(*arguments) for arguments in zip(classes, pages, limits, strict=True)]
    return heapq.merge(*streams, key=lambda stretch: stretch.first)


def _batches(series: _Series, span: int, first: str) -> _Ask:
    between = keys.run_metric_batch_from(series.run_id, span, first)

    def ask(start: Raw | None, limit: int) -> tuple[list[Stretch], Raw | None]:
        page = table.query(
            series.pk,
            between=between,
            attributes=[RunMetricBatch.SK, RunMetricBatch.data],
            limit=limit,
            start=start,
        )
        return [_batch(item, series.key) for item in page.items], page.last_key

    return ask


def _batch(item: Raw, key: str) -> Stretch:
    """Returns the range of the metric's points in a batch item, with the points unpacked. The
    number of points is then exact, so that fewer requests are needed."""
    _, first = keys.parse_batch_id(RunMetricBatch.of(item).SK)
    return history_ranges.of_points(metric_history.points_of_batch(item, key))._replace(first=first)


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
        stretches = [history_ranges.of_entry(item, series.key) for item in page.items]
        return stretches, page.last_key

    return ask
