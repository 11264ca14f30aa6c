"""Sets the TTL of deleted runs and experiments and of their children, removes it after a
restoration, and deletes remaining items of removed entities.

Each write is computed from the source items, read again, so a record that comes twice, late or
after a restoration has the same result. The TTL of the run or experiment is set before that of its
children. If the run is restored in between, its stream record shows the TTL, which is then removed.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any

from indexer.lifecycle import expiry_times, file_removals
from mlcore.db import keys
from mlcore.db.expression import ConditionExpression, Raw, Update
from mlcore.db.failures import ConditionFailed
from mlcore.db.keys import Key
from mlcore.db.table import key_of_item, table
from mlcore.models.base import KEY, Item, StagedItem
from mlcore.models.experiments import Experiment, ExperimentNameLock
from mlcore.models.runs import Run
from mlcore.repos.experiments import experiments
from mlcore.repos.kubeflow_keys import context_items
from mlcore.repos.removal import remains
from mlcore.repos.runs.core import moving, runs

TOGETHER = 400
SWEEP_SECONDS = 90.0
"""Time limit in seconds; Lambda ends the function after 120. The next attempt continues."""

_STAGE = (StagedItem.stage.attr_name, StagedItem.epoch.attr_name)
_EXPERIMENT = keys.EXPERIMENT.name


def project(records: Sequence[Mapping[str, Any]]) -> None:
    """Handles stream records of runs, traces, logged models and experiments that were deleted,
    restored or removed: sets or removes TTLs, and deletes what removed entities leave."""
    file_removals.send(records)
    removed = [record["OldImage"] for record in records if record.get("NewImage") is None]
    context_items.delete_entities(remains.numbered_runs(removed))
    changed: dict[Key, tuple[str, bool]] = {}
    for record in records:
        old, new = record.get("OldImage"), record.get("NewImage")
        image: Raw = new or old or {}
        kind, key = Item.of(image).type, key_of_item(image)
        if kind == file_removals.RUN_METRIC_FILE:
            continue
        if new is None:
            changed[key] = (kind, True)
            if kind == _EXPERIMENT:
                _free_name(Experiment.of(image))
        elif old is not None and any(old.get(name) != new.get(name) for name in _STAGE):
            had_ttl = Item.of(old).ttl is not None or Item.of(new).ttl is not None
            changed[key] = (kind, had_ttl or changed.get(key, ("", False))[1])
    for key, (kind, had_ttl) in changed.items():
        _update_expiry(key, kind, had_ttl=had_ttl)


def _update_expiry(key: Key, kind: str, *, had_ttl: bool) -> None:
    item = table.get(key)
    fields = keys.parse(*key).fields
    experiment_id = fields["experiment_id"]
    if kind == _EXPERIMENT:
        if item is None:
            remains.of_experiment(experiment_id, time.monotonic() + SWEEP_SECONDS)
        else:
            _experiment(key, item, had_ttl=had_ttl)
    elif kind == keys.TRACE.name:
        if item is None:
            remains.of_trace(experiment_id, fields["trace_id"])
    elif kind == keys.LOGGED_MODEL.name:
        if item is None:
            remains.of_logged_model(experiment_id, fields["model_id"])
    elif item is None:
        run_id = fields["run_id"]
        if runs.existing([run_id]):
            moving.remove_remains(experiment_id, run_id)
        else:
            remains.of_run(experiment_id, run_id)
    else:
        meta = table.get(keys.experiment(experiment_id))
        if meta is not None:
            _run(item, meta, had_ttl=had_ttl)


def _run(item: Raw, meta: Raw, *, had_ttl: bool) -> None:
    experiment = experiments.of_item(meta).experiment
    until = expiry_times.run_until(item, experiment, expiry_times.experiment_until(meta))
    if until is None and not had_ttl:
        return
    run_id, key = Run.of(item).run_id, key_of_item(item)
    if not _set_ttl_of_source(key, item, until):
        return
    children = table.query_all(key.pk, prefix=keys.run_prefix(run_id), attributes=[*KEY, Item.ttl])
    links = table.query_all(keys.run_ref(run_id).pk, attributes=[*KEY, Item.ttl])
    _set_ttl_of_children([*children, *_of_run_alone(links)], until)


def _experiment(key: Key, meta: Raw, *, had_ttl: bool) -> None:
    until = expiry_times.experiment_until(meta)
    if until is None and not had_ttl:
        return
    if not _set_ttl_of_source(key, meta, until):
        return
    experiment = experiments.of_item(meta).experiment
    listed = table.query_all(
        key.pk,
        attributes=[
            *(*KEY, Item.type, Item.ttl),
            *(Run.run_id, Run.stage, Run.epoch, Run.deleted_time),
        ],
    )
    ttls: dict[str, int | None] = {}
    while items := list(islice(listed, TOGETHER)):
        sources, children = [], []
        for item in items:
            kind = Item.of(item).type
            if kind == keys.RUN.name:
                end = expiry_times.run_until(item, experiment, until)
                ttls[Run.of(item).run_id] = end
                sources.append(partial(_set_ttl_of_run, item, end))
            # Traces have a TTL of their own, or are removed after the experiment.
            elif kind != _EXPERIMENT and not kind.startswith("trace"):
                children.append(item)
        table.parallel(sources)
        _set_ttl_of_children(children, until, ttls)


def _set_ttl_of_run(item: Raw, end: int | None) -> None:
    """Sets or removes the TTL of a run and of its reference, without which the run is not found by
    its id. Between the two writes the reference has the later end, because this process may be
    killed there, or the run may have been restored since it was read."""
    run = Run.of(item)
    if run.ttl == end:
        return
    is_earlier = end is not None and (run.ttl is None or end < run.ttl)
    if is_earlier and not _set_ttl_of_source(key_of_item(item), item, end):
        return
    _set_ttl(keys.run_ref(run.run_id), None if end is None else expiry_times.later(end))
    if not is_earlier:
        _set_ttl_of_source(key_of_item(item), item, end)


def _of_run_alone(links: Iterable[Raw]) -> Iterable[Raw]:
    versions = keys.run_model_version_prefix()
    return (item for item in links if not key_of_item(item).sk.startswith(versions))


def _set_ttl_of_source(key: Key, item: Raw, until: int | None) -> bool:
    """Sets or removes the TTL of a run or an experiment; returns False if its stage changed since
    it was read."""
    source = StagedItem.of(item)
    if source.ttl == until:
        return True
    update = _update(until)
    update.require_equal(StagedItem.stage, source.stage)
    update.require_equal(StagedItem.epoch, source.epoch)
    try:
        table.update(key, update)
    except ConditionFailed:
        return False
    return True


def _set_ttl_of_children(
    items: Iterable[Raw], until: int | None, ends: Mapping[str, int | None] | None = None
) -> None:
    calls = []
    for item in items:
        key = key_of_item(item)
        parsed = keys.parse(*key)
        run_id = parsed.fields.get("run_id")
        is_history = parsed.pattern is keys.RUN_METRIC_HISTORY
        end = ends.get(run_id, until) if ends is not None and run_id else until
        ttl = None if end is None else expiry_times.later(end)
        current_ttl = Item.of(item).ttl
        if ttl is not None and current_ttl is not None and current_ttl < ttl and is_history:
            continue  # history expires earlier by its own setting
        if current_ttl != ttl:
            calls.append(partial(_set_ttl, key, ttl))
    table.parallel(calls)


def _set_ttl(key: Key, until: int | None) -> None:
    update = _update(until)
    update.require_exists(Item.PK)
    with contextlib.suppress(ConditionFailed):
        table.update(key, update)


def _update(until: int | None) -> Update:
    update = Update()
    update.set_or_remove(Item.ttl, until)
    return update


def _free_name(removed: Experiment) -> None:
    """Deletes the name lock of a removed experiment, unless another experiment has the name by
    now."""
    still_its_own = ConditionExpression()
    still_its_own.require_equal(ExperimentNameLock.experiment_id, removed.experiment_id)
    with contextlib.suppress(ConditionFailed):
        table.delete(keys.experiment_name_lock(removed.workspace, removed.name), still_its_own)
