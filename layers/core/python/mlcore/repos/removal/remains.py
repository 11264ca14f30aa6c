"""What belongs to a run, a trace or an experiment that is gone or going; never touches files.

Each call may be killed at any point and be repeated: what leads to an item from elsewhere goes
before it.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

from mlcore.db import keys
from mlcore.db.expression import Raw
from mlcore.db.keys import Key
from mlcore.db.table import key_in, table
from mlcore.models.base import KEY, Item
from mlcore.models.evaluation import ScorerVersion
from mlcore.models.index import EntityEntry
from mlcore.models.logged_models import LoggedModel
from mlcore.models.runs import Run, RunMetric
from mlcore.models.traces import Trace

TOGETHER: Final = 500
_NEEDED: Final = (
    *KEY,
    Item.type,
    Run.run_id,
    Trace.trace_id,
    LoggedModel.model_id,
    EntityEntry.entity_id,
    ScorerVersion.scorer_id,
)


class OutOfTime(Exception):
    """The deadline has passed; what is gone is gone, and another call goes on."""


def of_experiment(experiment_id: str, deadline: float = float("inf")) -> bool:
    """Deletes what the partition of an experiment holds besides it; whether there was anything.

    Args:
        deadline: of :func:`time.monotonic`.

    Raises:
        OutOfTime: call again.
    """
    found = False
    place = keys.experiment(experiment_id)
    listed = table.query_all(place.pk, attributes=_NEEDED)
    while together := list(islice(listed, TOGETHER)):
        rest = [item for item in together if place.sk != Item.of(item).SK]
        found = found or bool(rest)
        # Several items of a trace may be led to by one.
        table.batch_write(
            deletes=list(dict.fromkeys(link for item in rest for link in _leading(item)))
        )
        table.batch_write(deletes=keys_of(rest))
        check(deadline)
    return found


def of_run(experiment_id: str, run_id: str) -> None:
    """Deletes the children of a run, and what leads to it; the items of its metrics tell of their
    ranks, which go before them."""
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
    delete(table.query_all(pk, prefix=keys.run_prefix(run_id), attributes=KEY))
    table.batch_write(deletes=_links(run_id))


def of_trace(experiment_id: str, trace_id: str) -> None:
    """Deletes the children of a trace, and what leads to it."""
    pk = keys.experiment(experiment_id).pk
    delete(table.query_all(pk, prefix=keys.trace_prefix(trace_id), attributes=KEY))
    table.delete(keys.trace_ref(trace_id))


def of_logged_model(experiment_id: str, model_id: str) -> None:
    """Deletes the children of a logged model, and what leads to it."""
    place = keys.logged_model(experiment_id, model_id)
    children = table.query_all(place.pk, prefix=f"{place.sk}#", attributes=KEY)
    delete(children)
    table.delete(keys.logged_model_ref(model_id))


def delete(items: Iterable[Raw]) -> None:
    """Deletes items, however many."""
    places = keys_of(items)
    while together := list(islice(places, TOGETHER)):
        table.batch_write(deletes=together)


def keys_of(items: Iterable[Raw]) -> Iterator[Key]:
    return map(key_in, items)


def check(deadline: float) -> None:
    """Raises OutOfTime."""
    if time.monotonic() > deadline:
        raise OutOfTime


def _leading(item: Raw) -> list[Key]:
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
    """What is kept under a run's own key; of versions that were made from it, their models tell."""
    versions = keys.run_model_version_prefix()
    listed = table.query_all(keys.run_ref(run_id).pk, attributes=KEY)
    return [key for key in keys_of(listed) if not key.sk.startswith(versions)]
