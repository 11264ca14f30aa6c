"""Makes metric history agree with the latest values in the run item.

A request writes the run item (with the latest value of each metric) and the points of history in
parallel, and its process may die after either. Readers infer the missing part from the other one
(``docs/adr/0061``):

- A latest value was logged, so readers show it in its metric's history even if its point was not
  written.
- A point later than its metric's latest value belongs to a request whose run item was not written,
  so no reader shows it. The indexer later raises the latest value, and then readers show the point.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Final, NamedTuple

from mlcore.db import keys
from mlcore.db.expression import Raw
from mlcore.db.table import table
from mlcore.entities.metrics import Metric, recency
from mlcore.models.runs import Run, RunMetric
from mlcore.repos.runs.history import point_positions
from mlcore.repos.runs.history.history_pages import HistoryPage
from mlcore.repos.runs.history.latest_point_text import parse_latest
from mlcore.repos.runs.history.metric_history import distinct
from mlcore.repos.runs.history.point_positions import Order
from mlcore.repos.settings import ttl_policy

_MOMENT: Final = itemgetter(3, 2)
"""Step and timestamp of a point."""


class PagePosition(NamedTuple):
    """Which page of a metric's history to read: at most ``size`` points after the point ``after``
    (None for the first page)."""

    after: Order | None
    size: int


ReadPage = Callable[[Callable[[list[Metric]], list[Metric]]], HistoryPage]


class Latest(NamedTuple):
    """The latest value of one metric in the run item, as a point with step and timestamp."""

    point: Metric
    in_history: bool
    """Whether the history must contain it. False if history expires, because a point may expire
    before its value."""


def of(
    owners: Sequence[tuple[str, str]], key: str, missing: list[tuple[str, str]]
) -> dict[str, Latest]:
    """Returns the latest value of the metric ``key`` by run id; runs without the metric are left
    out. One BatchGetItem for up to 49 runs, with two keys per run.

    Args:
        owners: the runs, as (experiment id, run id).
        missing: a list, to which those of the runs are added that do not exist in their experiment.
    """
    wanted = list(dict.fromkeys(owners))
    # Where its run has no room for it, the metric has an item of its own.
    places = [
        *(keys.run(*owner) for owner in wanted),
        *(keys.run_metric(*owner, key) for owner in wanted),
    ]
    items = table.batch_get([*places, *ttl_policy.unread_keys()])
    ttl_policy.learn(items[len(places) :])
    kept = ttl_policy.kept_seconds("metric_history") is None
    count = len(wanted)
    missing += [owner for owner, run in zip(wanted, items, strict=False) if run is None]
    known = {
        run_id: _text(key, run, alone)
        for (_, run_id), run, alone in zip(wanted, items[:count], items[count:], strict=False)
    }
    return {
        run_id: Latest(parse_latest(key, text), kept)
        for run_id, text in known.items()
        if text is not None
    }


def _text(key: str, run: Raw | None, alone: Raw | None) -> str | None:
    if run is None:
        return None
    inside = (Run.of(run).metrics or {}).get(key)
    return inside if inside is not None or alone is None else RunMetric.of(alone).text


def known(points: list[Metric], latest: Latest | None) -> list[Metric]:
    """Returns those of a metric's points that are not later than the metric's latest value; none if
    the metric has no latest value."""
    if latest is None:
        return []
    bound = recency(latest.point)
    moment = bound[:2]
    moments = map(_MOMENT, points)
    return [
        point
        for point, at in zip(points, moments, strict=True)
        if at < moment or (at == moment and recency(point) <= bound)
    ]


def completed(series: list[Metric], latest: Latest | None) -> list[Metric]:
    """Returns a metric's whole history as readers show it: without points later than the metric's
    latest value, and with the latest value as a point if its point was not written.

    Args:
        series: the points that were read, ordered by timestamp, step and value.
        latest: the metric's latest value; None if it has none, and then the history is empty.
    """
    series = known(series, latest)
    if latest is None or not latest.in_history:
        return series
    moment = (latest.point.step, latest.point.timestamp)
    for point in reversed(series):  # it is usually the last point
        if (point.step, point.timestamp) == moment and same(point, latest.point):
            return series
    return distinct([*series, latest.point])


def paged(
    read: ReadPage, page: HistoryPage, latest: Latest | None, position: PagePosition
) -> HistoryPage:
    """Returns a page of a metric's history as readers show it: without points later than the
    metric's latest value, and with the latest value as a point if its point was not written and
    lies on this page.

    Args:
        read: reads the page again, keeping only the points that a filter accepts. Called if a page
            that is not the last contained later points.
        page: the page as it was read.
        position: where the page begins (``after``), and how many points it may have (``size``).
    """
    points = known(page.points, latest)
    if page.more and len(points) < len(page.points):
        page = read(lambda page_points: known(page_points, latest))
    else:
        page = page._replace(points=points)
    if latest is None or not latest.in_history:
        return page
    at = point_positions.order(latest.point)
    if (position.after is not None and at <= position.after) or _is_later(page, at):
        return page
    index = bisect_left(page.points, at, key=point_positions.order)
    points = page.points
    if index == len(points) or point_positions.order(points[index]) != at:
        points = [*points[:index], latest.point, *points[index:]]
    return page._replace(
        points=points[: position.size], more=page.more or len(points) > position.size
    )


def _is_later(page: HistoryPage, at: Order) -> bool:
    """Whether the position ``at`` (timestamp, step, value) lies after the end of a page."""
    return page.more and bool(page.points) and at > point_positions.order(page.points[-1])


def same(point: Metric, other: Metric) -> bool:
    """Whether two points of one metric count as the same point in history: step, timestamp and
    value are equal. NaN equals only NaN."""
    if math.isnan(point.value) != math.isnan(other.value):
        return False
    return recency(point) == recency(other)
