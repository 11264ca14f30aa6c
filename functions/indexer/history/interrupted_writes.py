"""Finds and completes log requests that were interrupted between their two writes.

A request that logs metrics writes the run item and a batch of points in parallel, and responds when
both are written. If its process is killed in between, either a latest value has no point in the
history, or the history has a point that is later than the latest value. Readers show the latest
value as a point in the first case, and hide the point in the second
(:mod:`mlcore.repos.runs.history.latest_points`). Each of the two writes has what is needed to
complete the other; see ``docs/adr/0025``.

The indexer completes the second case when it gets the stream record of the points. ``verify``,
``reindex`` and the local runner's start compare a run's whole history with its latest values, and
find both cases. All of this may run at any time, more than once, and while clients write: a request
that is still running looks like an interrupted one, and completing it has the same result as its
own writes.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from indexer.history import history_packing
from mlcore.db import keys
from mlcore.db.expression import ConditionExpression, Raw
from mlcore.db.keys import Key
from mlcore.db.table import Check, Put, TransactionFailed, key_of_item, table
from mlcore.entities.metrics import Metric, recency
from mlcore.ids import new_ulid
from mlcore.models.base import Item
from mlcore.models.runs import Run
from mlcore.repos.document import Owner
from mlcore.repos.experiments import experiments
from mlcore.repos.runs.core import marks, rewinding, run_writes, runs
from mlcore.repos.runs.core.runs import StoredRun
from mlcore.repos.runs.history import latest_point_text, metric_history, rewinds
from mlcore.repos.runs.history.latest_points import same
from mlcore.repos.runs.history.rewinds import RewoundMeanwhile
from mlcore.repos.settings import ttl_policy


class Missing(NamedTuple):
    """What a run lacks because log requests were interrupted: latest metric values, and points of
    its metric history."""

    latest: Mapping[str, Metric]
    """By metric: points of the history that are later than the stored latest value."""
    points: Sequence[Metric]
    """Latest values whose points are missing in the history."""


NOTHING_MISSING = Missing({}, [])


def project(records: Sequence[Mapping[str, Any]]) -> None:
    """Handles stream records of runs and of batches (the metric points of one log request): where
    a batch has a later point than the latest value in its run, writes that point to the run.

    Reads the runs whose records are missing or too old, and their batches, with one BatchGetItem
    per hundred (a refused request removes its points from its batch, so records may be outdated).
    Also packs the history of a run without a mark (the key that says that the run is still to be
    processed): such points come from repeated requests, which did not change or mark their run, so
    nothing else leads to their packing.
    """
    logged: dict[Owner, dict[Key, Raw]] = {}
    known: dict[Owner, Raw] = {}
    for record in records:
        image: Raw | None = record.get("NewImage")
        if image is None:
            continue
        if Item.of(image).type == keys.RUN.name:
            item = Run.of(image)
            known[item.experiment_id, item.run_id] = image
        else:
            batch_key = key_of_item(image)
            logged.setdefault(keys.run_of(batch_key), {})[batch_key] = image
    runs_behind = [
        run
        for run, batches_of_run in logged.items()
        if _is_older(known.get(run), _latest_in(batches_of_run.values()))
    ]
    batch_keys = [batch_key for run in runs_behind for batch_key in logged[run]]
    items = table.batch_get([*(keys.run(*run) for run in runs_behind), *batch_keys])
    current_batches = dict(zip(batch_keys, items[len(runs_behind) :], strict=True))
    for run, current_run in zip(runs_behind, items, strict=False):
        if current_run is None:
            continue
        batches = logged[run]
        greatest = _still_logged(run, batches, {key: current_batches[key] for key in batches})
        if _is_older(current_run, greatest):
            rewinding.retried(partial(_raise_to_batches, run, batches, greatest))
        else:
            known[run] = current_run
    unmarked = {run for run in logged if run in known and not marks.since(Run.of(known[run]))}
    history_packing.pack_runs(sorted(unmarked), read=True)


def _raise_to_batches(
    run: Owner, batches: Mapping[Key, Raw], greatest: Mapping[str, Metric]
) -> None:
    """Raises the latest values of a run that are older than points of batches.

    The batches were read at the same time as the run, so a rewind may have removed their points
    since. If the run was ever rewound, its batches are read again, after the run.

    Args:
        batches: the batches as the records show them.
        greatest: the latest of the points that they still have, by metric.

    Raises:
        RewoundMeanwhile: the run is being rewound.
    """
    read = _read(run)
    if read is None:
        return
    rewinds.check_unchanged(read.item, read.item)
    if read.item.rewinds is not None:
        current = dict(zip(batches, table.batch_get(list(batches)), strict=True))
        greatest = _still_logged(run, batches, current)
    _raise_latest(read, greatest)


def _still_logged(
    run: Owner, batches: Mapping[Key, Raw], current_batches: Mapping[Key, Raw | None]
) -> dict[str, Metric]:
    """Returns the latest point of each metric among the points of batches that are still in the
    history.

    A missing batch was either packed, or refused and then removed. Its record does not show which,
    but the packs do. Points that are in a file by now need no check.

    Args:
        batches: the batches as the records show them.
        current_batches: the batches as they are now, None for a missing one.
    """
    logged = list(
        _latest_in(item for item in current_batches.values() if item is not None).values()
    )
    for batch_key in (batch_key for batch_key, item in current_batches.items() if item is None):
        for key, point in _latest_in([batches[batch_key]]).items():
            logged += [
                packed_point for packed_point in _packed(run, key) if same(packed_point, point)
            ]
    return latest_point_text.latest_of(logged)


def _packed(run: Owner, key: str) -> Iterator[Metric]:
    """Yields the points of a metric in a run's packs (``MHIST`` items): one Query."""
    item_key = keys.run(*run)
    prefix = keys.run_metric_history_prefix(run[1], key)
    for item in table.query_all(
        item_key.pk, prefix=prefix, attributes=metric_history.PACK_ATTRIBUTES
    ):
        yield from metric_history.points_of_pack(item, key)


