"""Writes to runs that this process has cached, without reading the run first: one round trip.

The cached run may be stale, so the update requires exactly the version that is cached. In parallel
(or in one transaction, see :mod:`.log_writes`) the points of metric history are written and the
experiment is read, because its deletion is not visible in the run item. If the condition fails, the
change is computed again for the current run. A write that turns out to be forbidden is reverted;
see ``docs/adr/0054``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from mlcore import errors, optimistic_retry
from mlcore.db import keys
from mlcore.db.expression import Raw, Update
from mlcore.db.failures import ConditionFailed
from mlcore.db.table import Put, table
from mlcore.entities.experiments import Experiment
from mlcore.entities.lifecycle_stages import ACTIVE
from mlcore.entities.metrics import Metric
from mlcore.models.base import MetaItem
from mlcore.models.experiments import Experiment as ExperimentItem
from mlcore.models.runs import Run as RunItem
from mlcore.process_cache import ProcessCache
from mlcore.repos import document
from mlcore.repos.experiments import experiments
from mlcore.repos.runs.core import log_writes, marks, run_cache, run_writes, runs
from mlcore.repos.runs.core.run_writes import Decision, RunChange
from mlcore.repos.runs.core.runs import StoredRun
from mlcore.repos.runs.history import metric_history, rewinds
from mlcore.repos.runs.history.rewinds import RewoundMeanwhile
from mlcore.repos.settings import ttl_policy

MOST_BATCHES: Final = 4
"""Maximum items of points in a request; with more, the run is read first."""

MOST_BYTES: Final = 100_000
"""Maximum bytes to set, so that the item of a cached run has room."""

_shared: ProcessCache[str, bool] = ProcessCache("run that others write to", seconds=5.0)
"""Runs that several processes write to. For a few seconds they are read first, because failed
conditions cost write units too."""


def write(run_id: str, workspace: str, decide: Decision, metrics: Sequence[Metric] = ()) -> bool:
    """Writes the values that ``decide`` returns, and points of metric history, to a run that this
    process has cached.

    Args:
        decide: returns the values to set and to remove in the maps of the run's item, from the
            current run (:data:`mlcore.repos.runs.core.run_writes.Decision`).
        metrics: the points to add to the metric history.

    Returns:
        False if nothing was written, for example because the run is not cached, or the write was
            reverted: the caller should read the run and write then.

    Raises:
        MlflowError: as ``decide`` and :func:`mlcore.repos.runs.core.run_writes.write` do. After a
            4xx error, nothing is written.
    """
    run = run_cache.cached_run(run_id, workspace)
    if run is None or run.stage != ACTIVE:
        return False
    # Other items that must be read are read with the run.
    if run_id in _shared or ttl_policy.unread_keys():
        return False
    try:
        sending = _sending(run, decide, metrics)
    except errors.MlflowError:
        return False
    return sending is not None and sending.send(decide, [sending.update, sending.read_experiment])


def write_texts(run_id: str, workspace: str, decide: Decision) -> None:
    """Sets and removes the texts of a run (such as tags) that ``decide`` returns. Reads the run
    first if it is not cached. Raises as :func:`write`."""
    if not write(run_id, workspace, decide):
        run_writes.write(runs.load(run_id, workspace), decide)


def write_read(run: StoredRun, decide: Decision, metrics: Sequence[Metric]) -> bool:
    """Writes values of the run item (such as params) and points of metric history to a run that was
    just read with its experiment; otherwise as :func:`write`. Returns False if nothing was written.
    """
    if run.run_id in _shared:
        return False
    runs.check_active(run)
    sending = _sending(run, decide, metrics)
    return sending is not None and sending.send(decide, [sending.update])


def _sending(run: StoredRun, decide: Decision, metrics: Sequence[Metric]) -> _Sending | None:
    """Returns the prepared write; None if it needs more than one UpdateItem and a few puts of
    points, or could not be reverted."""
    change = run_writes.decided(run, decide, ())
    if change is None or change.attributes or change.removals or run.item.property_types:
        return None
    if document.weight(change.sets) > MOST_BYTES or run.document.overflowed:
        return None
    batches = metric_history.batches(
        run.experiment.experiment_id, run.run_id, metrics, rewinds.time_after(run.item)
    )
    if len(batches) > MOST_BATCHES:
        return None
    is_mixed = bool(batches) and log_writes.has_texts(change)
    together = is_mixed or not log_writes.are_latest(change, metrics)
    # A batch without any latest value may have existed before.
    if together and not (len(batches) == 1 and change.sets.get("metrics")):
        return None
    return _Sending(run, change, metrics, batches, together=together)


class _Sending:
    """A write in progress, which consists of the update of the run's item, the puts of its points
    and the read of its experiment, and the results of these parts."""

    def __init__(
        self,
        run: StoredRun,
        change: RunChange,
        metrics: Sequence[Metric],
        batches: Sequence[Raw],
        *,
        together: bool,
    ) -> None:
        """
        Args:
            batches: the items with the points of ``metrics``.
            together: whether the run's item and the points are written in one transaction (see
                :mod:`.log_writes`) rather than in parallel.
        """
        self._run = run
        self._change = change
        self._metrics = metrics
        self._batches = batches
        self._together = together
        self._experiment: Experiment | None = run.experiment
        """None once the experiment turns out to forbid the write."""
        self._left: Raw | None = None
        """The run item as the write left it."""
        self._instead: ConditionFailed | None = None
        self._new: list[Raw] = []
        """The batches of points that were not there before."""

    def send(self, decide: Decision, calls: Sequence[Callable[[], None]]) -> bool:
        """Executes the calls, in parallel with the puts of the metric points unless they are in the
        same transaction as the update. Returns False if the experiment, read in parallel, does not
        allow the write: then it was reverted, and the caller should read the run and write again.

        Args:
            decide: computes the change from the run as it was read; called again after a conflict
                with another writer.
            calls: the update of the run's item, and the read of the experiment if it is needed.
        """
        try:
            alone = () if self._together else self._batches
            puts = [partial(self._put, batch) for batch in alone]
            table.parallel(list[Callable[[], None]]((*calls, *puts)))
        except errors.MlflowError:
            run_cache.forget_run(self._run.run_id)
            if self._experiment is None:
                self._take_back()
            raise
        if self._experiment is None:
            run_cache.forget_run(self._run.run_id)
            self._take_back()
            return False
        if self._instead is not None:
            _shared.put(self._run.run_id, True)
            self._decide_again(decide, self._experiment, self._instead.item)
        return True

    def update(self) -> None:
        puts = [Put(batch) for batch in self._batches] if self._together else []
        try:
            self._left = run_writes.send_change(
                self._run, self._change, exclusive=True, beside=puts
            )
        except ConditionFailed as failed:
            self._instead = failed
        else:
            self._new += [put.item for put in puts]

    def read_experiment(self) -> None:
        meta = table.get(keys.experiment(self._run.experiment.experiment_id))
        self._experiment = _allowing(self._run, meta)

    def _put(self, batch: Raw) -> None:
        before = table.put(batch)
        if before is None or metric_history.is_refused(before):
            self._new.append(batch)

    def _decide_again(self, decide: Decision, experiment: Experiment, item: Raw | None) -> None:
        run = self._run._replace(experiment=experiment)
        if self._together:
            log_writes.write(run_writes.meanwhile(run, item), decide, self._metrics)
            return
        try:
            run_writes.write(run_writes.meanwhile(run, item), decide, shared=True)
        except errors.MlflowError as refused:
            if refused.status < 500:
                self._take_back()
            raise
        except RewoundMeanwhile:
            self._take_back()
            raise

    def _take_back(self) -> None:
        for batch in self._new:
            metric_history.refuse(batch)
        if self._left is not None:
            _revert(self._run, self._change, self._left)


def _allowing(run: StoredRun, meta: Raw | None) -> Experiment | None:
    """Returns the run's experiment as it is now; None if it does not allow writing to the run.

    Args:
        meta: the experiment's item; None if it does not exist.
    """
    if meta is None:
        return None
    item, known = ExperimentItem.of(meta), run.experiment
    if item.workspace != known.workspace:
        return None
    if item.epoch == known.epoch:
        return known
    experiment = experiments.of_item(meta).experiment
    return experiment if runs.stage(run.item, experiment) == ACTIVE else None


def _revert(run: StoredRun, change: RunChange, written: Raw) -> None:
    """Restores the values that the run had before a forbidden write, except values that another
    write has changed since.

    Args:
        run: the run before the write.
        change: the change that was written.
        written: the run's item as the write left it.
    """
    current: Raw | None = written

    def attempt() -> None:
        nonlocal current
        update = None if current is None else _reverting(run, change, current)
        if update is None:
            return
        try:
            table.update(run.document.key, update)
        except ConditionFailed as failed:
            current = failed.item
            raise optimistic_retry.WriteConflict from failed

    optimistic_retry.retry_on_conflict("run", attempt)


def _reverting(run: StoredRun, change: RunChange, current_item: Raw) -> Update | None:
    """Returns the update that :func:`_revert` executes; None if another write has changed all
    values of the change since.

    Args:
        run: the run before the forbidden write.
        current_item: the run's item now.
    """
    update = Update()
    reverted = False
    for name, texts in change.sets.items():
        field = run.document.maps[name].field
        before, now = field.of(run.document.item), field.of(current_item)
        ours = {key for key, text in texts.items() if now.get(key) == text != before.get(key)}
        if ours:
            kept = {key: text for key, text in now.items() if key not in ours}
            former = {key: before[key] for key in ours if key in before}
            update.set_raw(field, field.like(current_item, {**kept, **former}))
            reverted = True
    if not reverted:
        return None
    document.touch(update)
    # The mark of the write may have been removed: the indexer may have processed the run since.
    mark = marks.after(RunItem.of(current_item), change.sets, change.removals)
    if mark is not None:
        update.set(RunItem.lsi5sk, mark)
    update.require_equal(MetaItem.version, MetaItem.of(current_item).version)
    return update
