"""Links of traces to runs: items in the run's partition, whether or not the trace is there yet."""

from __future__ import annotations

from collections.abc import Iterable

from mlcore.db import keys
from mlcore.db.table import table
from mlcore.ids import now_ms
from mlcore.models.traces import TraceLink


def put(run_id: str, trace_ids: Iterable[str]) -> None:
    """One BatchWriteItem for each 25; a link that is there already stays."""
    items = []
    for trace_id in dict.fromkeys(trace_ids):
        place = keys.trace_link(run_id, trace_id)
        link = TraceLink(
            PK=place.pk, SK=place.sk, trace_id=trace_id, run_id=run_id, updated_at=now_ms()
        )
        items.append(link.serialize())
    table.batch_write(items)


def traces_of(run_id: str) -> set[str]:
    """The ids of the traces that were linked to a run; one consistent Query."""
    pk = keys.run_ref(run_id).pk
    found = table.query_all(pk, prefix=keys.trace_link_prefix(), attributes=[TraceLink.trace_id])
    return {TraceLink.of(item).trace_id for item in found}
