"""What is behind, and what is wrong: who will come back to a source whose items are not as they
must be."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from indexer import expected, survey
from indexer.expected import Finding
from indexer.survey import Partition
from mlcore.db import keys
from mlcore.db.expression import Raw
from mlcore.db.keys import Key
from mlcore.db.table import key_in, table
from mlcore.models.index import Pending
from mlcore.repos.runs.marks import OVERFLOW_WRITE_ID
from mlcore.repos.traces import index as trace_index


class Awaited:
    """What somebody will come back to: sources whose writes nobody has followed yet.

    Made before the last look at what is wrong: what was written and followed before is right then,
    and what was written and not followed is known here.
    """

    def __init__(
        self, partition: Partition, findings: Sequence[Finding], unread: Collection[Key]
    ) -> None:
        self._experiment_id = partition.experiment_id
        self._unread = unread
        self._runs = {one.entity_id for one in single(partition.markers)}
        if findings:
            self._runs |= partition.running | survey.marked_runs(self._experiment_id)
        named = {source(finding)[0] for finding in findings} - self._runs - {None}
        for run_id in filter(None, named):
            prefix = keys.pending_prefix("run", run_id)
            found = table.query_all(partition.pk, prefix=prefix)
            self._runs.update(one.entity_id for one in single(found))
        marked = trace_index.every(trace_index.marked(self._experiment_id)) if findings else []
        self._traces = {keys.trace_of(key_in(one)) for one in marked}

    def covers(self, finding: Finding) -> bool:
        if finding.problem == expected.UNWRITTEN:
            return True
        run_id, trace = source(finding)
        if trace is not None:
            return trace in self._traces or trace in self._unread
        if run_id is None:
            return keys.experiment(self._experiment_id) in self._unread
        return run_id in self._runs or keys.run(self._experiment_id, run_id) in self._unread


def single(found: Iterable[Raw]) -> list[Pending]:
    """Markers of single writes: that of a run with values outside says nothing of the indexer."""
    return [one for one in map(Pending.of, found) if one.write_id != OVERFLOW_WRITE_ID]


def source(finding: Finding) -> tuple[str | None, Key | None]:
    """The run or the trace that a finding is of."""
    if finding.source is not None:
        return finding.source
    run_id, _, trace = survey.of_what(finding.place, finding.wanted or finding.found)
    return run_id, trace
