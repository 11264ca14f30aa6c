"""Reads the spans of traces from the table, strongly consistently, for the system tables. Writes
nothing."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final, NamedTuple

from mlcore.db.table import table
from mlcore.repos.traces import span_packs
from mlcore.repos.traces.traces import StoredTrace
from mlcore.system_tables.run_rows import within

_logger = logging.getLogger("mlcore.system_tables")

TOGETHER: Final = 16
"""Number of traces whose spans are read in parallel and are in memory at the same time."""


class SpanTrace(NamedTuple):
    """The columns with the same value in all rows of a trace in the system table of spans."""

    workspace_id: str
    experiment_id: str
    trace_id: str
    request_time: int
    """Milliseconds since 1970."""


def trace_of(stored: StoredTrace, now: float) -> SpanTrace | None:
    """Returns the values of the columns of the system table ``spans`` that all spans of a trace
    share. None if the trace has expired (``ttl``), since DynamoDB may have deleted some of its
    spans then.

    Args:
        now: seconds since 1970.
    """
    end = stored.item.ttl
    if end is not None and end <= now:
        return None
    experiment = stored.experiment
    return SpanTrace(
        experiment.workspace,
        experiment.experiment_id,
        stored.trace_id,
        within(stored.item.request_time),
    )


def contents_of(traces: Sequence[SpanTrace]) -> Iterator[tuple[SpanTrace, list[str]]]:
    """Yields each trace with its spans as JSON. For each trace sends one Query per MB, and reads a
    file for each pack (the spans of one request) that is too large for an item. Leaves out a trace
    if one of its files does not exist."""
    for at in range(0, len(traces), TOGETHER):
        part = traces[at : at + TOGETHER]
        contents = table.parallel([partial(_read, trace) for trace in part])
        for trace, spans in zip(part, contents, strict=True):
            if spans is not None:
                yield trace, spans


def _read(trace: SpanTrace) -> list[str] | None:
    owner = span_packs.Owner(trace.workspace_id, trace.experiment_id, trace.trace_id)
    try:
        return [content for _, content in span_packs.read(owner)]
    except span_packs.SpansMissing:
        _logger.warning("a file with spans of trace %s does not exist", trace.trace_id)
        return None
