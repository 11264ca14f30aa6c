"""Links of traces to runs: items in the run's partition. The trace need not exist."""

from __future__ import annotations

from collections.abc import Iterable

from mlcore.db import keys
from mlcore.db.table import table
from mlcore.ids import now_ms
from mlcore.models.traces import TraceLink


def put(run_id: str, trace_ids: Iterable[str]) -> None:
    """Links traces to a run; one BatchWriteItem for each 25 traces. Linking a trace again has no
    further effect."""
    items = []
    for trace_id in dict.fromkeys(trace_ids):
        key = keys.trace_link(run_id, trace_id)
        link = TraceLink(
            PK=key.pk, SK=key.sk, trace_id=trace_id, run_id=run_id, updated_at=now_ms()
        )
        items.append(link.serialize())
    table.batch_write(items)


def traces_of(run_id: str) -> set[str]:
    """Returns the ids of the traces that were linked to a run; one consistent Query per MB."""
    pk = keys.run_ref(run_id).pk
    items = table.query_all(pk, prefix=keys.trace_link_prefix(), attributes=[TraceLink.trace_id])
    return {TraceLink.of(item).trace_id for item in items}
