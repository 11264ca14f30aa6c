"""The transaction that makes a run; says what became of it, and never decides what a run is."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import NAMESPACE_OID, uuid5

from mlcore.db import keys
from mlcore.db.expression import Condition, Raw
from mlcore.db.table import Operation, Put, TransactionFailed, table
from mlcore.entities.experiments import Experiment
from mlcore.entities.runs import Run
from mlcore.ids import now_ms
from mlcore.models.runs import Run as RunItem
from mlcore.models.runs import RunReference
from mlcore.repos import document
from mlcore.repos.runs import children as run_children
from mlcore.repos.runs import index_keys as run_keys
from mlcore.repos.runs import runs
from mlcore.repos.runs import writes as run_writes


class AlsoFailed(Exception):
    """The condition of something that belongs to a new run does not hold."""

    def __init__(self, position: int) -> None:
        super().__init__(position)
        self.position = position


def create(
    run: Run,
    experiment: Experiment,
    also: Sequence[Operation] = (),
    more: Raw | None = None,
    *,
    created_by: str | None = None,
) -> None:
    """One transaction: the run with its mark, the item that tells its experiment, and ``also`` what
    belongs to it; ``more`` are further attributes of its item. Sent twice, it makes one run.

    Args:
        created_by: who is logged in; None where nobody needs to log in.

    Raises:
        AlsoFailed: a condition of ``also`` does not hold.
    """
    place = keys.run(run.experiment_id, run.run_id)
    owner = (run.experiment_id, run.run_id)
    attributes, children = document.initial(owner, run_children.MAPS, run_children.texts(run))
    gsi1pk, gsi1sk = keys.gsi1_run(run.run_id, run.experiment_id)
    model = RunItem(
        PK=place.pk,
        SK=place.sk,
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
    reference = keys.run_ref(run.run_id)
    location = RunReference(
        PK=reference.pk,
        SK=reference.sk,
        run_id=run.run_id,
        experiment_id=run.experiment_id,
        history_order=1,
        updated_at=now_ms(),
        version=1,
    )
    if children:
        table.batch_write(children)
    absent = Condition()
    absent.require_absent(RunItem.PK)
    item = {**model.serialize(), **attributes, **(more or {})}
    operations = [
        Put(item, absent),
        Put(location.serialize(), absent),
    ]
    try:
        table.transact([*operations, *also], token=str(uuid5(NAMESPACE_OID, run.run_id)))
    except TransactionFailed as failed:
        # The id is new and random: what is there already is this very run, whose answer was lost.
        if min(failed.items) >= len(operations):
            raise AlsoFailed(min(failed.items) - len(operations)) from failed
    else:
        run_writes.know(experiment, item)
    runs.remember(run.run_id, run.experiment_id)
