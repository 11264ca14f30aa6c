"""The list of experiments that may have runs which the indexer has not processed.

When the indexer postpones a run, it adds the run's experiment to the list. The search for quiet
runs (those that are not written any more) reads the list, and removes the experiments that have no
unprocessed runs. While an experiment has new records in the stream, it is added again and again,
more often than it is removed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Final

from mlcore.db import keys
from mlcore.db.expression import ConditionExpression
from mlcore.db.failures import ConditionFailed
from mlcore.db.table import table
from mlcore.ids import now_ms
from mlcore.models.search_index import MarkedExperiment
from mlcore.process_cache import ProcessCache

NOTED_SECONDS: Final = 300.0
"""Seconds for which a process does not enter an experiment again."""

KEPT_MS: Final = 900_000
"""Younger entries are not removed, because a process may rely on them."""

_noted: ProcessCache[str, bool] = ProcessCache("noted experiment", seconds=NOTED_SECONDS)


def note(experiment_id: str) -> None:
    """Adds an experiment to the list of experiments that may have runs which the indexer has not
    processed; at most one write per process and experiment every five minutes."""
    if experiment_id in _noted:
        return
    key = keys.marked_experiment(experiment_id)
    model = MarkedExperiment(
        PK=key.pk, SK=key.sk, experiment_id=experiment_id, updated_at=now_ms(), version=1
    )
    table.put(model.serialize())
    _noted.put(experiment_id, True)


def every() -> Iterator[MarkedExperiment]:
    return map(MarkedExperiment.of, table.query_all(keys.marked_experiments_pk()))


def drop(entry: MarkedExperiment) -> None:
    """Removes an experiment from the list of experiments with unprocessed runs, unless its entry is
    younger than :data:`KEPT_MS`: a process that has added the experiment a few minutes ago does not
    add it again."""
    if entry.updated_at is None or now_ms() - entry.updated_at < KEPT_MS:
        return
    unchanged = ConditionExpression()
    unchanged.require_equal(MarkedExperiment.updated_at, entry.updated_at)
    with contextlib.suppress(ConditionFailed):
        table.delete(keys.marked_experiment(entry.experiment_id), unchanged)
