"""Marks of traces that the indexer has not followed yet: which writes leave one.

A mark is the trace's key in LSI1, set by the write itself; a search reads the marks before what the
indexer writes. See ``docs/adr/0020``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from mlcore.db import keys
from mlcore.db.expression import Raw
from mlcore.models.traces import Trace

INDEXED_MAPS = frozenset(("tags", "trace_metadata", "prompts"))
"""The maps of a trace that searches ask an index about."""


def of_new(trace_id: str) -> str:
    return keys.lsi1_trace(trace_id, "1")


def after(
    item: Raw,
    sets: Mapping[str, Mapping[str, str]],
    removals: Iterable[tuple[str, str]],
    client_request_id: str | None,
) -> str | None:
    """The mark that a write of these leaves; None if the indexer need not follow it. It says
    which version is the first to be followed, and must be set even where it is the same: the
    indexer may just be taking it away."""
    touched = {attribute for attribute, texts in sets.items() if texts}
    touched.update(attribute for attribute, _ in removals)
    trace = Trace.of(item)
    same = client_request_id == trace.client_request_id
    if same and INDEXED_MAPS.isdisjoint(touched):
        return None
    return trace.lsi1sk or keys.lsi1_trace(trace.trace_id, str(trace.version + 1))
