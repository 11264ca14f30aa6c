"""Marks of traces that the indexer has not processed yet: which writes set one.

A mark is the trace's key in LSI1, set by the write itself; a search reads the marks
(:mod:`.marked_traces`) before the index items that the indexer writes. See ``docs/adr/0020``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from mlcore.db import keys
from mlcore.db.expression import Raw
from mlcore.models.traces import Trace

INDEXED_MAPS = frozenset(("tags", "trace_metadata", "prompts"))
"""The maps of a trace that searches look up in an index."""


def of_new(trace_id: str) -> str:
    return keys.lsi1_trace(trace_id, "1")


def after(
    item: Raw,
    sets: Mapping[str, Mapping[str, str]],
    removals: Iterable[tuple[str, str]],
    client_request_id: str | None,
) -> str | None:
    """Returns the mark (the trace's key in LSI1 that says that the indexer has to process it) to
    set with a write; None if the write changes nothing that is indexed. The mark contains the first
    version to process. It must be set even if it does not change, because the indexer may be
    removing it at the same time.

    Args:
        item: the trace's item as it was read.
        sets: values that the write sets, by map and key.
        removals: (map, key) pairs that it removes.
        client_request_id: the client's request id after the write.
    """
    touched = {attribute for attribute, texts in sets.items() if texts}
    touched.update(attribute for attribute, _ in removals)
    trace = Trace.of(item)
    same = client_request_id == trace.client_request_id
    if same and INDEXED_MAPS.isdisjoint(touched):
        return None
    return trace.lsi1sk or keys.lsi1_trace(trace.trace_id, str(trace.version + 1))
