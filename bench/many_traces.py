"""``make bench-traces``: writes the system tables of many made traces to a folder, as the publisher
and its upkeep leave them: the spans of days that are over are packed, those of today are not.

The rows come from SQL and not through the API, which would take hours. Everything else is the
product's: the tables, the order of the rows, the size and form of the files, the commits. Each
trace has the 20 spans in ``_SHAPE``, one assessment, a question and an answer; each model call has
its messages, tokens and costs.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import duckdb

from mlcore.system_tables import storage
from mltables.lake import Lake
from mltables.packed_files import PACKED_ROWS
from mltables.row_replacement import FULL_FILE_ROWS
from mltables.snapshot import Snapshot
from mltables.table_columns import Table
from mltables.table_commit import PACKED_MARK
from mltables.table_definitions import (
    ASSESSMENTS,
    EXPERIMENTS,
    SPANS,
    TRACES,
    open_or_create,
)
from mltables.writable_table import WritableTable

WORKSPACE: Final = "team"
"""The workspace of all rows."""
DAYS: Final = 6
EXPERIMENTS_MADE: Final = 20
TOGETHER: Final = 25_000
"""Traces that are made at once. Their 500,000 spans are what one call of the upkeep packs."""
_SHAPE: Final = (
    # number, number of the parent, name (of tools: one of eight), type
    *((1, 0, "invoke_agent", "AGENT"), (2, 1, "load_memory", "MEMORY"), (3, 1, "plan", "CHAIN")),
    *((4, 3, "call_model", "CHAT_MODEL"), (5, 3, "parse_plan", "PARSER")),
    *((6, 1, "retrieve", "RETRIEVER"), (7, 6, "embed", "EMBEDDING"), (8, 6, "rerank", "RERANKER")),
    *((9, 1, "call_model", "CHAT_MODEL"), (10, 1, "execute_tool", "TOOL"), (11, 10, "", "TOOL")),
    *((12, 11, "http_request", "UNKNOWN"), (13, 1, "call_model", "CHAT_MODEL")),
    *((14, 1, "execute_tool", "TOOL"), (15, 14, "", "TOOL"), (16, 15, "http_request", "UNKNOWN")),
    *((17, 1, "call_model", "CHAT_MODEL"), (18, 17, "guard", "GUARDRAIL")),
    *((19, 1, "call_model", "CHAT_MODEL"), (20, 1, "save_memory", "MEMORY")),
)
_WORDS: Final = (
    "agent order customer price shipping invoice weather model answer question search document "
    "because however between refund address number travel ticket account please delivery status "
    "contract meeting report summary calendar payment warehouse return policy manager language"
)
_MACROS: Final = f"""
CREATE MACRO draw(x, salt, n) AS (hash(x, salt) % n)::BIGINT;
CREATE TABLE sentences AS
    SELECT list(text ORDER BY i) AS texts FROM (
        SELECT i, string_agg(words[1 + draw(i * 40 + j, 'w', len(words))], ' ' ORDER BY j) AS text
        FROM range(4096) a(i), range(24) b(j), (SELECT split('{_WORDS}', ' ') AS words)
        WHERE j < 6 + draw(i, 'l', 18) GROUP BY i);
SET VARIABLE sentences = (SELECT texts FROM sentences);
CREATE MACRO text_of(x, salt) AS
    getvariable('sentences')[1 + draw(x, salt, 4096)] || ' ' || draw(x, salt || 'n', 1000000);
CREATE MACRO tokens(x) AS format(
    '{{{{"input_tokens": {{}}, "output_tokens": {{}}, "total_tokens": {{}}}}}}',
    100 + draw(x, 'in', 3000), 10 + draw(x, 'out', 500),
    110 + draw(x, 'in', 3000) + draw(x, 'out', 500));
CREATE MACRO question(x) AS
    '{{"messages": [{{"role": "user", "content": "' || text_of(x, 'q') || '"}}]}}';
CREATE MACRO answer(x) AS
    '{{"choices": [{{"message": {{"role": "assistant", "content": "' || text_of(x, 'a') || ' '
    || text_of(x, 'b') || '"}}}}]}}';
