"""Loads the spans of traces from DynamoDB into temporary DuckDB tables, in batches of a bounded
size."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import duckdb

from mlcore.system_tables import span_source
from mlcore.system_tables.location import account_id
from mlcore.system_tables.span_source import SpanTrace
from mltables.snapshot import quoted
from mltables.table_definitions import SPANS

BATCH_BYTES: Final = 24 << 20
"""A batch ends with the trace that reaches this size, as JSON. Bounds memory and disk."""
_LINE_BYTES: Final = 16 << 20
"""DuckDB's limit for a line, unless it is told another one."""
_TRACES: Final = (
    "{workspace_id: 'VARCHAR', experiment_id: 'VARCHAR', trace_id: 'VARCHAR', "
    "request_time: 'BIGINT'}"
)


def batches(
    connection: duckdb.DuckDBPyConnection, traces: Sequence[SpanTrace], folder: Path
) -> Iterator[None]:
    """Creates, for each batch of traces, ``span_traces`` (the traces) and ``new_spans`` (all stored
    columns of ``spans``), and yields. ``folder`` gets files that are deleted afterwards."""
    spans_of_traces = span_source.spans_of(traces)
    paths = (folder / "span-traces.ndjson", folder / "spans.ndjson")
    is_left = bool(traces)
    while is_left:
        is_left, longest = _write(spans_of_traces, *paths)
        _load(connection, *paths, longest)
        for path in paths:
            path.unlink()
        yield


def _write(
    spans_of_traces: Iterator[tuple[SpanTrace, list[Any]]], traces: Path, spans: Path
) -> tuple[bool, int]:
    """Writes a batch. Returns whether traces may be left, and the length of the longest line."""
    size = longest = 0
    with traces.open("w", encoding="ascii") as owners, spans.open("w", encoding="ascii") as file:
        for trace, rows in spans_of_traces:
            owners.write(json.dumps(trace._asdict()) + "\n")
            for row in rows:
                shared = {"experiment_id": trace.experiment_id, "trace_id": trace.trace_id}
                line = json.dumps({**shared, **row._asdict()}) + "\n"
                size += file.write(line)
                longest = max(longest, len(line))
            if size >= BATCH_BYTES:
                return True, longest
    return False, longest


def _load(connection: duckdb.DuckDBPyConnection, traces: Path, spans: Path, longest: int) -> None:
    of_trace = ("account_id", "workspace_id", "request_time")
    read = ", ".join(
        f"{name}: '{kind}'" for name, kind, *_ in SPANS.columns if name not in (*of_trace, "time")
    )
    selected = {
        "account_id": quoted(account_id()),
        "request_time": "make_timestamp(request_time * 1000)::TIMESTAMPTZ",
        "time": "make_timestamp(start_time_unix_nano // 1000)::TIMESTAMPTZ",
    }
    columns = ", ".join(
        f"{selected[name]} AS {name}" if name in selected else name for name, *_ in SPANS.columns
    )
    connection.execute(
        f"""
        CREATE OR REPLACE TEMP TABLE span_traces AS
        SELECT * FROM read_ndjson({quoted(str(traces))}, columns={_TRACES});
        CREATE OR REPLACE TEMP TABLE new_spans AS
        SELECT {columns},
               strftime(make_timestamp(request_time * 1000), '%Y-%m-%d') AS {SPANS.partition}
        FROM read_ndjson({quoted(str(spans))}, columns={{{read}}},
                         maximum_object_size={max(_LINE_BYTES, longest)})
        JOIN span_traces USING (experiment_id, trace_id)
        """
    )
