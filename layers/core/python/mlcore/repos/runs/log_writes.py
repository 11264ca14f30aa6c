"""Writes of what is logged: the run item, the points of history and those of logged models, so that
whoever reads two of them sees a metric in both or in none, even if the process dies in between.

The run item and the points are written side by side, one round trip, where each point is the latest
one of its metric: a reader then tells from one side what is missing on the other (see
:mod:`.latest_points`). All else is one transaction, which takes twice the write units: several
points of one metric, points that are older than the latest value beside points that are not, and
points of logged models. See ``docs/adr/0061``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, NamedTuple

from mlcore.db.expression import Raw
from mlcore.db.table import Operation, Put, TransactionFailed, table
from mlcore.entities.logged_models import ModelMetric
from mlcore.entities.metrics import Metric
from mlcore.ids import new_ulid
from mlcore.repos import settlement
from mlcore.repos.logged_models import points as logged_model_points
from mlcore.repos.runs import history, runs
from mlcore.repos.runs import writes as run_writes
from mlcore.repos.runs.runs import StoredRun
from mlcore.repos.runs.writes import Change, Decision
from mlcore.settle import Conflict

MOST_TOGETHER: Final = 80
"""Items beside the run that one transaction writes; DynamoDB takes 100, and some may move out of
the run item. Points of more logged models are written after it."""


class ModelPoints(NamedTuple):
    """Points to be written for a logged model, and its item as it was read."""

    item: Raw
    points: Sequence[ModelMetric]


def write(
    run: StoredRun,
    decide: Decision,
    metrics: Sequence[Metric],
    models: Sequence[ModelPoints] = (),
) -> None:
    """Writes to a run that was read just now; decides again whenever another writer came first.

    Raises:
        InvalidParameterValue: the run is not active.
    """
    runs.check_active(run)
    batches = history.batches(run.experiment.experiment_id, run.run_id, metrics)
    change = run_writes.decided(run, decide, ())
    if not batches:
        run_writes.write(run, decide)
    elif not models and change is not None and are_latest(change, metrics):
        calls: list[Callable[[], object]] = [
            partial(run_writes.write, run, decide),
            partial(history.put, batches),
        ]
        if change.sets.get("params"):  # another writer may give one another value: then no point
            for call in calls:
                call()
        else:
            table.parallel(calls)
    else:
        _write_together(run, decide, [Put(batch) for batch in batches], models)


def are_latest(change: Change, metrics: Sequence[Metric]) -> bool:
    """Whether each point is written to the run item as the latest value of its metric."""
    return len(change.sets.get("metrics", ())) == len(metrics)


def _write_together(
    run: StoredRun, decide: Decision, puts: Sequence[Operation], models: Sequence[ModelPoints]
) -> None:
    waiting = [op for one in models for op in logged_model_points.operations(*one)]
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
            elif len(beside) == 1 and isinstance(beside[0], Put):
                table.put(*beside[0])
            elif beside:
                table.transact(beside, token=new_ulid())
        except TransactionFailed as failed:
            beside = logged_model_points.missing(beside, failed)
            raise Conflict from failed

    settlement.write("run", run, send, run_writes.meanwhile)
    if later:
        table.parallel([partial(logged_model_points.write, *one) for one in models])
