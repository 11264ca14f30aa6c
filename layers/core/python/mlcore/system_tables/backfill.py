"""Lands what a table holds already: every experiment, run and point as if the stream had told of
it; publishes nothing.

May be killed and started again: an object has the name and the content that it had, and what is
published already is not doubled.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final

from mlcore.system_tables import landing, source
from mlcore.system_tables.landing import Changed
from mlcore.system_tables.location import store
from mlcore.system_tables.rows import PointRow

JOURNAL: Final = f"{landing.FOLDER}/backfill.json"
"""The experiments that are through, while a backfill is not. Beside the shards' folders, so that
who lands needs no other right to write."""

OBJECT_POINTS: Final = 50_000


def land() -> Iterator[str]:
    """The id of each experiment whose objects lie there; it is through when the next one is asked
    for. The list of experiments may lag behind by seconds."""
    known = store().get(JOURNAL)
    through: set[str] = set(json.loads(known)) if known else set()
    for experiment_id in source.experiment_ids():
        if experiment_id in through:
            continue
        for number, (points, changed) in enumerate(_parts(experiment_id)):
            name = landing.name_of(f"{landing.BACKFILL}{experiment_id}", str(number), str(number))
            landing.put(name, landing.encode(source.distinct(points), changed))
        yield experiment_id
        through.add(experiment_id)
        store().put(JOURNAL, json.dumps(sorted(through)).encode())
    store().delete(JOURNAL)


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
