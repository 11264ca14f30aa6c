"""Reads runs and metric points from the DynamoDB table, strongly consistently, and converts them to
rows of the system tables. Writes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final, TypeVar

from mlcore.db import keys
from mlcore.db.table import table
from mlcore.entities.experiments import Experiment
from mlcore.entities.lifecycle_stages import ACTIVE, DELETED
from mlcore.repos.runs.core import runs
from mlcore.repos.runs.history import metric_history
from mlcore.repos.runs.search.runs_by_start import newest_first
from mlcore.system_tables.experiment_source import Stored, find_experiments
from mlcore.system_tables.run_rows import PointRow, RunRow, point_row, run_row

TOGETHER: Final = 100

Value = TypeVar("Value")


def in_parts(values: Iterable[Value]) -> Iterator[list[Value]]:
    """Yields the values in lists of at most :data:`TOGETHER`, the number of items that one
    BatchGetItem reads."""
    remaining = iter(values)
    while part := list(islice(remaining, TOGETHER)):
        yield part


def find_runs(refs: Sequence[tuple[str, str]], known: dict[str, Stored]) -> Iterator[RunRow]:
    """Yields the rows of the existing runs among those given. Sends one BatchGetItem per hundred
    runs, and a Query for each map of a run with values in child items.

    Args:
        refs: (experiment id, run id).
        known: the experiments by id.

    A run that is missing is looked for in the experiment to which it was moved, which may not be
    among those known. Each run is yielded once.
    """
    wanted = [(experiment_id, run) for experiment_id, run in refs if experiment_id in known]
    missing = {run for experiment_id, run in refs if experiment_id not in known}
    present: set[str] = set()
    for at in range(0, len(wanted), TOGETHER):
        part = wanted[at : at + TOGETHER]
        items = table.batch_get([keys.run(*identity) for identity in part])
        for (experiment_id, run_id), item in zip(part, items, strict=True):
            if item is None:
                missing.add(run_id)
            elif run_id not in present:
                present.add(run_id)
                yield run_row(runs.of_item(item, known[experiment_id].experiment))
    yield from _find_moved(sorted(missing - present))


def _find_moved(run_ids: Sequence[str]) -> Iterator[RunRow]:
    """Yields the rows of runs that were moved to another experiment than the one that a landing
    object names. Runs that no longer exist are left out."""
    if not run_ids:
        return
    owners = runs.owners(run_ids)
    experiments_by_id = find_experiments(sorted({experiment_id for experiment_id, _ in owners}))
    for (experiment_id, _), item in zip(
        owners, table.batch_get([keys.run(*owner) for owner in owners]), strict=True
    ):
        if item is not None and experiment_id in experiments_by_id:
            yield run_row(runs.of_item(item, experiments_by_id[experiment_id].experiment))


def run_ids(experiment: Experiment) -> Iterator[str]:
    """Yields the ids of all runs of an experiment, deleted ones included, page by page."""
    for stored in newest_first([experiment.experiment_id], experiment.workspace, (ACTIVE, DELETED)):
        yield stored.run_id


def points_of(experiment_id: str, run_id: str) -> Iterator[PointRow]:
    """Yields the rows of ``run_metrics_history`` for all points of a run, page by page; some points
    may appear twice. The insert time of a point is the time at which its current item was
    written."""
    for point, inserted_ms in metric_history.with_times(experiment_id, run_id):
        yield point_row(experiment_id, run_id, point, inserted_ms)


def distinct(points: Iterable[PointRow]) -> list[PointRow]:
    """Returns the rows of metric points without duplicates. Of several rows of the same point the
    first and the last inserted stay, since a rewind (a deletion of the run's points after a step)
    may have deleted the point between the two."""
    first: dict[str, PointRow] = {}
    last: dict[str, PointRow] = {}
    for point in points:
        known = first.setdefault(point.record_id, point)
        if point.insert_time < known.insert_time:
            first[point.record_id] = point
        known = last.setdefault(point.record_id, point)
        if point.insert_time > known.insert_time:
            last[point.record_id] = point
    return list(dict.fromkeys([*first.values(), *last.values()]))
