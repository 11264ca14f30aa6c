"""Latest values as points of history: what the run item says of a metric.

A request writes the run item and the points of history side by side, and may die after either. Both
are read as one (``docs/adr/0061``):

- A latest value was logged, so it belongs to the history of its metric even where its point was not
  written.
- A point that is later than its metric's latest value belongs to a request whose run item was not
  written, so no reader is shown it. The indexer raises the latest value, and the point appears.

Writes nothing.
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
from mlcore.repos.runs import point_places
from mlcore.repos.runs.history import distinct
from mlcore.repos.runs.history_pages import HistoryPage
from mlcore.repos.runs.point_places import Order
from mlcore.repos.runs.points import parse_latest
from mlcore.repos.settings import ttl_policy

_MOMENT: Final = itemgetter(3, 2)
"""Step and timestamp of a point."""


class Place(NamedTuple):
    """Which page of a history: at most ``size`` points behind ``after``."""

    after: Order | None
    size: int


ReadPage = Callable[[Callable[[list[Metric]], list[Metric]]], HistoryPage]


class Latest(NamedTuple):
    """The latest value of a metric of a run."""

    point: Metric
    in_history: bool
    """Whether it must be a point of its history: not where history expires, for there a point may
    rightly be gone before its value."""


def of(owners: Sequence[tuple[str, str]], key: str) -> dict[str, Latest]:
    """The latest value of a metric in each run of (experiment id, run id) that has one, by run id;
    one BatchGetItem."""
    wanted = list(dict.fromkeys(owners))
    # Where its run has no room for it, the metric has an item of its own.
    places = [
        *(keys.run(*owner) for owner in wanted),
        *(keys.run_metric(*owner, key) for owner in wanted),
    ]
    found = table.batch_get([*places, *ttl_policy.asking()])
    ttl_policy.learn(found[len(places) :])
    kept = ttl_policy.kept("metric_history") is None
    count = len(wanted)
    known = {
        run_id: _text(key, run, alone)
        for (_, run_id), run, alone in zip(wanted, found[:count], found[count:], strict=False)
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
    """The points of a metric that are no later than its latest value."""
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
    """A history in its order as far as its run knows it, with the latest value among its points."""
    series = known(series, latest)
    if latest is None or not latest.in_history:
        return series
    moment = (latest.point.step, latest.point.timestamp)
    for point in reversed(series):  # it is mostly the last one
        if (point.step, point.timestamp) == moment and same(point, latest.point):
            return series
    return distinct([*series, latest.point])


def paged(read: ReadPage, page: HistoryPage, latest: Latest | None, place: Place) -> HistoryPage:
    """A page as far as the run knows it, with the latest value among its points, if it lies between
    ``place.after`` and the end of the page.

    Args:
        read: reads the page again with only those of its points that a function leaves. Called
            where the run does not know all points of a page that is not the last one.
    """
    points = known(page.points, latest)
    if page.more and len(points) < len(page.points):
        page = read(lambda found: known(found, latest))
    else:
        page = page._replace(points=points)
    if latest is None or not latest.in_history:
        return page
    at = point_places.order(latest.point)
    if (place.after is not None and at <= place.after) or _is_later(page, at):
        return page
    index = bisect_left(page.points, at, key=point_places.order)
    points = page.points
    if index == len(points) or point_places.order(points[index]) != at:
        points = [*points[:index], latest.point, *points[index:]]
    return page._replace(points=points[: place.size], more=page.more or len(points) > place.size)


def _is_later(page: HistoryPage, at: Order) -> bool:
    """Whether a place belongs to one of the next pages."""
    return page.more and bool(page.points) and at > point_places.order(page.points[-1])


def same(one: Metric, other: Metric) -> bool:
    """Whether two points of one metric are one point, as history counts them."""
    if math.isnan(one.value) != math.isnan(other.value):
        return False
    return recency(one) == recency(other)
