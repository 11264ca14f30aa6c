"""Rewinds runs: deletes the points after a step, so that a training can be repeated from there.

1. One transaction lowers the latest values, opens the attribute ``rewinds`` of the run
   (:mod:`mlcore.repos.runs.history.rewinds`) and counts the rewind. From then on readers show only
   the remaining points, because they show no point that is later than the latest value of its
   metric.
2. The points are removed from the history.
3. The attribute is closed.

No request logs metrics to the run between steps 1 and 3: a request that finds the attribute open
first does steps 2 and 3 itself. The indexer does so, too, if the process was killed. A request that
had read the run before step 1 begins again, because step 2 may have removed its points.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final, TypeVar

from mlcore import optimistic_retry
from mlcore.db import keys
from mlcore.db.expression import ConditionExpression, Update
from mlcore.db.failures import ConditionFailed
from mlcore.db.table import ItemUpdate, TransactionFailed, table
from mlcore.entities.metrics import Metric, recency
from mlcore.ids import now_ms
from mlcore.models.runs import Run as RunItem
from mlcore.models.runs import RunReference
from mlcore.optimistic_retry import WriteConflict
from mlcore.repos.document import Owner
from mlcore.repos.experiments import experiments
from mlcore.repos.runs.core import run_cache, run_writes, runs
from mlcore.repos.runs.core.run_writes import RunChange
from mlcore.repos.runs.core.runs import StoredRun
from mlcore.repos.runs.history import metric_history, point_removal, rewinds
from mlcore.repos.runs.history.latest_point_text import latest_of, latest_text
from mlcore.repos.runs.history.rewinds import Rewind, RewoundMeanwhile

T = TypeVar("T")

FEW_METRICS: Final = 4
"""Up to this many metrics, the history of each is read; for more, the run's whole history is."""


def rewind(run_id: str, workspace: str, after_step: int | None, names: Collection[str]) -> None:
    """Deletes the metric points of a run after a step. Does nothing if there are no such points.

    Args:
        after_step: None for points of all steps.
        names: the metrics; all if it is empty.

    Raises:
        ResourceDoesNotExist: the run does not exist.
        InvalidParameterValue: the run is deleted.
        RequestLimitExceeded: every attempt conflicted with other writes to the run.
    """
    wanted = Rewind(0, after_step, tuple(sorted(names)) or None)
    remaining: dict[str, Metric | None] = {}

    def attempt() -> Owner | None:
        run = runs.load(run_id, workspace)
        runs.check_active(run)
        owner = (run.experiment.experiment_id, run_id)
        if rewinds.of(run.item).is_open:
            finish(owner)
            raise WriteConflict
        affected = _affected(run, wanted)
        if not affected:
            return None
        _read_remaining(owner, wanted, affected, remaining)
        _begin(run, wanted, {key: remaining[key] for key in affected})
        return owner

    owner = optimistic_retry.retry_on_conflict("run", attempt)
    if owner is not None:
        finish(owner)


def finish(owner: Owner) -> None:
    """Completes the rewind of a run (the deletion of its points after a step), if one has begun and
    is not complete; does nothing for a removed run. May be killed anywhere, repeated, and called by
    several processes at once.

    Args:
        owner: experiment id and run id.
    """

    def attempt() -> None:
        run = _read(owner)
        if run is None or not rewinds.of(run.item).is_open:
            return
        condition = ConditionExpression()
        rewinds.require_unchanged(condition, run.item)
        rewind = rewinds.of(run.item).last[-1]
        try:
            latest = point_removal.remove(
                owner, lambda point: not rewind.deletes(point.key, point.step), condition
            )
        except point_removal.NoLongerNeeded:
            raise WriteConflict from None
        _close(owner, rewind, latest)

    run_cache.forget_run(owner[1])
    optimistic_retry.retry_on_conflict("run", attempt)


def retried(call: Callable[[], T]) -> T:
    """Calls ``call``, which logs metrics to a run, and returns its result. If ``call`` raises
    RewoundMeanwhile, completes the rewind (the deletion of the run's points after a step) and calls
    ``call`` again."""

    def attempt() -> T:
        try:
            return call()
        except RewoundMeanwhile as rewound:
            finish(rewound.run)
            raise WriteConflict from rewound

    return optimistic_retry.retry_on_conflict("run", attempt)


