"""Writes logged values to the run item, to metric history and to logged models, so that a reader of
two of them sees a metric in both or in neither, even if the process dies in between.

If each point is the latest of its metric, the run item and the points are written in parallel, in
one round trip: a reader can tell from either what is missing in the other (see
:mod:`.latest_points`). With params or tags the run item is written first, because points do not
tell them. Everything else is one transaction, which costs twice the write units: several points of
one metric, older points beside latest ones, and points of logged models (if these do not fit, they
follow it). See ``docs/adr/0061``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, NamedTuple

from mlcore.db import keys
from mlcore.db.expression import Raw, Update
from mlcore.db.table import ItemUpdate, Operation, Put, TransactionFailed, table
from mlcore.entities.logged_models import ModelMetric
from mlcore.entities.metrics import Metric
from mlcore.ids import new_ulid
from mlcore.models.runs import RunReference
from mlcore.optimistic_retry import WriteConflict
from mlcore.repos import document_write_retries
from mlcore.repos.logged_models import points as logged_model_points
from mlcore.repos.runs.core import run_writes, runs
from mlcore.repos.runs.core.run_writes import Decision, RunChange
from mlcore.repos.runs.core.runs import StoredRun
from mlcore.repos.runs.history import metric_history, rewinds

MOST_TOGETHER: Final = 80
"""Maximum number of items besides the run's item in one transaction. DynamoDB allows 100, and some
texts may move from the run's item to further items. If points of logged models do not fit, they are
written after the transaction."""


class ModelPoints(NamedTuple):
    """Metric points to write for a logged model, and the item of the model."""

    item: Raw
    points: Sequence[ModelMetric]


def write(
    run: StoredRun,
    decide: Decision,
    metrics: Sequence[Metric],
    models: Sequence[ModelPoints] = (),
) -> None:
    """Writes logged values and metric points of a run that was just read. Calls ``decide`` again
    after each conflict with another writer. Raises InvalidParameterValue if the run is not active.

    Args:
        decide: returns the values to set and to remove in the maps of the run's item, from the
            current run (:data:`mlcore.repos.runs.core.run_writes.Decision`).
        metrics: the points to add to the metric history.
        models: the points to write for logged models.
    """
    runs.check_active(run)
    batches = metric_history.batches(
        run.experiment.experiment_id, run.run_id, metrics, rewinds.time_after(run.item)
    )
    change = run_writes.decided(run, decide, ())
    if not batches:
        run_writes.write(run, decide)
    elif not models and change is not None and are_latest(change, metrics):
        calls: list[Callable[[], object]] = [
            partial(run_writes.write, run, decide),
            partial(metric_history.put, batches),
        ]
        # If another writer sets another value of a param, no point is written.
        if has_texts(change):
            for call in calls:
                call()
        else:
            table.parallel(calls)
    else:
        _write_together(run, decide, [Put(batch) for batch in batches], models)


def _stopping_moves(run: StoredRun) -> ItemUpdate:
    """Returns an update of a run's reference for the transaction. It fails if the run is no longer
    in the experiment in which it was read, and it makes a concurrent move of the run start again
    (:mod:`.moving`)."""
    update = Update()
    update.remove(RunReference.move_id)
    update.require_equal(RunReference.experiment_id, run.experiment.experiment_id)
    return ItemUpdate(keys.run_ref(run.run_id), update)


def are_latest(change: RunChange, metrics: Sequence[Metric]) -> bool:
    """Whether a change makes each of the points the latest value of its metric in the run item."""
    return len(change.sets.get("metrics", ())) == len(metrics)


def has_texts(change: RunChange) -> bool:
    """Whether a change sets params or tags. Points logged together with them must not become
    visible before them: a reader of the points could not know that params or tags will follow."""
    return bool(change.sets.get("params") or change.sets.get("tags"))


def _write_together(
    run: StoredRun, decide: Decision, puts: Sequence[Operation], models: Sequence[ModelPoints]
) -> None:
    waiting = [op for model in models for op in logged_model_points.operations(*model)]
    later = waiting if len(waiting) > MOST_TOGETHER else []
    beside = [*puts, *([] if later else waiting)]

    def send(current: StoredRun) -> None:
        nonlocal beside
        runs.check_active(current)
        change = run_writes.decided(current, decide, ())
        try:
            if change is not None:
                first = current is run
                run_writes.send_change(
                    current, change, exclusive=first, shared=not first, beside=beside
                )
            elif beside:
                # The run's item does not change, so only this update conflicts with a move.
                table.transact([*beside, _stopping_moves(run)], token=new_ulid())
        except TransactionFailed as failed:
            if len(beside) in failed.items:
                run_writes.meanwhile(current, None)
            beside = logged_model_points.missing(beside, failed)
            raise WriteConflict from failed

    document_write_retries.write("run", run, send, run_writes.meanwhile)
    if later:
        table.parallel([partial(logged_model_points.write, *model) for model in models])
