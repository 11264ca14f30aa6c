"""Runs that nobody writes to any more, though nobody has ended them: clients that were killed, and
those that never end a run.

Every few minutes a schedule looks at the experiments that have marked runs, and writes the version
in which a run is quiet to the run itself; the indexer follows it when the record of that comes.
Between two such rounds an experiment may get many marked runs at once. Then the indexer itself
follows those that are calm, while it has the stream of their partition.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterable
from functools import partial
from typing import Final

from mlcore.db import keys
from mlcore.db.expression import Raw, Update
from mlcore.db.failures import ConditionFailed
from mlcore.db.keys import Key
from mlcore.db.table import key_in, table
from mlcore.ids import now_ms
from mlcore.memory import Memory
from mlcore.models.base import KEY
from mlcore.models.runs import Run
from mlcore.repos.document import Owner
from mlcore.repos.runs import marked_experiments, marks

QUIET_MS: Final = 600_000
"""A run that was not written to for so long is quiet."""
CALM_MS: Final = 3_000
"""The same where an experiment has too many marked runs."""
CROWD: Final = 100
"""With more marked runs than this, searches of an experiment read too many (``docs/adr/0033``)."""
COUNTED_EVERY: Final = 50
"""The marks of an experiment are counted when so many runs of it were left alone."""
TOGETHER: Final = 300

_left: Memory[str, int] = Memory("runs of an experiment that were left alone")
"""How many there were since this process counted the marks of the experiment."""


def sweep() -> int:
    """Looks at all experiments that may have marked runs; how many runs it found quiet."""
    count = 0
    for entry in marked_experiments.every():
        marked = _marked(entry.experiment_id)
        if not marked:
            marked_experiments.drop(entry)
            continue
        before = now_ms() - (CALM_MS if len(marked) > CROWD else QUIET_MS)
        quiet = _quiet_since(marked, before)
        table.parallel([partial(_tell, item) for item in quiet])
        count += len(quiet)
    return count


def too_many(experiments: Iterable[str], left: Iterable[Owner]) -> list[tuple[Owner, Raw]]:
    """Runs of some experiments that are to be followed because there are too many marked ones.

    Args:
        left: the runs that became marked by now and were left alone.
    """
    added = Counter(experiment_id for experiment_id, _ in left)
    found: list[tuple[Owner, Raw]] = []
    for experiment_id in sorted(set(experiments)):
        count = (_left.get(experiment_id) or 0) + added[experiment_id]
        if count >= COUNTED_EVERY:
            marked = _marked(experiment_id)
            calm: list[Raw] = []
            if len(marked) > CROWD:
                calm = _quiet_since(marked[:TOGETHER], now_ms() - CALM_MS)
            found += [((experiment_id, Run.of(item).run_id), item) for item in calm]
            # Where there are more, the next batch goes on.
            count = COUNTED_EVERY if calm and len(marked) - len(calm) > CROWD else 0
        if count:
            _left.put(experiment_id, count)
        else:
            _left.pop(experiment_id)
    return found


def _marked(experiment_id: str) -> list[Key]:
    """The marked runs, the oldest first where ids tell the time; one Query."""
    listed = table.query_all(
        keys.experiment(experiment_id).pk,
        index="LSI5",
        prefix=keys.lsi5_run_mark_prefix(),
        attributes=[*KEY, Run.lsi5sk],
    )
    return [key_in(entry) for entry in listed if marks.since(Run.of(entry))]


def _quiet_since(places: list[Key], before_ms: int) -> list[Raw]:
    found = []
    for item in table.batch_get(places):
        if item is not None:
            run = Run.of(item)
            if marks.since(run) and (run.updated_at or 0) < before_ms:
                found.append(item)
    return found


def _tell(item: Raw) -> None:
    """Unless the run is told to be quiet already, or is not any more."""
    run = Run.of(item)
    if run.lsi5sk is None or run.quiet == run.version:
        return
    update = Update()
    update.set(Run.quiet, run.version)
    update.require_equal(Run.version, run.version)
    update.require_equal(Run.lsi5sk, run.lsi5sk)
    with contextlib.suppress(ConditionFailed):
        table.update(key_in(item), update)
