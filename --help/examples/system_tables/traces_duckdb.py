"""Asks the Delta tables of traces with DuckDB, without a server.

    pip install duckdb duckdb-extension-delta
    python examples/system_tables/traces_duckdb.py FOLDER

FOLDER is ``system-tables/files/system/mlflow`` of a laptop's data folder, or the same below the
bucket of a deployment (``s3://…/system/mlflow``, with the extension httpfs and a secret).
"""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

import duckdb

TABLES = ("traces", "spans", "assessments")
QUESTIONS = {
    "tokens by model": """
        SELECT attributes['mlflow.llm.model'] AS model, count(*) AS calls,
            CAST(sum(CAST(attributes['mlflow.chat.tokenUsage'] ->> '$.total_tokens' AS BIGINT))
                AS BIGINT) AS tokens
        FROM spans WHERE attributes['mlflow.spanType'] = 'CHAT_MODEL'
        GROUP BY ALL ORDER BY model""",
    "failing tools": """
        SELECT name, count(*) AS calls,
            count(*) FILTER (status.code = 'STATUS_CODE_ERROR') AS failed
        FROM spans WHERE attributes['mlflow.spanType'] = 'TOOL'
        GROUP BY ALL ORDER BY name""",
    "quality": """
        SELECT assessment_name, source_type, count(*) AS given, avg(numeric_value) AS mean
        FROM assessments a
        JOIN traces t USING (experiment_id, trace_id)
        WHERE valid GROUP BY ALL ORDER BY ALL""",
}


def connect(folder: str) -> Any:
    """Returns a connection with the tables as views. Where DuckDB may download its extensions,
    ``INSTALL delta; LOAD delta`` is enough."""
    connection = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    package = importlib.util.find_spec("duckdb_extension_delta")
    if package is None or package.origin is None:
        connection.execute("INSTALL delta; LOAD delta")
    else:
        extensions = Path(package.origin).parent / "extensions" / f"v{duckdb.__version__}"
        connection.execute(f"LOAD '{extensions}/delta.duckdb_extension'")
    for table in TABLES:
        connection.execute(f"CREATE VIEW {table} AS FROM delta_scan('{folder}/{table}')")
    return connection


with connect(sys.argv[1].rstrip("/")) as tables:
    for question, sql in QUESTIONS.items():
        print(json.dumps({question: tables.execute(sql).fetchall()}))
