"""Deletes the items that belong to a deleted run, trace, logged model or experiment, but no
files.

Each call may be interrupted anywhere and repeated: items in other partitions that refer to an item
are deleted before it.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable
from itertools import islice
from typing import Final

from mlcore.db import keys
from mlcore.db.attribute_types import TextAttribute
from mlcore.db.expression import ConditionExpression, Raw
from mlcore.db.failures import ConditionFailed
from mlcore.db.keys import Key
from mlcore.db.table import key_of_item, table
from mlcore.models.base import KEY, Item
from mlcore.models.evaluation import ScorerVersion
from mlcore.models.logged_models import LoggedModel, LoggedModelReference
from mlcore.models.runs import Run, RunMetric
from mlcore.models.search_index import EntityEntry
from mlcore.models.traces import Trace, TraceReference
from mlcore.repos import item_deletion
from mlcore.repos.kubeflow_keys import context_items
from mlcore.repos.kubeflow_keys.context_items import NumberedEntity

_NEEDED: Final = (
    *KEY,
    Item.type,
    Run.run_id,
    Run.run_name,
    Run.number,
    Run.external_id,
    Trace.trace_id,
    LoggedModel.model_id,
    EntityEntry.entity_id,
    ScorerVersion.scorer_id,
)


class OutOfTime(Exception):
    """The deadline has passed before everything was deleted. What was deleted stays deleted; the
    caller calls again to continue."""


def of_experiment(experiment_id: str, deadline: float = float("inf")) -> bool:
    """Deletes everything in an experiment's partition except the experiment itself; returns whether
    anything was deleted.

    Args:
        deadline: of :func:`time.monotonic`.

    Raises:
        OutOfTime: the deadline has passed; call again.
    """
    deleted_any = False
    key = keys.experiment(experiment_id)
    listed = table.query_all(key.pk, attributes=_NEEDED)
    while together := list(islice(listed, item_deletion.BATCH)):
        rest = [item for item in together if key.sk != Item.of(item).SK]
        deleted_any = deleted_any or bool(rest)
        for parent in context_items.delete_entities(numbered_runs(rest)):
            context_items.delete(context_items.deletions_of_context(parent))
        # Several items of a trace may share a reference.
        table.batch_write(
            deletes=list(dict.fromkeys(link for item in rest for link in _leading(item)))
        )
        table.batch_write(deletes=map(key_of_item, rest))
        check_deadline(deadline)
    return deleted_any


def of_run(experiment_id: str, run_id: str) -> None:
    """Deletes the child items of a run, the item that maps its id to its experiment, and its links
    to traces. RANK items (index entries of its metrics) are deleted first, because they are found
    through the METRIC child items."""
    pk = keys.experiment(experiment_id).pk
    values = table.query_all(
        pk,
        prefix=keys.run_child_prefix(run_id, "METRIC"),
        attributes=[RunMetric.key, RunMetric.value],
    )
    table.batch_write(
        deletes=[
            keys.rank_metric(experiment_id, metric.key, metric.value, run_id)
            for metric in map(RunMetric.of, values)
        ]
    )
    item_deletion.delete_items(table.query_all(pk, prefix=keys.run_prefix(run_id), attributes=KEY))
    table.batch_write(deletes=_links(run_id))


def of_trace(experiment_id: str, trace_id: str) -> None:
    """Deletes the child items of a trace, such as its spans, and the item that maps its id to its
    experiment, unless a trace with this id was created in another experiment since."""
    pk = keys.experiment(experiment_id).pk
    item_deletion.delete_items(
        table.query_all(pk, prefix=keys.trace_prefix(trace_id), attributes=KEY)
    )
    _delete_reference(keys.trace_ref(trace_id), TraceReference.experiment_id, experiment_id)


def of_logged_model(experiment_id: str, model_id: str) -> None:
    """Deletes the child items of a logged model, and the item that maps its id to its experiment.
    That item stays if it names another experiment, into which a model with this id was imported
    since."""
    key = keys.logged_model(experiment_id, model_id)
    children = table.query_all(key.pk, prefix=f"{key.sk}#", attributes=KEY)
    item_deletion.delete_items(children)
    reference = keys.logged_model_ref(model_id)
    _delete_reference(reference, LoggedModelReference.experiment_id, experiment_id)


def _delete_reference(key: Key, holder: TextAttribute[str], experiment_id: str) -> None:
    """Deletes the item that maps an id to an experiment, unless it names another experiment.

    Args:
        holder: the attribute with the id of the experiment.
    """
    own = ConditionExpression()
    own.require_equal(holder, experiment_id)
    with contextlib.suppress(ConditionFailed):
        table.delete(key, own)


def check_deadline(deadline: float) -> None:
    """Raises OutOfTime if the deadline of the deletion has passed."""
    if time.monotonic() > deadline:
        raise OutOfTime


def numbered_runs(items: Iterable[Raw]) -> list[NumberedEntity]:
    """Returns those of the items that are runs with a Kubeflow number."""
    of_runs = (Run.of(item) for item in items if Item.of(item).type == keys.RUN.name)
    return [
        NumberedEntity(run.number, run.run_name, run.external_id)
        for run in of_runs
        if run.number is not None
    ]


def _leading(item: Raw) -> list[Key]:
    """Returns the keys of the items in other partitions that refer to an item, such as the one that
    maps a trace's id to its experiment."""
    kind = Item.of(item).type
    if kind == keys.RUN.name:
        return _links(Run.of(item).run_id)
    if kind == keys.TRACE.name:
        return [keys.trace_ref(Trace.of(item).trace_id)]
    if kind == keys.LOGGED_MODEL.name:
        return [keys.logged_model_ref(LoggedModel.of(item).model_id)]
    if kind in (keys.FTS.name, keys.FTS_REV.name):
        return []
    if kind == keys.SCORER_VERSION.name:
        return [keys.entity_ref(ScorerVersion.of(item).scorer_id)]
    entity_id = EntityEntry.of(item).entity_id
    return [] if entity_id is None else [keys.entity_ref(entity_id)]


def _links(run_id: str) -> list[Key]:
    """Returns the keys of the items in the partition of a run's reference (``RUN#<run id>``),
    except its links to model versions, which belong to their models."""
    versions = keys.run_model_version_prefix()
    listed = table.query_all(keys.run_ref(run_id).pk, attributes=KEY)
    return [key for key in map(key_of_item, listed) if not key.sk.startswith(versions)]
