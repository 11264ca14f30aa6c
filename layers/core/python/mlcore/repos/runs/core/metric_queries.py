"""Reads the points of one metric, of one run or of many, whole, by page or sampled for charts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Generic, NamedTuple, TypeVar

from mlcore.db.table import table
from mlcore.entities.metrics import Metric, MetricColumns
from mlcore.environment import workspaces_enabled
from mlcore.limits import runs as limits
from mlcore.repos.experiments import experiments
from mlcore.repos.runs.core import runs
from mlcore.repos.runs.history import history_pages, latest_points, metric_history, metric_sampling
from mlcore.repos.runs.history.history_pages import HistoryPage, PointFilter
from mlcore.repos.runs.history.latest_points import Latest, PagePosition
from mlcore.repos.runs.history.metric_history import HistoryParts
from mlcore.repos.runs.history.metric_sampling import SampleRequest
from mlcore.repos.runs.history.point_positions import Order

T = TypeVar("T")

_NONE = MetricColumns((), (), ())


def history_interval(
    workspace: str,
    run_ids: Sequence[str],
    key: str,
    low: int | None,
    high: int | None,
    limit: int,
) -> list[tuple[str, MetricColumns]]:
    """Returns (run id, points) for each run: its points of the metric ``key`` from step ``low`` to
    ``high``. Of more than ``limit`` points: the first of each of ``limit`` groups of consecutive
    points, but of the last group the last. If ``low`` and ``high`` are None, all steps count.

    Raises:
        InvalidParameterValue: only one of ``low`` and ``high`` is None, or ``low`` is greater.
        ResourceDoesNotExist: with workspaces, if one of the runs is not in this one.
    """
    limits.check_step_range(low, high)

    def read(run_id: str, home: str) -> HistoryParts:
        return metric_history.read_stored(home, run_id, key)

    wanted = SampleRequest(key, low, high, limit)
    histories = _of_runs(workspace, run_ids, key, read, refuse=True)
    return [
        (
            run_id,
            _NONE if history is None else metric_sampling.of(history.read, history.latest, wanted),
        )
        for run_id, history in zip(run_ids, histories, strict=True)
    ]


def read_page(
    workspace: str, run_id: str, key: str, after: Order | None, size: int, large: int
) -> HistoryPage:
    """Returns a page of the points of the metric ``key`` in a run; see
    :mod:`mlcore.repos.runs.history.history_pages`. The latest value of the metric in the run item
    is read in parallel: it is included if its point is missing, and points later than it are left
    out.

    Args:
        after: the last point of the page before; None for the first page.
        size: the maximum number of points.
        large: what the page before has found too large to be read whole (``HistoryPage.large``); 0
            for the first page.

    Raises:
        ResourceDoesNotExist: workspaces are enabled, and the run is not in ``workspace``. (If they
            are not enabled, an unknown run has an empty page.)
    """
    home = runs.locate(run_id)
    if home is not None:
        owned: list[bool] = []
        latest: dict[str, Latest] = {}
        missing: list[tuple[str, str]] = []

        def own() -> None:
            owned.append(experiments.find(home, workspace) is not None)

        def look() -> None:
            latest.update(latest_points.of([(home, run_id)], key, missing))

        # Not in a branch of parallel calls, for it makes such calls itself.
        page = history_pages.read(home, run_id, key, after, size, large, beside=(own, look))
        _check_places(missing)
        if all(owned):

            def again(kept: PointFilter) -> HistoryPage:
                return history_pages.read(home, run_id, key, after, size, page.large, kept=kept)

            return latest_points.paged(again, page, latest.get(run_id), PagePosition(after, size))
    if workspaces_enabled():
        raise runs.missing(run_id)
    return HistoryPage([], False, 0)


def read_beginnings(
    workspace: str, run_ids: Sequence[str], key: str, limit: int | None
) -> list[list[Metric]]:
    """Returns the first ``limit`` points of the metric ``key`` of each run, in the order of the
    history (timestamp, step, value); all points if ``limit`` is None."""
    if limit is None:
        return read_many(workspace, run_ids, key)

    def read(run_id: str, home: str) -> HistoryPage:
        return history_pages.read(home, run_id, key, None, limit)

    def again(run_id: str, home: str, kept: PointFilter) -> HistoryPage:
        return history_pages.read(home, run_id, key, None, limit, kept=kept)

    position = PagePosition(None, limit)
    return [
        []
        if beginning is None
        else latest_points.paged(
            partial(again, run_id, beginning.home), beginning.read, beginning.latest, position
        ).points
        for run_id, beginning in zip(run_ids, _of_runs(workspace, run_ids, key, read), strict=True)
    ]


def read_many(workspace: str, run_ids: Sequence[str], key: str) -> list[list[Metric]]:
    """Returns the points of the metric ``key`` of each run; an empty list for unknown runs and runs
    of another workspace."""

    def read(run_id: str, home: str) -> list[Metric]:
        return metric_history.read(home, run_id, key)

    histories = _of_runs(workspace, run_ids, key, read)
    return [
        [] if history is None else latest_points.completed(history.read, history.latest)
        for history in histories
    ]


class _OfRun(NamedTuple, Generic[T]):
    home: str
    """The run's experiment."""
    read: T
    latest: Latest | None


def _of_runs(
    workspace: str,
    run_ids: Sequence[str],
    key: str,
    page_of: Callable[[str, str], T],
    *,
    refuse: bool = False,
) -> list[_OfRun[T] | None]:
    """Returns for each run the result of ``page_of`` with the latest value of the metric ``key``;
    None for runs of another workspace. Workspaces and latest values are read in parallel with the
    points.

    Args:
        page_of: (run id, experiment id) → what was read of the run's points.
        refuse: with workspaces, raise for missing runs instead of treating them as empty.

    Raises:
        ResourceDoesNotExist: see ``refuse``.
    """
    homes = table.parallel([partial(runs.locate, run_id) for run_id in run_ids])
    distinct = list(dict.fromkeys(home for home in homes if home is not None))
    owned: set[str] = set()
    latest: dict[str, Latest] = {}
    missing: list[tuple[str, str]] = []

    def own() -> None:
        owned.update(
            result.experiment_id for result in experiments.find_existing(distinct, workspace)
        )

    def look() -> None:
        owners = [(home, run_id) for home, run_id in zip(homes, run_ids, strict=True) if home]
        latest.update(latest_points.of(owners, key, missing))

    calls: list[Callable[[], T | None]] = [
        _nothing if home is None else partial(page_of, run_id, home)
        for home, run_id in zip(homes, run_ids, strict=True)
    ]
    _, _, *results = table.parallel([own, look, *calls])
    _check_places(missing)
    if refuse and workspaces_enabled():
        for home, run_id in zip(homes, run_ids, strict=True):
            if home not in owned:
                raise runs.missing(run_id)
    return [
        None
        if result is None or home is None or home not in owned
        else _OfRun(home, result, latest.get(run_id))
        for home, run_id, result in zip(homes, run_ids, results, strict=True)
    ]


def _check_places(missing: Sequence[tuple[str, str]]) -> None:
    """Raises RunMoved if one of the runs, given as (experiment id, run id), is now in another
    experiment."""
    for experiment_id, run_id in missing:
        runs.check_place(run_id, experiment_id)


def _nothing() -> None:
    return None
