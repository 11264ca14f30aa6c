"""Separates differences of derived items that are only lag, which the indexer repairs, from
corruption, which only ``reindex`` repairs."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from indexer.verification import expected_items, partition_scan
from indexer.verification.expected_items import ItemDifference
from indexer.verification.partition_scan import Partition
from mlcore.db import keys
from mlcore.db.keys import Key
from mlcore.repos.runs.core import marked_runs
from mlcore.repos.traces import marked_traces


class IndexingLag:
    """The runs and traces of an experiment whose latest writes the indexer has not processed yet.

    Create it before ``verify`` compares derived items with their sources for the last time. Then
    each difference that the indexer will still repair is of a run or trace that is known here.
    """

    def __init__(
        self, partition: Partition, findings: Sequence[ItemDifference], unread: Collection[Key]
    ) -> None:
        self._experiment_id = partition.experiment_id
        self._unread = unread
        self._runs: set[Key] = set()
        if findings:
            self._runs = partition.running.union(marked_runs.to_process(self._experiment_id))
        marked = marked_traces.every(self._experiment_id) if findings else []
        self._traces = set(map(keys.trace_of, marked))

    def covers(self, finding: ItemDifference) -> bool:
        """Whether a wrong or missing derived item (``finding``) needs no rebuild: the indexer will
        repair it, or readers infer it (a point of a run's history)."""
        if finding.problem == expected_items.UNWRITTEN:
            return True
        run_id, trace = finding_source(finding)
        if trace is not None:
            return trace in self._traces or trace in self._unread
        if run_id is None:
            return keys.experiment(self._experiment_id) in self._unread
        run = keys.run(self._experiment_id, run_id)
        return run in self._runs or run in self._unread


def finding_source(finding: ItemDifference) -> tuple[str | None, Key | None]:
    """Returns the run or trace from which the item of a difference (``finding``) is derived, as
    (run id, None) or (None, trace key); (None, None) for items of the experiment itself."""
    if finding.source is not None:
        return finding.source
    run_id, _, trace = partition_scan.suspects_of_item(
        finding.key, finding.wanted or finding.stored
    )
    return run_id, trace