CREATE TABLE shape (n BIGINT, parent BIGINT, name VARCHAR, type VARCHAR);
"""


def _traces(first: int, count: int, midnight: datetime, seconds: tuple[float, float]) -> str:
    """Returns the SQL of traces whose times are between two numbers of seconds after midnight."""
    begin, end = (int((midnight.timestamp() + second) * 1_000_000) for second in seconds)
    return f"""
        SELECT i AS x, (draw(i, 'e', {EXPERIMENTS_MADE}) + 1)::VARCHAR AS experiment_id,
               'tr-' || md5(i::VARCHAR) AS trace_id,
               {begin} + (i - {first}) * {(end - begin) // count} // 1000 * 1000 AS us,
               500 + draw(i, 'd', 20000) AS ms, draw(i, 's', 50) = 0 AS failed
        FROM range({first}, {first + count}) t(i)"""


_TRACES: Final = f"""
    SELECT '000000000000' AS account_id, make_timestamp(us + ms * 1000)::TIMESTAMPTZ AS update_time,
           '{WORKSPACE}' AS workspace_id, experiment_id, trace_id, NULL AS client_request_id,
           'invoke_agent' AS trace_name, make_timestamp(us)::TIMESTAMPTZ AS request_time,
           ms AS execution_duration_ms, CASE WHEN failed THEN 'ERROR' ELSE 'OK' END AS state,
           'user-' || draw(x, 'u', 5000) AS user_id, 'session-' || x // 5 AS session_id,
           NULL AS source_run_id, question(x) AS request_preview, answer(x) AS response_preview,
           100 + draw(x, 'in', 3000) AS input_tokens, 10 + draw(x, 'out', 500) AS output_tokens,
           input_tokens + output_tokens AS total_tokens, NULL AS cache_read_input_tokens,
           NULL AS cache_creation_input_tokens, input_tokens * 2e-6 AS input_cost,
           output_tokens * 8e-6 AS output_cost, input_cost + output_cost AS total_cost,
           []::VARCHAR[] AS linked_prompts,
           MAP {{
             'mlflow.source.name': 'agents/support.py', 'mlflow.source.type': 'LOCAL',
             'mlflow.trace.cost': format('{{{{"total_cost": {{:.6f}}}}}}', total_cost),
             'mlflow.trace.session': session_id,
             'mlflow.trace.sizeStats':
               '{{"total_size_bytes": ' || 9000 + draw(x, 'z', 9999) || '}}',
             'mlflow.trace.tokenUsage': tokens(x), 'mlflow.trace.user': user_id,
             'mlflow.traceInputs': question(x), 'mlflow.traceOutputs': answer(x),
             'mlflow.trace_schema.version': '3' }} AS trace_metadata,
           CASE WHEN draw(x, 'g', 3) > 0
             THEN MAP {{'environment': 'production', 'mlflow.artifactLocation': 'mlflow-artifacts:/'
               || experiment_id || '/traces/' || trace_id || '/artifacts',
               'mlflow.traceName': 'invoke_agent', 'tool': 'tool-' || draw(x, 't', 8)}}
             ELSE MAP {{'mlflow.artifactLocation': 'mlflow-artifacts:/' || experiment_id
               || '/traces/' || trace_id || '/artifacts', 'mlflow.traceName': 'invoke_agent'}}
           END AS tags
    FROM made"""
_ASSESSMENTS: Final = f"""
    SELECT '000000000000' AS account_id, '{WORKSPACE}' AS workspace_id, experiment_id, trace_id,
           make_timestamp(us)::TIMESTAMPTZ AS request_time, 'a-' || md5(x || 'a') AS assessment_id,
           CASE WHEN draw(x, 'f', 3) = 0 THEN 'correct' ELSE 'fine' END AS assessment_name,
           'feedback' AS assessment_type,
           CASE WHEN draw(x, 'v', 10) = 0 THEN 'false' ELSE 'true' END AS value,
           (value = 'true')::DOUBLE AS numeric_value, NULL AS error_code, NULL AS error_message,
           CASE WHEN draw(x, 'h', 4) = 0 THEN 'HUMAN' ELSE 'LLM_JUDGE' END AS source_type,
           'judge-' || draw(x, 'j', 6) AS source_id,
           make_timestamp(us + 60000000)::TIMESTAMPTZ AS create_time,
           create_time AS last_update_time, NULL AS run_id, NULL AS span_id,
           text_of(x, 'r') AS rationale, NULL AS overrides, true AS valid,
           MAP {{}}::MAP(VARCHAR, VARCHAR) AS metadata
    FROM made"""
_SPANS: Final = f"""
    SELECT '000000000000' AS account_id, '{WORKSPACE}' AS workspace_id, experiment_id, trace_id,
           make_timestamp(us)::TIMESTAMPTZ AS request_time,
           format('{{:016x}}', hash(x, n)) AS span_id,
           CASE WHEN n > 1 THEN format('{{:016x}}', hash(x, parent)) END AS parent_span_id,
           CASE WHEN name = '' THEN 'tool_' || draw(y, 't', 8) ELSE name END AS name,
           'SPAN_KIND_INTERNAL' AS kind,
           us * 1000 + CASE WHEN n = 1 THEN 0
             ELSE (ms * n * 45000 + draw(y, 'o', 1000000)) END AS start_time_unix_nano,
           start_time_unix_nano + CASE WHEN n = 1 THEN ms * 1000000
             ELSE 1000 + draw(y, 'd', ms * 45000) END AS end_time_unix_nano,
           make_timestamp(start_time_unix_nano // 1000)::TIMESTAMPTZ AS time,
           CASE WHEN n = 1 THEN MAP {{
               'mlflow.spanFunctionName': 'invoke', 'mlflow.spanInputs': question(x),
               'mlflow.spanOutputs': answer(x), 'mlflow.spanType': type,
               'mlflow.traceRequestId': trace_id }}
             WHEN type = 'CHAT_MODEL' THEN MAP {{
               'mlflow.chat.tokenUsage': tokens(y), 'mlflow.llm.cost': format(
                 '{{{{"total_cost": {{:.6f}}}}}}', draw(y, 'c', 9999) / 1e6),
               'mlflow.llm.model': ['gpt-4o', 'gpt-4o-mini', 'claude-sonnet'][1 + draw(y, 'm', 3)],
               'mlflow.llm.provider': 'openai', 'mlflow.message.format': 'openai',
               'mlflow.spanInputs': question(y), 'mlflow.spanOutputs': answer(y),
               'mlflow.spanType': type, 'mlflow.traceRequestId': trace_id }}
             WHEN name = 'execute_tool' THEN MAP {{
               'gen_ai.operation.name': name, 'gen_ai.tool.name': 'tool_' || draw(y + 1, 't', 8),
               'mlflow.spanInputs': '{{"query": "' || text_of(y, 'i') || '"}}',
               'mlflow.spanOutputs': '"' || text_of(y, 'o') || '"', 'mlflow.spanType': type,
               'mlflow.traceRequestId': trace_id }}
             ELSE MAP {{
               'mlflow.spanFunctionName': name,
               'mlflow.spanInputs': '{{"text": "' || text_of(y, 'i') || '"}}',
               'mlflow.spanOutputs': '"' || text_of(y, 'o') || '"', 'mlflow.spanType': type,
               'mlflow.traceRequestId': trace_id }} END AS attributes,
           CASE WHEN n > 1 AND draw(y, 'r', 100) = 0 THEN [{{
             'time_unix_nano': start_time_unix_nano, 'name': 'retried',
             'attributes': MAP {{'attempt': '2'}} }}]
             ELSE [] END::STRUCT(time_unix_nano BIGINT, name VARCHAR,
               attributes MAP(VARCHAR, VARCHAR))[] AS events,
           []::STRUCT(trace_id VARCHAR, span_id VARCHAR, attributes MAP(VARCHAR, VARCHAR))[]
             AS links,
           CASE WHEN failed AND n IN (1, 10)
             THEN {{'message': 'Timeout after ' || ms || ' ms', 'code': 'STATUS_CODE_ERROR'}}
             ELSE {{'message': '', 'code': 'STATUS_CODE_OK'}} END AS status
    FROM (SELECT *, x * 20 + n AS y FROM made, shape)"""

_ROWS: Final = {TRACES.name: _TRACES, ASSESSMENTS.name: _ASSESSMENTS, SPANS.name: _SPANS}


def write(folder: Path, traces: int) -> None:
    """Writes the system tables of ``traces`` made traces of the last six days to a folder."""
    os.environ[storage.FOLDER] = str(folder)
    now = datetime.now(UTC)
    today = now.replace(hour=0, minute=0, second=0, microsecond=0)
    with (
        Lake() as lake,
        tempfile.TemporaryDirectory(dir=lake.temporary) as scratch,
        duckdb.connect(config={"memory_limit": "3GB", "threads": 2}) as connection,
    ):
        connection.execute("SET TimeZone = 'UTC'; SET preserve_insertion_order = false")
        connection.execute(_MACROS)
        connection.executemany("INSERT INTO shape VALUES (?, ?, ?, ?)", _SHAPE)
        tables = {
            table.name: WritableTable(
                connection,
                lake,
                Snapshot(lake, table, open_or_create(lake, table)),
                Path(scratch),
            )
            for table in (EXPERIMENTS, TRACES, ASSESSMENTS, SPANS)
        }
        _write_experiments(tables[EXPERIMENTS.name])
        made = 0
        for ago in reversed(range(DAYS)):
            midnight = today - timedelta(days=ago)
            whole = 86_400.0 if ago else (now - today).total_seconds()
            of_day = traces // DAYS + (traces % DAYS if not ago else 0)
            for at in range(0, of_day, TOGETHER):
                count = min(TOGETHER, of_day - at)
                times = at / of_day * whole, (at + count) / of_day * whole
                sql = _traces(made, count, midnight, times)
                connection.execute(f"CREATE OR REPLACE TEMP TABLE made AS {sql}")
                for table, rows in _ROWS.items():
                    day = f"{midnight:%Y-%m-%d}"
                    _write(connection, tables[table], rows, day, packed=ago > 0)
                made += count
                sys.stderr.write(f"  {made:,} of {traces:,} traces\n")
        for written in tables.values():
            # As each fiftieth commit of the publisher, whose commits are smaller than these.
            lake.checkpoint(written.table.name, written.snapshot.delta)


def _write_experiments(table: WritableTable) -> None:
    change = table.change()
    change.add(
        "SELECT '000000000000' AS account_id, now() AS update_time, NULL::TIMESTAMPTZ AS "
        f"delete_time, i::VARCHAR AS experiment_id, '{WORKSPACE}' AS workspace_id, "
        f"'asked ' || i AS name, now() AS create_time FROM range(1, {EXPERIMENTS_MADE + 1}) t(i)"
    )
    change.commit()


def _write(
    connection: duckdb.DuckDBPyConnection,
    table: WritableTable,
    rows: str,
    day: str,
    *,
    packed: bool,
) -> None:
    """Commits rows of one day, in files as the publisher or, for ``packed`` spans, the upkeep
    writes them."""
    of: Table = table.table
    later = f"({of.first}) IS NOT TRUE" if packed and of.first else "false"
    types = ", ".join(f"CAST({name} AS {kind}) AS {name}" for name, kind, *_ in of.columns)
    most = PACKED_ROWS if packed and of.first else FULL_FILE_ROWS
    connection.execute(
        f"CREATE OR REPLACE TEMP TABLE made_rows AS SELECT *, {later} AS later, "
        f"(row_number() OVER (PARTITION BY {later} ORDER BY {of.order}) - 1) "
        f"// CASE WHEN {later} THEN {most} ELSE {FULL_FILE_ROWS} END "
        f"AS part FROM (SELECT {types} FROM ({rows}))"
    )
    change = table.change()
    for later_rows, part in connection.execute(
        "SELECT DISTINCT later, part FROM made_rows ORDER BY ALL"
    ).fetchall():
        change.add(
            f"SELECT {of.names} FROM made_rows WHERE later = {later_rows} AND part = {part} "
            f"ORDER BY {of.file_order}",
            day,
            mark=PACKED_MARK if packed and of.first else "",
        )
    change.commit()
    connection.execute("DROP TABLE made_rows")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--traces", type=int, default=1_000_000)
    given = parser.parse_args()
    write(given.folder, given.traces)
