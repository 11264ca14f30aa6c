"""Writes landing objects for everything that the table already holds: all experiments, runs, metric
points and traces, and all registered models and other entities outside of experiments, as if the
stream had delivered them. Publishes nothing.

A backfill can be interrupted and started again. It then writes the same objects under the same
names, and rows that were already published do not appear twice.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import Final

from mlcore.system_tables import (
    entity_landing,
    experiment_source,
    landing_objects,
    run_source,
    trace_landing,
    trace_source,
)
from mlcore.system_tables.entity_sources import ROOTS, RootSource
from mlcore.system_tables.landing_objects import Changed
from mlcore.system_tables.run_rows import PointRow
from mlcore.system_tables.storage import store

JOURNAL: Final = f"{landing_objects.FOLDER}/backfill.json"
"""Lists the finished experiments and tables of other entities while a backfill runs. It is next to
the shards' folders, so that the backfill needs no further right to write."""

OBJECT_POINTS: Final = 50_000
OBJECT_TRACES: Final = 10_000
OBJECT_ENTITIES: Final = 10_000
_TABLE: Final = "table-"
"""Prefix of the tables of other entities in the journal and in names of shards."""


def land() -> Iterator[str]:
    """Writes the landing objects of each experiment and of each kind of other entities. After each
    it yields a text, such as ``experiment 7`` or the name of a table. When the caller asks for the
    next text, the experiment or kind is listed as done in the file :data:`JOURNAL`, so that an
    interrupted backfill continues after it. Lists of experiments and entities may lag by
    seconds."""
    known = store().get(JOURNAL)
    through: set[str] = set(json.loads(known)) if known else set()
    for experiment_id in experiment_source.experiment_ids():
        if experiment_id in through:
            continue
        for number, (points, changed) in enumerate(_parts(experiment_id)):
            content = landing_objects.encode(run_source.distinct(points), changed)
            landing_objects.put(_name(experiment_id, number), content)
        for number, traces in enumerate(_traces(experiment_id)):
            trace_landing.put(_name(experiment_id, number), traces)
        yield f"experiment {experiment_id}"
        through.add(experiment_id)
        store().put(JOURNAL, json.dumps(sorted(through)).encode())
    for kind in ROOTS:
        name = f"{_TABLE}{kind.table}"
        if name in through:
            continue
        for number, entities in enumerate(_entities(kind)):
            entity_landing.put(_name(name, number), entities)
        yield kind.table
        through.add(name)
        store().put(JOURNAL, json.dumps(sorted(through)).encode())
    store().delete(JOURNAL)


def _name(part: str, number: int) -> str:
    return landing_objects.name_of(f"{landing_objects.BACKFILL}{part}", str(number), str(number))


def _parts(experiment_id: str) -> Iterator[tuple[list[PointRow], Changed]]:
    """Yields (points, changed runs) of an experiment, each the content of one landing object with
    at most OBJECT_POINTS points."""
    stored = experiment_source.find_experiments([experiment_id]).get(experiment_id)
    points: list[PointRow] = []
    runs: set[tuple[str, str]] = set()
    for run_id in run_source.run_ids(stored.experiment) if stored else ():
        runs.add((experiment_id, run_id))
        for point in run_source.points_of(experiment_id, run_id):
            points.append(point)
            if len(points) >= OBJECT_POINTS:
                yield points, Changed((experiment_id,), runs)
                points, runs = [], {(experiment_id, run_id)}
    yield points, Changed((experiment_id,), runs)


def _traces(experiment_id: str) -> Iterator[trace_landing.ChangedTraces]:
    """Yields the traces of an experiment in parts of at most OBJECT_TRACES."""
    stored = experiment_source.find_experiments([experiment_id]).get(experiment_id)
    ids = trace_source.trace_ids(stored.experiment) if stored else iter(())
    while part := list(itertools.islice(ids, OBJECT_TRACES)):
        yield trace_landing.of_traces((experiment_id, trace_id) for trace_id in part)


def _entities(kind: RootSource) -> Iterator[entity_landing.ChangedEntities]:
    """Yields all entities of a kind, at most OBJECT_ENTITIES at a time. Each is marked ``whole``,
    so that it is published together with all of its parts."""
    refs = kind.listed()
    while some := list(itertools.islice(refs, OBJECT_ENTITIES)):
        changed = entity_landing.ChangedEntities()
        for ref in some:
            changed.add(kind.table, ref, whole=True)
        yield changed
