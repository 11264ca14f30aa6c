"""Lets deleted runs and experiments expire, with all that belongs to them, and takes away what is
left of those that are gone.

What is written follows from the sources, read again: a record that comes twice, late or after the
restoration leads to the same. The run or experiment itself is marked first and its children later,
so a restoration in between shows in its own record that there is something to take back.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any

from indexer import file_removals, retention
from mlcore.db import keys
from mlcore.db.expression import Condition, Raw, Update
from mlcore.db.failures import ConditionFailed
from mlcore.db.keys import Key
from mlcore.db.table import key_in, table
from mlcore.models.base import KEY, Item, StagedItem
from mlcore.models.experiments import Experiment, ExperimentNameLock
from mlcore.models.runs import Run
from mlcore.repos.experiments import experiments
from mlcore.repos.removal import remains

TOGETHER = 400
SWEEP_SECONDS = 90.0
"""The function has 120; what is left then is for the next attempt."""

_STAGE = (StagedItem.stage.attr_name, StagedItem.epoch.attr_name)
_EXPERIMENT = keys.EXPERIMENT.name


def project(records: Sequence[Mapping[str, Any]]) -> None:
    """Of runs, traces, logged models and experiments: those that were deleted, restored or
    removed."""
    file_removals.send(records)
    seen: dict[Key, tuple[str, bool]] = {}
    for record in records:
        old, new = record.get("OldImage"), record.get("NewImage")
        image: Raw = new or old or {}
        kind, place = Item.of(image).type, key_in(image)
        if kind == file_removals.RUN_METRIC_FILE:
            continue
        if new is None:
            seen[place] = (kind, True)
            if kind == _EXPERIMENT:
                _free_name(Experiment.of(image))
        elif old is not None and any(old.get(name) != new.get(name) for name in _STAGE):
            marked = Item.of(old).ttl is not None or Item.of(new).ttl is not None
            seen[place] = (kind, marked or seen.get(place, ("", False))[1])
    for place, (kind, marked) in seen.items():
        _follow(place, kind, marked=marked)


def _follow(place: Key, kind: str, *, marked: bool) -> None:
    item = table.get(place)
    fields = keys.parse(*place).fields
    experiment_id = fields["experiment_id"]
    if kind == _EXPERIMENT:
        if item is None:
            remains.of_experiment(experiment_id, time.monotonic() + SWEEP_SECONDS)
        else:
            _experiment(place, item, marked=marked)
    elif kind == keys.TRACE.name:
        if item is None:
            remains.of_trace(experiment_id, fields["trace_id"])
    elif kind == keys.LOGGED_MODEL.name:
        if item is None:
            remains.of_logged_model(experiment_id, fields["model_id"])
    elif item is None:
        remains.of_run(experiment_id, fields["run_id"])
    else:
        meta = table.get(keys.experiment(experiment_id))
        if meta is not None:
            _run(item, meta, marked=marked)


def _run(item: Raw, meta: Raw, *, marked: bool) -> None:
    experiment = experiments.of_item(meta).experiment
    until = retention.run_until(item, experiment, retention.experiment_until(meta))
    if until is None and not marked:
        return
    run_id, place = Run.of(item).run_id, key_in(item)
    if not _mark_source(place, item, until):
        return
    children = table.query_all(
        place.pk, prefix=keys.run_prefix(run_id), attributes=[*KEY, Item.ttl]
    )
    links = table.query_all(keys.run_ref(run_id).pk, attributes=[*KEY, Item.ttl])
    _mark_children([*children, *_of_run_alone(links)], until)


def _experiment(place: Key, meta: Raw, *, marked: bool) -> None:
    until = retention.experiment_until(meta)
    if until is None and not marked:
        return
    if not _mark_source(place, meta, until):
        return
    experiment = experiments.of_item(meta).experiment
    listed = table.query_all(
        place.pk,
        attributes=[
            *(*KEY, Item.type, Item.ttl),
            *(Run.run_id, Run.stage, Run.epoch, Run.deleted_time),
        ],
    )
    ends: dict[str, int | None] = {}
    while together := list(islice(listed, TOGETHER)):
        sources, children = [], []
        for item in together:
            kind = Item.of(item).type
            if kind == keys.RUN.name:
                end = retention.run_until(item, experiment, until)
                ends[Run.of(item).run_id] = end
                sources.append(partial(_mark_run, item, end))
            # Traces have an end of their own, or go when the experiment is gone.
            elif kind != _EXPERIMENT and not kind.startswith("trace"):
                children.append(item)
        table.parallel(sources)
        _mark_children(children, until, ends)


def _mark_run(item: Raw, end: int | None) -> None:
    run = Run.of(item)
    if run.ttl != end:
        _mark(keys.run_ref(run.run_id), None if end is None else retention.later(end))
        _mark_source(key_in(item), item, end)


def _of_run_alone(links: Iterable[Raw]) -> Iterable[Raw]:
    versions = keys.run_model_version_prefix()
    return (item for item in links if not key_in(item).sk.startswith(versions))


def _mark_source(place: Key, item: Raw, until: int | None) -> bool:
    """Marks a run or an experiment as it was read; False if its stage moved meanwhile."""
    source = StagedItem.of(item)
    if source.ttl == until:
        return True
    update = _update(until)
    update.require_equal(StagedItem.stage, source.stage)
    update.require_equal(StagedItem.epoch, source.epoch)
    try:
        table.update(place, update)
    except ConditionFailed:
        return False
    return True


def _mark_children(
    items: Iterable[Raw], until: int | None, ends: Mapping[str, int | None] | None = None
) -> None:
    calls = []
    for item in items:
        place = key_in(item)
        parsed = keys.parse(*place)
        run_id = parsed.fields.get("run_id")
        is_history = parsed.pattern is keys.RUN_METRIC_HISTORY
        end = ends.get(run_id, until) if ends is not None and run_id else until
        wanted = None if end is None else retention.later(end)
        known = Item.of(item).ttl
        if wanted is not None and known is not None and known < wanted and is_history:
            continue  # history has an end of its own
        if known != wanted:
            calls.append(partial(_mark, place, wanted))
    table.parallel(calls)


def _mark(place: Key, until: int | None) -> None:
    update = _update(until)
    update.require_exists(Item.PK)
    with contextlib.suppress(ConditionFailed):
        table.update(place, update)


def _update(until: int | None) -> Update:
    update = Update()
    update.set_or_remove(Item.ttl, until)
    return update


def _free_name(gone: Experiment) -> None:
    """The lock is its own, or another experiment's by now."""
    mine = Condition()
    mine.require_equal(ExperimentNameLock.experiment_id, gone.experiment_id)
    with contextlib.suppress(ConditionFailed):
        table.delete(keys.experiment_name_lock(gone.workspace, gone.name), mine)
