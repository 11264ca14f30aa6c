"""Compares the published traces, assessments and spans with the DynamoDB table; writes nothing.

Published rows of traces that the DynamoDB table lacks are no difference, as long as their
experiment exists: the system tables keep traces that expired there.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import duckdb

from mlcore.system_tables import experiment_source, span_source, trace_source
from mltables import span_staging, trace_staging
from mltables.table_columns import Table
from mltables.table_definitions import ASSESSMENTS, OF_TRACES, SPANS, TRACES
from mltables.trace_publishing import STAGED

TOGETHER: Final = 500

Found = tuple[str, str, str]
"""One difference: ``missing``, ``different`` or ``surplus``; the table; and the id of the trace,
perhaps with that of the row, or a text with the id of the experiment."""


def differences(
    connection: duckdb.DuckDBPyConnection,
    stored: Mapping[str, experiment_source.Stored],
    folder: Path,
) -> Iterator[Found]:
    """Yields the differences between the traces in DynamoDB and their rows in the system tables.

    Args: connection: DuckDB with the system tables ``traces``, ``assessments`` and ``spans`` as
    views with all stored columns. stored: the experiments that exist in DynamoDB, by id.
    """
    for table in OF_TRACES:
        yield from _repeated(connection, table)
        yield from _of_others(connection, table, stored)
    for stored_trace in stored.values():
        traces = trace_source.traces_of(stored_trace.experiment)
        while part := list(itertools.islice(traces, TOGETHER)):
            trace_staging.load_traces(connection, part, folder)
            for table in (TRACES, ASSESSMENTS):
                yield from _compared(connection, table, "new_traces")
            now = time.time()
            with_spans = [trace for each in part if (trace := span_source.trace_of(each, now))]
            for _ in span_staging.batches(connection, with_spans):
                yield from _compared(connection, SPANS, "span_traces")


def _repeated(connection: duckdb.DuckDBPyConnection, table: Table) -> Iterator[Found]:
    rows = connection.execute(
        f"SELECT trace_id FROM {table.name} GROUP BY {table.identity} HAVING count(*) > 1"
    ).fetchall()
    for (name,) in rows:
        yield "surplus", table.name, name


def _of_others(
    connection: duckdb.DuckDBPyConnection,
    table: Table,
    stored: Mapping[str, experiment_source.Stored],
) -> Iterator[Found]:
    """Yields rows whose experiment does not exist, or is in another workspace."""
    rows = connection.execute(
        f"SELECT DISTINCT experiment_id, workspace_id FROM {table.name} ORDER BY ALL"
    ).fetchall()
    for experiment_id, workspace in rows:
        experiment = stored.get(experiment_id)
        if experiment is None:
            yield "surplus", table.name, f"experiment {experiment_id}"
        elif experiment.experiment.workspace != workspace:
            yield "different", table.name, f"experiment {experiment_id} in another workspace"


def _compared(connection: duckdb.DuckDBPyConnection, table: Table, traces: str) -> Iterator[Found]:
    """Yields the differences between the published rows of the traces in the staged table
    ``traces`` and the rows made from their DynamoDB items."""
    identity = table.identity
    names = identity.split(", ")
    shown = " || ' ' || ".join(f"coalesce(n.{name}, p.{name})" for name in names[1:])
    rows = connection.execute(
        f"""
        SELECT {shown}, n.trace_id IS NULL, p.trace_id IS NULL
        FROM (SELECT {table.stored} FROM {STAGED[table.name]}) n
        FULL JOIN (
            SELECT {table.stored} FROM {table.name}
            SEMI JOIN {traces} USING (experiment_id, trace_id)
        ) p USING ({identity})
        WHERE n IS DISTINCT FROM p ORDER BY ALL
        """
    ).fetchall()
    for name, surplus, missing in rows:
        yield "surplus" if surplus else "missing" if missing else "different", table.name, name
