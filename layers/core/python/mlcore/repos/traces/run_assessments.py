"""Assessments that runs made, such as those of an evaluation: their metadata named the run
(``mlflow.assessment.sourceRunId``) when they were created. They are deleted with the run. Metadata
that was added later does not count: who may change an assessment need not be allowed to delete it.

Before such an assessment is stored, an item in the run's partition records its trace. The item may
remain although the assessment was not stored or does not exist any more.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Final

from mlcore.db import keys
from mlcore.db.table import BATCH_GET_KEYS, table
from mlcore.entities.traces import Assessment
from mlcore.ids import now_ms
from mlcore.limits.shared_checks import may_be_run_id
from mlcore.models.traces import AssessedTrace
from mlcore.repos.traces import assessments as trace_assessments
from mlcore.repos.traces import traces
from mlcore.repos.traces.traces import StoredTrace, TraceChange

_READ_TOGETHER: Final = BATCH_GET_KEYS // 2
"""Traces that are read with their experiments in one BatchGetItem."""
_YOUNG_MS: Final = 60_000
"""A request takes less time than this."""


def record(trace_id: str, assessments: Iterable[Assessment]) -> None:
    """Records the runs that made assessments of a trace. Must be called before the assessments are
    stored. One round trip; none if no run made one of them."""
    run_ids = {each.run_id for each in assessments if each.run_id is not None}
    items = []
    for run_id in sorted(filter(may_be_run_id, run_ids)):
        key = keys.assessed_trace(run_id, trace_id)
        item = AssessedTrace(
            PK=key.pk, SK=key.sk, trace_id=trace_id, run_id=run_id, updated_at=now_ms()
        )
        items.append(item.serialize())
    table.batch_write(items)


def assessed_traces(run_id: str) -> list[AssessedTrace]:
    """Returns the records of traces that may have assessments made by a run; one consistent Query
    per MB."""
    pk = keys.run_ref(run_id).pk
    items = table.query_all(pk, prefix=keys.assessed_trace_prefix())
    return list(map(AssessedTrace.of, items))


def delete(run_id: str, assessed: Sequence[AssessedTrace], workspace: str) -> None:
    """Deletes the assessments that a run made of traces in a workspace, and the records of them. An
    interrupted deletion is completed by repeating it.

    Args:
        assessed: the records that :func:`assessed_traces` returns. Young records stay: the request
            that wrote one may not yet have stored its assessment, which the next deletion finds.
    """
    old = now_ms() - _YOUNG_MS
    for at in range(0, len(assessed), _READ_TOGETHER):
        chunk = assessed[at : at + _READ_TOGETHER]
        stored = filter(None, traces.find_many([each.trace_id for each in chunk], workspace))
        table.parallel([partial(_delete_from, trace, run_id) for trace in stored])
        done = [each.trace_id for each in chunk if (each.updated_at or 0) < old]
        table.batch_write(deletes=[keys.assessed_trace(run_id, trace_id) for trace_id in done])


def _delete_from(trace: StoredTrace, run_id: str) -> None:
    def without(current: StoredTrace) -> TraceChange | None:
        texts = current.document.texts("assessments")
        made = [
            ("assessments", key)
            for key, text in texts.items()
            if trace_assessments.parse(text).run_id == run_id
        ]
        return TraceChange(current.info, {}, made) if made else None

    traces.write(trace, without)
