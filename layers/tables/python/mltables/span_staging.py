"""Loads the spans of traces from DynamoDB into temporary DuckDB tables, in batches of a bounded
size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import duckdb
from nanoarrow.c_array import CArray

from mlcore.system_tables import span_source
from mlcore.system_tables.aws_account import account_id
from mlcore.system_tables.span_rows import SpanRow, row_of
from mlcore.system_tables.span_source import SpanTrace
from mltables import arrow_columns
from mltables.snapshot import quoted
from mltables.table_columns import integer_column, text_column
from mltables.table_definitions import SPANS

BATCH_BYTES: Final = 24 << 20
"""A batch ends with the trace that reaches this size, in characters of stored spans. Bounds memory
and disk."""
TOGETHER_BYTES: Final = 2 << 20
"""Spans become rows in memory until they reach this size, in characters, and are loaded then."""

_OF_TRACE: Final = (
    text_column("workspace_id"),
    text_column("experiment_id"),
    text_column("trace_id"),
    integer_column("request_time"),
)
"""The fields of :class:`SpanTrace`."""
_OF_SPAN: Final = tuple(column for column in SPANS.columns if column[0] in SpanRow._fields)
_LOADED: Final = "loaded_rows"
_SIZE: Final = (
    "coalesce(list_sum([strlen(text) FOR text IN map_values(s.attributes)]), 0) "
    "+ strlen(s.events::VARCHAR) + strlen(s.links::VARCHAR) + strlen(s.name)"
)
"""An SQL expression for the approximate bytes of a published span."""


def batches(connection: duckdb.DuckDBPyConnection, traces: Sequence[SpanTrace]) -> Iterator[None]:
    """Loads traces with their spans in batches. For each batch, creates the temporary tables
    ``span_traces`` (the traces) and ``new_spans`` (all stored columns of ``spans``) and then
    yields, so that the caller can use the tables."""
    contents_of_traces = span_source.contents_of(traces)
    is_left = bool(traces)
    while is_left:
        batch = _Batch()
        is_left = batch.read(contents_of_traces)
        _create(
            connection,
            f"span_traces AS SELECT * FROM {_LOADED}",
            [arrow_columns.rows_of(_OF_TRACE, batch.traces)],
        )
        _create(connection, f"new_spans AS SELECT {_selected()} FROM {_LOADED}", batch.parts)
        yield


def find_misplaced(connection: duckdb.DuckDBPyConnection, published: str) -> None:
    """Creates the temporary table ``misplaced`` (experiment_id, trace_id, number): those traces of
    the temporary table ``decided`` whose published spans have another request time than the trace
    in ``new_traces``. ``number`` is the number of the batch in which the trace's spans will be
    rewritten: a batch ends with the trace with which the size of all traces so far reaches the next
    multiple of ``BATCH_BYTES``.

    Args:
        published: a FROM source with published spans.
    """
    connection.execute(
        f"""
        CREATE OR REPLACE TEMP TABLE misplaced AS
        SELECT experiment_id, trace_id,
               (sum(size) OVER (ORDER BY request_time, experiment_id, trace_id) - size)
               // {BATCH_BYTES} AS number
        FROM (
            SELECT experiment_id, trace_id, t.request_time, sum(size)::BIGINT AS size
            FROM (
                -- Sizes come first: a join may keep all its rows in memory.
                SELECT experiment_id, trace_id, request_time, {_SIZE} AS size FROM {published} s
            ) s JOIN new_traces t USING (experiment_id, trace_id)
            SEMI JOIN decided USING (experiment_id, trace_id)
            GROUP BY ALL HAVING bool_or(s.request_time <> t.request_time)
        )
        """
    )


def misplaced_batches(connection: duckdb.DuckDBPyConnection) -> list[int]:
    """Returns the numbers of the span batches in the temporary table ``misplaced``, in order."""
    rows = connection.execute("SELECT DISTINCT number::BIGINT FROM misplaced ORDER BY 1").fetchall()
    return [number for (number,) in rows]


def move(connection: duckdb.DuckDBPyConnection, published: str) -> None:
    """Creates the temporary table ``new_spans``: each published span of the traces in the temporary
    table ``decided`` once, with the request time that its trace has in ``new_traces``.

    Args:
        published: a FROM source with published spans. If a span has several rows, the one with the
            request time of its trace is used, otherwise the one with the latest time.
    """
    connection.execute(
        f"""
        CREATE OR REPLACE TEMP TABLE new_spans AS
        SELECT {SPANS.stored} FROM (
            SELECT s.* REPLACE (
                t.request_time AS request_time, t.{SPANS.partition} AS {SPANS.partition}
            )
            FROM {published} s JOIN new_traces t USING (experiment_id, trace_id)
            SEMI JOIN decided USING (experiment_id, trace_id)
            QUALIFY row_number() OVER (
                PARTITION BY {SPANS.identity}
                ORDER BY s.request_time = t.request_time DESC, s.request_time DESC
            ) = 1
        )
        """
    )


class _Batch:
    """Traces and the rows of their spans. The rows are kept as columns, which take a third of the
    memory of Python's objects."""

    def __init__(self) -> None:
        self.traces: list[SpanTrace] = []
        self.parts: list[CArray] = []
        """Rows with the columns ``_OF_TRACE`` and ``_OF_SPAN``; at least one part."""
        self._rows: list[tuple[Any, ...]] = []

    def read(self, contents_of_traces: Iterator[tuple[SpanTrace, list[str]]]) -> bool:
        """Reads traces until the batch is full. Returns False if there are no more traces."""
        size = pending = 0
        for trace, contents in contents_of_traces:
            self.traces.append(trace)
            for content in contents:
                self._rows.append((*trace, *row_of(content)))
                pending += len(content)
                if pending >= TOGETHER_BYTES:
                    self._convert()
                    size, pending = size + pending, 0
            if size + pending >= BATCH_BYTES:
                self._convert()
                return True
        self._convert()
        return False

    def _convert(self) -> None:
        self.parts.append(arrow_columns.rows_of((*_OF_TRACE, *_OF_SPAN), self._rows))
        self._rows = []


def _selected() -> str:
    """Returns the SELECT list with the expressions of all stored columns of ``spans``."""
    selected = {
        "account_id": quoted(account_id()),
        "request_time": "make_timestamp(request_time * 1000)::TIMESTAMPTZ",
        "time": "make_timestamp(start_time_unix_nano // 1000)::TIMESTAMPTZ",
    }
    columns = [
        f"{selected[name]} AS {name}" if name in selected else name for name, *_ in SPANS.columns
    ]
    day = "strftime(make_timestamp(request_time * 1000), '%Y-%m-%d')"
    return ", ".join([*columns, f"{day} AS {SPANS.partition}"])


def _create(
    connection: duckdb.DuckDBPyConnection, definition: str, parts: Sequence[CArray]
) -> None:
    """Creates a temporary table from the rows of ``parts``. The SQL ``definition`` reads them from
    ``_LOADED``."""
    connection.register(_LOADED, arrow_columns.joined(parts))
    try:
        connection.execute(f"CREATE OR REPLACE TEMP TABLE {definition}")
    finally:
        connection.unregister(_LOADED)
