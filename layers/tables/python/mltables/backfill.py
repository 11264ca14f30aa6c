"""Brings what a table holds already into the system tables: lands every experiment, run and point
as if the stream had told of it, and publishes. May be killed and started again; what is there is
not doubled."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Final

from mlcore.system_tables import landing, source
from mlcore.system_tables.landing import Changed
from mlcore.system_tables.location import store
from mlcore.system_tables.rows import PointRow
from mltables.publisher import publish
from mltables.step import Published

JOURNAL: Final = "backfill.json"
"""The experiments that are through, while a backfill is not."""

OBJECT_POINTS: Final = 50_000


def backfill(tell: Callable[[str], None] = lambda _: None) -> Published:
    """
    Args:
        tell: gets a line for each experiment.

    Returns:
        What was published; of a backfill that goes on, what it still had to do.
    """
    known = store().get(JOURNAL)
    through: set[str] = set(json.loads(known)) if known else set()
    total = Published()
    for experiment_id in source.experiment_ids():
        if experiment_id in through:
            continue
        for number, (points, changed) in enumerate(_parts(experiment_id)):
            name = landing.name_of(f"backfill-{experiment_id}", str(number), str(number))
            landing.put(name, landing.encode(source.distinct(points), changed))
        done = publish()
        total = Published(*(a + b for a, b in zip(total, done, strict=True)))
        through.add(experiment_id)
        store().put(JOURNAL, json.dumps(sorted(through)).encode())
        tell(f"experiment {experiment_id}: {done.runs} runs, {done.points} points")
    store().delete(JOURNAL)
    return total


def _parts(experiment_id: str) -> Iterator[tuple[list[PointRow], Changed]]:
    """What one landing object each holds."""
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
