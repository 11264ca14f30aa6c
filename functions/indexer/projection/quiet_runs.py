"""Finds quiet runs: runs that did not end, but were not written to for ten minutes, because their
client was killed or never ends runs.

Every few minutes a schedule checks the experiments that have runs with a mark (a key that says that
the indexer has not processed the run), and writes the current version of each quiet run to its
``quiet`` attribute. The stream record of that write makes the indexer index the run. If an
experiment gets too many marked runs between two checks, the indexer indexes those that were not
written to for a few seconds while it handles a batch of their experiment.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterable
from functools import partial
from typing import Final

from mlcore.db.expression import Raw, Update
from mlcore.db.failures import ConditionFailed
from mlcore.db.keys import Key
from mlcore.db.table import key_of_item, table
from mlcore.ids import now_ms
from mlcore.models.runs import Run
from mlcore.models.search_index import MarkedExperiment
from mlcore.process_cache import ProcessCache
from mlcore.repos.document import Owner
from mlcore.repos.runs.core import marked_experiments, marked_runs, marks

QUIET_MS: Final = 600_000
"""Milliseconds without a write after which a run is quiet."""
CALM_MS: Final = 3_000
"""Milliseconds without a write after which a run is quiet in an experiment with too many marked
runs."""
CROWD: Final = 100
"""Above this number an experiment has too many marked runs: each search reads all of them
(``docs/adr/0033``)."""
COUNTED_EVERY: Final = 50
"""The marked runs of an experiment are counted each time this many more runs became marked."""
TOGETHER: Final = 300
"""Maximum number of marked runs of an experiment that are read for one batch of the stream."""

_became_marked: ProcessCache[str, int] = ProcessCache("runs of an experiment that became marked")
"""By experiment: how many runs have become marked and stayed active since this process last
counted."""


def sweep() -> int:
    """Finds the marked runs of all experiments that were not written to for :data:`QUIET_MS` (for
    :data:`CALM_MS` if the experiment has more than :data:`CROWD` marked runs) and writes their
    ``quiet`` attribute, so that the indexer processes them. Returns how many runs it found.

    Raises:
        ExceptionGroup: the errors of the experiments that failed; all others were handled.
    """
    count, failures = 0, []
    for entry in marked_experiments.every():
        try:
            count += _sweep_experiment(entry)
        except Exception as failure:  # any error: the other experiments must still be handled
            failure.add_note(f"experiment {entry.experiment_id}")
            failures.append(failure)
    if failures:
        raise ExceptionGroup("quiet runs of some experiments were not marked", failures)
    return count


def _sweep_experiment(entry: MarkedExperiment) -> int:
    marked = marked_runs.to_process(entry.experiment_id)
    if not marked:
        marked_experiments.drop(entry)
        return 0
    before = now_ms() - (CALM_MS if len(marked) > CROWD else QUIET_MS)
    quiet = _quiet_since(marked, before)
    table.parallel([partial(_mark_as_quiet, item) for item in quiet])
    return len(quiet)


def crowded_runs(
    experiments: Iterable[str], became_marked: Iterable[Owner]
) -> list[tuple[Owner, Raw]]:
    """Returns the runs to index now: in experiments with too many runs that the indexer has not
    processed, those of these runs that were not written to for :data:`CALM_MS`. Each is a pair of
    owner (experiment id, run id) and run item.

    Args:
        became_marked: the active runs that this batch of the stream added to the unprocessed ones.
    """
    added = Counter(experiment_id for experiment_id, _ in became_marked)
    crowded: list[tuple[Owner, Raw]] = []
    for experiment_id in sorted(set(experiments)):
        count = (_became_marked.get(experiment_id) or 0) + added[experiment_id]
        if count >= COUNTED_EVERY:
            marked = marked_runs.to_process(experiment_id)
            quiet: list[Raw] = []
            if len(marked) > CROWD:
                quiet = _quiet_since(marked[:TOGETHER], now_ms() - CALM_MS)
            crowded += [((experiment_id, Run.of(item).run_id), item) for item in quiet]
            # If there are more, the next batch continues.
            count = COUNTED_EVERY if quiet and len(marked) - len(quiet) > CROWD else 0
        if count:
            _became_marked.put(experiment_id, count)
        else:
            _became_marked.pop(experiment_id)
    return crowded


def _quiet_since(run_keys: list[Key], before_ms: int) -> list[Raw]:
    quiet = []
    for item in table.batch_get(run_keys):
        if item is not None:
            run = Run.of(item)
            if marks.since(run) and (run.updated_at or 0) < before_ms:
                quiet.append(item)
    return quiet


def _mark_as_quiet(item: Raw) -> None:
    """Writes a run's version to its ``quiet`` attribute, so that the stream makes the indexer
    process the run. Does nothing if the attribute has it already or the run was written since it
    was read."""
    run = Run.of(item)
    if run.lsi5sk is None or run.quiet == run.version:
        return
    update = Update()
    update.set(Run.quiet, run.version)
    update.require_equal(Run.version, run.version)
    update.require_equal(Run.lsi5sk, run.lsi5sk)
    with contextlib.suppress(ConditionFailed):
        table.update(key_of_item(item), update)
