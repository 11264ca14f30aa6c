"""Latest values as points of history: what the run item says of a metric.

A latest value was logged, so it belongs to the history of its metric even where the request that
logged it died before it wrote the point (``docs/adr/0025``). Writes nothing.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence

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


def of(owners: Sequence[tuple[str, str]], key: str) -> dict[str, Metric]:
    """The latest value of a metric in each run of (experiment id, run id) that has one, by run id;
    one BatchGetItem. None where history expires: there a point may rightly be gone before its
    value."""
    wanted = list(dict.fromkeys(owners))
    # Where its run has no room for it, the metric has an item of its own.
    places = [
        *(keys.run(*owner) for owner in wanted),
        *(keys.run_metric(*owner, key) for owner in wanted),
    ]
    found = table.batch_get([*places, *ttl_policy.asking()])
    ttl_policy.learn(found[len(places) :])
    if ttl_policy.kept("metric_history") is not None:
        return {}
    count = len(wanted)
    known = {
        run_id: _text(key, run, alone)
        for (_, run_id), run, alone in zip(wanted, found[:count], found[count:], strict=False)
    }
    return {run_id: parse_latest(key, text) for run_id, text in known.items() if text is not None}


def _text(key: str, run: Raw | None, alone: Raw | None) -> str | None:
    if run is None:
        return None
    inside = (Run.of(run).metrics or {}).get(key)
    return inside if inside is not None or alone is None else RunMetric.of(alone).text


def completed(series: list[Metric], latest: Metric | None) -> list[Metric]:
    """A history in its order with the latest value among its points."""
    if latest is None:
        return series
    moment = (latest.step, latest.timestamp)
    for point in reversed(series):  # it is mostly the last one
        if (point.step, point.timestamp) == moment and same(point, latest):
            return series
    return distinct([*series, latest])


def placed(page: HistoryPage, latest: Metric | None, after: Order | None, size: int) -> HistoryPage:
    """A page of at most ``size`` points behind ``after`` with the latest value among them, if it
    lies between ``after`` and the end of the page."""
    if latest is None:
        return page
    at = point_places.order(latest)
    if (after is not None and at <= after) or _is_later(page, at):
        return page
    place = bisect_left(page.points, at, key=point_places.order)
    points = page.points
    if place == len(points) or point_places.order(points[place]) != at:
        points = [*points[:place], latest, *points[place:]]
    return page._replace(points=points[:size], more=page.more or len(points) > size)


def _is_later(page: HistoryPage, at: Order) -> bool:
    """Whether a place belongs to one of the next pages."""
    return page.more and bool(page.points) and at > point_places.order(page.points[-1])


def same(one: Metric, other: Metric) -> bool:
    """Whether two points of one metric are one point, as history counts them."""
    if math.isnan(one.value) != math.isnan(other.value):
        return False
    return recency(one) == recency(other)
