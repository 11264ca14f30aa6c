"""The transaction that creates a run."""

from __future__ import annotations

from collections.abc import Sequence

from mlcore.db import keys
from mlcore.db.expression import ConditionExpression, Raw
from mlcore.db.failures import AdditionalOperationFailed
from mlcore.db.table import Operation, Put, TransactionFailed, table
from mlcore.entities.experiments import Experiment
from mlcore.entities.runs import Run
from mlcore.ids import new_ulid, now_ms
from mlcore.models.runs import Run as RunItem
from mlcore.models.runs import RunReference
from mlcore.repos import document
from mlcore.repos.runs.core import index_keys as run_keys
from mlcore.repos.runs.core import run_cache, runs
from mlcore.repos.runs.core import run_maps as run_children


def create(
    run: Run,
    experiment: Experiment,
    also: Sequence[Operation] = (),
    more: Raw | None = None,
    *,
    created_by: str | None = None,
) -> None:
    """Creates a run in one transaction: its item with its mark (a key in LSI5 that says that the
    indexer has not processed the run), and the reference to it by id (``RUN#REF``). Values that do
    not fit into the item are written before. Repeating the call has no further effect.

    Args:
        experiment: the experiment to which the run belongs.
        also: further operations of the transaction.
        more: further attributes of the run's item.
        created_by: the caller's user name; None if there is no login.

    Raises:
        AdditionalOperationFailed: a condition of ``also`` does not hold.
    """
    key = keys.run(run.experiment_id, run.run_id)
    owner = (run.experiment_id, run.run_id)
    attributes, children = document.initial(owner, run_children.MAPS, run_children.texts(run))
    gsi1pk, gsi1sk = keys.gsi1_run(run.run_id, run.experiment_id)
    model = RunItem(
        PK=key.pk,
        SK=key.sk,
        gsi1pk=gsi1pk,
        gsi1sk=gsi1sk,
        **run_keys.of_new(run)._asdict(),
        run_id=run.run_id,
        experiment_id=run.experiment_id,
        run_name=run.run_name,
        user_id=run.user_id,
        created_by=created_by,
        status=run.status,
        start_time=run.start_time or 0,
        end_time=run.end_time,
        artifact_uri=run.artifact_uri,
        stage=run.lifecycle_stage,
        epoch=experiment.epoch,
        primary_metric=experiment.tags.get(runs.PRIMARY_METRIC_TAG),
        updated_at=now_ms(),
        version=1,
    )
    if children:
        table.batch_write(children)
    absent = ConditionExpression()
    absent.require_absent(RunItem.PK)
    item = {**model.serialize(), **attributes, **(more or {})}
    operations = [
        Put(item, absent),
        Put(reference(run.experiment_id, run.run_id), absent),
    ]
    try:
        # The token is not the run's id: an import gives a run that was purged its former id, and
        # a token lasts for ten minutes.
        table.transact([*operations, *also], token=new_ulid())
    except TransactionFailed as failed:
        # The id is new and random: an existing item is this run, written by an attempt whose answer
        # was lost.
        if min(failed.items) >= len(operations):
            raise AdditionalOperationFailed(min(failed.items) - len(operations)) from failed
    else:
        run_cache.cache_run(experiment, item)
    runs.remember(run.run_id, run.experiment_id)


def reference(experiment_id: str, run_id: str) -> Raw:
    """Returns the item that finds a run by its id (``RUN#REF``), without a TTL."""
    key = keys.run_ref(run_id)
    return RunReference(
        PK=key.pk,
        SK=key.sk,
        run_id=run_id,
        experiment_id=experiment_id,
        updated_at=now_ms(),
        version=1,
    ).serialize()