def _affected(run: StoredRun, rewind: Rewind) -> dict[str, Metric]:
    """Returns the latest values that a rewind deletes, by metric. These are all metrics of which it
    deletes points, because the latest value has the greatest step."""
    return {
        key: point
        for key, point in runs.metrics(run.document).items()
        if rewind.deletes(key, point.step)
    }


def _read_remaining(
    owner: Owner, rewind: Rewind, keys_affected: Collection[str], into: dict[str, Metric | None]
) -> None:
    """Adds to ``into``, for each metric of ``keys_affected`` that it lacks, the latest point that
    the rewind does not delete; None if it deletes all points of the metric."""
    unread = {key for key in keys_affected if key not in into}
    into.update(dict.fromkeys(unread))
    if rewind.after_step is None or not unread:
        return
    experiment_id, run_id = owner
    points = (
        (
            point
            for key in sorted(unread)
            for point in metric_history.read(experiment_id, run_id, key)
        )
        if len(unread) <= FEW_METRICS
        else metric_history.of_run(experiment_id, run_id)
    )
    into.update(
        latest_of(
            point
            for point in points
            if point.key in unread and not rewind.deletes(point.key, point.step)
        )
    )


def _begin(run: StoredRun, wanted: Rewind, remaining: dict[str, Metric | None]) -> None:
    """Writes the latest points that remain, and opens the rewind. Raises WriteConflict."""
    last = rewinds.of(run.item)
    # Later than what any process has written to the run, whatever its clock says.
    earlier = [run.item.updated_at or 0, *(begun.at for begun in last.last)]
    text = last.with_next(wanted._replace(at=max(now_ms(), *earlier))).text()
    count = Update()
    count.add(RunReference.rewinds, 1)
    count.require_exists(RunReference.PK)
    change = _change(remaining, text)
    try:
        run_writes.send_change(
            run,
            change,
            exclusive=True,
            beside=[ItemUpdate(keys.run_ref(run.run_id), count)],
            overriding=True,
        )
    except (ConditionFailed, TransactionFailed) as failed:
        raise WriteConflict from failed
    run_cache.forget_run(run.run_id)


def _close(owner: Owner, rewind: Rewind, latest: dict[str, Metric]) -> None:
    """Closes a rewind whose points were removed. Corrects the latest values that :func:`_begin`
    set, because points may have been logged while the history was read.

    Args:
        latest: the latest of the remaining points of each metric.
    """

    def attempt() -> None:
        run = _read(owner)
        if run is None:
            return
        known = rewinds.of(run.item)
        if not known.is_open or known.last[-1] != rewind:
            return
        wrong: dict[str, Metric | None] = dict.fromkeys(_affected(run, rewind))
        stored = runs.metrics(run.document)
        for key, point in latest.items():
            if rewind.has_metric(key) and (
                key in wrong or key not in stored or recency(point) > recency(stored[key])
            ):
                wrong[key] = point
        try:
            run_writes.send_change(
                run, _change(wrong, known.closed().text()), exclusive=True, overriding=True
            )
        except ConditionFailed as failed:
            raise WriteConflict from failed

    optimistic_retry.retry_on_conflict("run", attempt)
    run_cache.forget_run(owner[1])


def _change(metrics: dict[str, Metric | None], text: str) -> RunChange:
    """Returns the change of a run item that sets latest values, removes those that are None, and
    sets the attribute ``rewinds``."""
    sets = {key: latest_text(point) for key, point in metrics.items() if point is not None}
    removals = [("metrics", key) for key, point in metrics.items() if point is None]
    return RunChange({"metrics": sets}, removals, [(RunItem.rewinds, text)])


def _read(owner: Owner) -> StoredRun | None:
    item, meta = table.batch_get([keys.run(*owner), keys.experiment(owner[0])])
    if item is None or meta is None:
        return None
    return runs.of_item(item, experiments.of_item(meta).experiment)
