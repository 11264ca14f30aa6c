"""Writes landing objects for everything that the table already holds: all experiments, runs, metric
points and traces, as if the stream had delivered them. Publishes nothing.

A backfill can be interrupted and started again: it writes the same objects with the same names, and
rows that were already published are not doubled.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import Final

from mlcore.system_tables import landing, source, trace_landing, trace_source
from mlcore.system_tables.landing import Changed
from mlcore.system_tables.location import store
from mlcore.system_tables.rows import PointRow

JOURNAL: Final = f"{landing.FOLDER}/backfill.json"
"""Lists the finished experiments while a backfill runs. It is next to the shards' folders, so that
the backfill needs no further right to write."""

OBJECT_POINTS: Final = 50_000
OBJECT_TRACES: Final = 10_000


def land() -> Iterator[str]:
    """Writes the landing objects of each experiment, then yields the experiment's id. The journal
    notes the experiment as done when the caller takes the next id. The list of experiments may lag
    by seconds."""
    known = store().get(JOURNAL)
    through: set[str] = set(json.loads(known)) if known else set()
    for experiment_id in source.experiment_ids():
        if experiment_id in through:
            continue
        for number, (points, changed) in enumerate(_parts(experiment_id)):
            content = landing.encode(source.distinct(points), changed)
            landing.put(_name(experiment_id, number), content)
        for number, traces in enumerate(_traces(experiment_id)):
            trace_landing.put(_name(experiment_id, number), traces)
        yield experiment_id
        through.add(experiment_id)
        store().put(JOURNAL, json.dumps(sorted(through)).encode())
    store().delete(JOURNAL)


def _name(experiment_id: str, number: int) -> str:
    return landing.name_of(f"{landing.BACKFILL}{experiment_id}", str(number), str(number))


def _parts(experiment_id: str) -> Iterator[tuple[list[PointRow], Changed]]:
    """Yields (points, changed runs) of an experiment, each the content of one landing object with
    at most OBJECT_POINTS points."""
    stored = source.find_experiments([experiment_id]).get(experiment_id)
    points: list[PointRow] = []
    runs: set[tuple[str, str]] = set()
    for run_id in source.run_ids(stored.experiment) if stored else ():
        runs.add((experiment_id, run_id))
        for point in source.points_of(experiment_id, run_id):
            points.append(point)
            if len(points) >= OBJECT_POINTS:
                yield points, Changed((experiment_id,), runs)
                points, runs = [], {(experiment_id, run_id)}
    yield points, Changed((experiment_id,), runs)


def _traces(experiment_id: str) -> Iterator[trace_landing.ChangedTraces]:
    """Yields the traces of an experiment in parts of at most OBJECT_TRACES."""
    stored = source.find_experiments([experiment_id]).get(experiment_id)
    ids = trace_source.trace_ids(stored.experiment) if stored else iter(())
    while part := list(itertools.islice(ids, OBJECT_TRACES)):
        yield trace_landing.of_traces((experiment_id, trace_id) for trace_id in part)