def _latest_in(batches: Iterable[Raw]) -> dict[str, Metric]:
    """Returns the latest point of each metric in the batches."""
    return latest_point_text.latest_of(
        point
        for batch in batches
        for series in metric_history.batch_points(batch).values()
        for point in series
    )


def _is_older(item: Raw | None, greatest: Mapping[str, Metric]) -> bool:
    """Whether a run item may have a latest value that is older than one of the points ``greatest``,
    given by metric. Values outside the item are not read here, so their metrics count as older."""
    if item is None:
        return True
    run = Run.of(item)
    texts = run.metrics or {}
    known = {
        key: latest_point_text.parse_latest(key, texts[key]) for key in greatest if key in texts
    }
    return bool(later_points(greatest, known))


def find_missing(run: Owner) -> Missing:
    """Compares a run's latest values with its whole history, page by page. Returns the latest
    values that the run lacks and the points that its history lacks; writes nothing.

    The run is read before the history, which must contain the run's latest values, and again after
    it, when the run must have the latest point of the history. So a complete run is never reported.
    Raises NoStore if the history is in files and this process has no access to them.
    """
    before = _read(run)
    if before is None:
        return NOTHING_MISSING
    known = runs.metrics(before.document)
    greatest, held = _summary(known, metric_history.of_run(*run))
    after = _read(run)
    if after is None:
        return NOTHING_MISSING
    if after.item.rewinds != before.item.rewinds or rewinds.of(after.item).is_open:
        return NOTHING_MISSING  # points were removed meanwhile
    # If history expires, a point may have been removed before its latest value.
    expires = ttl_policy.kept_seconds("metric_history") is not None
    missing = [] if expires else [point for key, point in known.items() if key not in held]
    return Missing(later_points(greatest, runs.metrics(after.document)), missing)


def complete(run: Owner) -> Missing:
    """Writes the points and latest values that a run lacks, and returns what was missing. Does
    nothing for a removed run. A soft-deleted run is completed, in case it is restored. A rewind
    that was interrupted is completed first. If the run is rewound meanwhile, a later call must
    write the rest."""
    rewinding.finish(run)
    read = _read(run)
    if read is None:
        return NOTHING_MISSING
    missing = find_missing(run)
    with contextlib.suppress(RewoundMeanwhile):  # a later call finds what is still missing
        if missing.latest:
            _raise_latest(read, missing.latest)
        if missing.points:
            _add_missing_points(read, missing.points)
    return missing


def later_points(greatest: Mapping[str, Metric], known: Mapping[str, Metric]) -> dict[str, Metric]:
    """Returns, by metric, the points of ``greatest`` that MLflow would take as the latest value
    instead of that in ``known``.

    Args:
        greatest: the latest point in the history, by metric.
        known: the latest value in the run item, by metric.
    """
    return {
        key: point
        for key, point in greatest.items()
        if key not in known or recency(point) > recency(known[key])
    }


def _summary(
    known: Mapping[str, Metric], logged: Iterable[Metric]
) -> tuple[dict[str, Metric], set[str]]:
    """Returns the latest of the logged points by metric, and the names of those metrics whose known
    latest value is among the points."""
    greatest: dict[str, Metric] = {}
    in_history: set[str] = set()
    for point in logged:
        latest_so_far = greatest.get(point.key)
        if latest_so_far is None or recency(point) > recency(latest_so_far):
            greatest[point.key] = point
        if point.key in known and same(point, known[point.key]):
            in_history.add(point.key)
    return greatest, in_history


def _read(run: Owner) -> StoredRun | None:
    item, meta = table.batch_get([keys.run(*run), keys.experiment(run[0])])
    if item is None or meta is None:
        return None
    return runs.of_item(item, experiments.of_item(meta).experiment)


def _raise_latest(run: StoredRun, latest: Mapping[str, Metric]) -> None:
    """Writes latest values to a run item as a request would: marks the run for the indexer, and
    leaves out a value that is older than the stored one. Raises RewoundMeanwhile if the run was
    rewound since it was read."""

    def decide(current: StoredRun) -> tuple[dict[str, dict[str, str]], tuple[()]]:
        rewinds.check_unchanged(current.item, run.item)
        stored = current.document.texts("metrics")
        return {"metrics": latest_point_text.newer_texts(stored, latest)}, ()

    run_writes.write(run, decide, any_stage=True)


def _add_missing_points(run: StoredRun, missing: Sequence[Metric]) -> None:
    """Adds points to a run's history as batches, so that their stream records also reach the system
    tables. Does nothing if the run does not exist, because the history of a removed run would never
    be deleted; or if it was rewound since it was read."""
    experiment_id, run_id = run.experiment.experiment_id, run.run_id
    as_read = ConditionExpression()
    as_read.require_exists(Run.PK)
    rewinds.require_unchanged(as_read, run.item)
    check = Check(keys.run(experiment_id, run_id), as_read)
    written = rewinds.time_after(run.item)
    for batch in metric_history.batches(experiment_id, run_id, missing, written):
        with contextlib.suppress(TransactionFailed):
            table.transact([check, Put(batch)], token=new_ulid())
