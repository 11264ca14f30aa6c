"""The points of one metric, of one run or of many, and sampled for charts."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from operator import itemgetter, lt
from typing import Generic, NamedTuple, TypeVar

from mlcore.db.table import table
from mlcore.entities.metrics import Metric
from mlcore.environment import workspaces_enabled
from mlcore.limits import runs as limits
from mlcore.repos.experiments import experiments
from mlcore.repos.runs import history, history_pages, latest_points, runs
from mlcore.repos.runs.history_pages import HistoryPage
from mlcore.repos.runs.point_places import Order

T = TypeVar("T")

_MOMENT = itemgetter(3, 2)
"""Step and timestamp of a point."""


def history_interval(
    workspace: str,
    run_ids: Sequence[str],
    key: str,
    low: int | None,
    high: int | None,
    limit: int,
) -> list[tuple[str, list[Metric]]]:
    """By run, at most ``limit`` of its points from step ``low`` to ``high``, spread evenly over
    them, the last one always among them."""
    limits.check_step_range(low, high)
    found = read_many(workspace, run_ids, key, refuse=True)
    return [
        (run_id, sample(_between(series, low, high), limit))
        for run_id, series in zip(run_ids, found, strict=True)
    ]


def sample(points: Sequence[Metric], limit: int) -> list[Metric]:
    """The first point of each of ``limit`` buckets over the points by step, and the last point.

    Buckets are those of SQL's NTILE: of N points in n buckets, the first N mod n hold one more.
    When the sample is full already, the last point takes the place of the last one sampled.
    """
    ordered = points
    moments = list(map(_MOMENT, points))
    if not all(map(lt, moments, moments[1:])):  # as they mostly are
        ordered = sorted(points, key=lambda p: (p.step, p.timestamp, *value_order(p)))
    if len(ordered) <= limit:
        return list(ordered)
    size, larger = divmod(len(ordered), limit)
    firsts = [bucket * size + min(bucket, larger) for bucket in range(limit)]
    chosen = [ordered[position] for position in firsts]
    if firsts[-1] != len(ordered) - 1:
        chosen[-1] = ordered[-1]
    return chosen


def _between(series: list[Metric], low: int | None, high: int | None) -> list[Metric]:
    if low is None or high is None:
        return series
    return [point for point in series if low <= point.step <= high]


def read_page(
    workspace: str, run_id: str, key: str, after: Order | None, size: int, large: int
) -> HistoryPage:
    """The first points of a run behind one; see :mod:`mlcore.repos.runs.history_pages`. The
    latest value is read beside them and is one of them.

    Raises:
        ResourceDoesNotExist: where there are workspaces and the run is not there.
    """
    home = runs.locate(run_id)
    if home is not None:
        owned: list[bool] = []
        latest: dict[str, Metric] = {}

        def own() -> None:
            owned.append(experiments.find(home, workspace) is not None)

        def look() -> None:
            latest.update(latest_points.of([(home, run_id)], key))

        # Not in a branch of parallel calls, for it makes such calls itself.
        page = history_pages.read(home, run_id, key, after, size, large, beside=(own, look))
        if all(owned):
            return latest_points.placed(page, latest.get(run_id), after, size)
    if workspaces_enabled():
        raise runs.missing(run_id)
    return HistoryPage([], False, 0)


def read_beginnings(
    workspace: str, run_ids: Sequence[str], key: str, limit: int | None
) -> list[list[Metric]]:
    """At most ``limit`` first points of each run, which is no more than what all may need."""
    if limit is None:
        return read_many(workspace, run_ids, key)

    def read(run_id: str, home: str) -> HistoryPage:
        return history_pages.read(home, run_id, key, None, limit)

    found = _of_runs(workspace, run_ids, key, read)
    return [
        [] if one is None else latest_points.placed(one.read, one.latest, None, limit).points
        for one in found
    ]


def read_many(
    workspace: str, run_ids: Sequence[str], key: str, *, refuse: bool = False
) -> list[list[Metric]]:
    """The points of each run; none for runs of another workspace.

    Args:
        refuse: where there are workspaces, runs that are not there are no runs without points.

    Raises:
        ResourceDoesNotExist: as ``refuse`` says.
    """

    def read(run_id: str, home: str) -> list[Metric]:
        return history.read(home, run_id, key)

    found = _of_runs(workspace, run_ids, key, read, refuse=refuse)
    return [[] if one is None else latest_points.completed(one.read, one.latest) for one in found]


class _OfRun(NamedTuple, Generic[T]):
    read: T
    latest: Metric | None


def _of_runs(
    workspace: str,
    run_ids: Sequence[str],
    key: str,
    page_of: Callable[[str, str], T],
    *,
    refuse: bool = False,
) -> list[_OfRun[T] | None]:
    """What is read of each run and its experiment, and the latest value of the metric; None for
    runs of another workspace. Whose an experiment is and the latest values are read beside the
    points."""
    homes = table.parallel([partial(runs.locate, run_id) for run_id in run_ids])
    distinct = list(dict.fromkeys(home for home in homes if home is not None))
    owned: set[str] = set()
    latest: dict[str, Metric] = {}

    def own() -> None:
        owned.update(one.experiment_id for one in experiments.known(distinct, workspace))

    def look() -> None:
        owners = [(home, run_id) for home, run_id in zip(homes, run_ids, strict=True) if home]
        latest.update(latest_points.of(owners, key))

    calls: list[Callable[[], T | None]] = [
        _nothing if home is None else partial(page_of, run_id, home)
        for home, run_id in zip(homes, run_ids, strict=True)
    ]
    _, _, *found = table.parallel([own, look, *calls])
    if refuse and workspaces_enabled():
        for home, run_id in zip(homes, run_ids, strict=True):
            if home not in owned:
                raise runs.missing(run_id)
    return [
        None if one is None or home not in owned else _OfRun(one, latest.get(run_id))
        for home, run_id, one in zip(homes, run_ids, found, strict=True)
    ]


def _nothing() -> None:
    return None


def value_order(point: Metric) -> tuple[float, int]:
    """NaN takes its place as 0, after a real 0."""
    return (0.0, 1) if math.isnan(point.value) else (point.value, 0)
