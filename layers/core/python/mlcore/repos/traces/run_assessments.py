"""Assessments that runs made, such as those of an evaluation: their metadata named the run
(``mlflow.assessment.sourceRunId``) when they were created. They are deleted with the run. Metadata
that was added later does not count: whoever may change an assessment may not yet delete it.

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


def assessed_traces(run_id: str) -> list[str]:
    """Returns the ids of traces that may have assessments made by a run; one consistent Query."""
    pk = keys.run_ref(run_id).pk
    items = table.query_all(
        pk, prefix=keys.assessed_trace_prefix(), attributes=[AssessedTrace.trace_id]
    )
    return [AssessedTrace.of(item).trace_id for item in items]


def delete(run_id: str, trace_ids: Sequence[str], workspace: str) -> None:
    """Deletes the assessments that a run made of traces in a workspace. An interrupted deletion is
    completed by repeating it.

    Args:
        trace_ids: what :func:`assessed_traces` returns.
    """
    for at in range(0, len(trace_ids), _READ_TOGETHER):
        chunk = trace_ids[at : at + _READ_TOGETHER]
        stored = filter(None, traces.find_many(chunk, workspace))
        table.parallel([partial(_delete_from, trace, run_id) for trace in stored])
        table.batch_write(deletes=[keys.assessed_trace(run_id, each) for each in chunk])


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
