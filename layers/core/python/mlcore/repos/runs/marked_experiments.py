"""The experiments that may have runs which the indexer has not followed.

The indexer notes an experiment when it leaves a run of it alone; whoever looks for quiet runs reads
the list, and takes an experiment off it that has no such run. An experiment is noted again as long
as it has records, more often than it is taken off.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Final

from mlcore.db import keys
from mlcore.db.expression import Condition
from mlcore.db.failures import ConditionFailed
from mlcore.db.table import table
from mlcore.ids import now_ms
from mlcore.memory import Memory
from mlcore.models.index import MarkedExperiment

NOTED_SECONDS: Final = 300.0
"""For so long a process takes an experiment that it has noted for noted."""

KEPT_MS: Final = 900_000
"""No entry that is younger is taken off: no process takes an older one for granted."""

_noted: Memory[str, bool] = Memory("noted experiment", seconds=NOTED_SECONDS)


def note(experiment_id: str) -> None:
    """One write in a while."""
    if experiment_id in _noted:
        return
    place = keys.marked_experiment(experiment_id)
    model = MarkedExperiment(
        PK=place.pk, SK=place.sk, experiment_id=experiment_id, updated_at=now_ms(), version=1
    )
    table.put(model.serialize())
    _noted.put(experiment_id, True)


def every() -> Iterator[MarkedExperiment]:
    return map(MarkedExperiment.of, table.query_all(keys.marked_experiments_pk()))


def drop(entry: MarkedExperiment) -> None:
    """Takes an experiment off that has no such run, unless somebody may rely on its entry."""
    if entry.updated_at is None or now_ms() - entry.updated_at < KEPT_MS:
        return
    unchanged = Condition()
    unchanged.require_equal(MarkedExperiment.updated_at, entry.updated_at)
    with contextlib.suppress(ConditionFailed):
        table.delete(keys.marked_experiment(entry.experiment_id), unchanged)
