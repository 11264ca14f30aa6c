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
from mlcore.db.expression import Condition, Raw, Update, number, string
from mlcore.db.failures import ConditionFailed
from mlcore.db.keys import Key
from mlcore.db.table import table
from mlcore.repos.experiments import experiments
from mlcore.repos.removal import remains

TOGETHER = 400
SWEEP_SECONDS = 90.0
"""The function has 120; what is left then is for the next attempt."""

STAGE = ("stage", "epoch")


def project(records: Sequence[Mapping[str, Any]]) -> None:
    """Of runs, traces, logged models and experiments: those that were deleted, restored or
    removed."""
    file_removals.send(records)
    seen: dict[Key, tuple[str, bool]] = {}
    for record in records:
        old, new = record.get("OldImage"), record.get("NewImage")
        image: Raw = new or old or {}
        if image["type"]["S"] == file_removals.RUN_METRIC_FILE:
            continue
        place = Key(image["PK"]["S"], image["SK"]["S"])
        if new is None:
            seen[place] = (image["type"]["S"], True)
            if image["type"]["S"] == "experiment":
                _free_name(image)
        elif old is not None and any(old.get(name) != new.get(name) for name in STAGE):
            marked = "ttl" in old or "ttl" in new
            seen[place] = (image["type"]["S"], marked or seen.get(place, ("", False))[1])
    for place, (kind, marked) in seen.items():
        _follow(place, kind, marked=marked)


def _follow(place: Key, kind: str, *, marked: bool) -> None:
    item = table.get(place)
    fields = keys.parse(*place).fields
    experiment_id = fields["experiment_id"]
    if kind == "experiment":
        if item is None:
            remains.of_experiment(experiment_id, time.monotonic() + SWEEP_SECONDS)
        else:
            _experiment(place, item, marked=marked)
    elif kind == "trace":
        if item is None:
            remains.of_trace(experiment_id, fields["trace_id"])
    elif kind == "logged_model":
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
    run_id, place = item["run_id"]["S"], Key(item["PK"]["S"], item["SK"]["S"])
    if not _mark_source(place, item, until):
        return
    children = table.query_all(
        place.pk, prefix=keys.run_prefix(run_id), attributes=["PK", "SK", "ttl"]
    )
    links = table.query_all(keys.run_ref(run_id).pk, attributes=["PK", "SK", "ttl"])
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
        attributes=["PK", "SK", "type", "ttl", "run_id", "stage", "epoch", "deleted_time"],
    )
    ends: dict[str, int | None] = {}
    while together := list(islice(listed, TOGETHER)):
        sources, children = [], []
        for item in together:
            kind = item["type"]["S"]
            if kind == "run":
                end = retention.run_until(item, experiment, until)
                ends[item["run_id"]["S"]] = end
                sources.append(partial(_mark_run, item, end))
            # Traces have an end of their own, or go when the experiment is gone.
            elif kind != "experiment" and not kind.startswith("trace"):
                children.append(item)
        table.parallel(sources)
        _mark_children(children, until, ends)


def _mark_run(item: Raw, end: int | None) -> None:
    if _end(item) != end:
        _mark(keys.run_ref(item["run_id"]["S"]), None if end is None else retention.later(end))
        _mark_source(Key(item["PK"]["S"], item["SK"]["S"]), item, end)


def _of_run_alone(links: Iterable[Raw]) -> Iterable[Raw]:
    versions = keys.run_model_version_prefix()
    return (item for item in links if not item["SK"]["S"].startswith(versions))


def _mark_source(place: Key, item: Raw, until: int | None) -> bool:
    """Marks a run or an experiment as it was read; False if its stage moved meanwhile."""
    if _end(item) == until:
        return True
    update = _update(until)
    update.require_equal("stage", item["stage"])
    update.require_equal("epoch", item["epoch"])
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
        place = Key(item["PK"]["S"], item["SK"]["S"])
        parsed = keys.parse(*place)
        run_id = parsed.fields.get("run_id")
        is_history = parsed.pattern is keys.RUN_METRIC_HISTORY
        end = ends.get(run_id, until) if ends is not None and run_id else until
        wanted = None if end is None else retention.later(end)
        known = _end(item)
        if wanted is not None and known is not None and known < wanted and is_history:
            continue  # history has an end of its own
        if known != wanted:
            calls.append(partial(_mark, place, wanted))
    table.parallel(calls)


def _mark(place: Key, until: int | None) -> None:
    update = _update(until)
    update.require_exists("PK")
    with contextlib.suppress(ConditionFailed):
        table.update(place, update)


def _update(until: int | None) -> Update:
    update = Update()
    if until is None:
        update.remove("ttl")
    else:
        update.set("ttl", number(until))
    return update


def _end(item: Raw) -> int | None:
    return int(item["ttl"]["N"]) if "ttl" in item else None


def _free_name(item: Raw) -> None:
    """The lock is its own, or another experiment's by now."""
    mine = Condition()
    mine.require_equal("experiment_id", string(item["experiment_id"]["S"]))
    with contextlib.suppress(ConditionFailed):
        table.delete(keys.experiment_name_lock(item["workspace"]["S"], item["name"]["S"]), mine)
