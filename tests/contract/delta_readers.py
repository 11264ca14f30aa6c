"""Three readers of the system tables: polars, DuckDB's own extension for Delta, and our SQL. The
first two share no code with the product."""

from __future__ import annotations

import base64
import io
import json
import os
import subprocess
import tempfile
from pathlib import Path

import polars
from deltalake import DeltaTable

from mlcore.system_tables import storage
from tests.e2e import clients
from tests.engines import REGION
from tests.servers import environment

TABLES = (
    "experiments_latest",
    "runs_latest",
    "run_metrics_history",
    "traces",
    "assessments",
    "spans",
)
Rows = dict[str, list[str]]
"""By table, or by what else was asked; each row as text, in order."""

ASKED = {
    **{table: (table, "true") for table in TABLES},
    "above": ("run_metrics_history", "metric_value > 100"),
    "below": ("run_metrics_history", "metric_value < -1"),
    "between": ("run_metrics_history", "metric_value >= 0 AND metric_value <= 100"),
}
"""All rows, and those that a reader skips which trusts statistics without NaN."""


def by_polars() -> Rows:
    return {
        name: _texts(scanned(table).filter(polars.sql_expr(where)).collect())
        for name, (table, where) in ASKED.items()
    }


def by_the_extension(folder: Path) -> Rows:
    folder.mkdir(exist_ok=True)
    queries = [
        (f"SELECT * FROM delta_scan('{storage.table_uri(table)}') WHERE {where}", name)
        for name, (table, where) in ASKED.items()
    ]
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3", "")
    subprocess.run(
        [str(clients.python(clients.DUCKDB)), str(Path(__file__).with_name("delta_script.py"))],
        input=json.dumps([(sql, str(folder / name)) for sql, name in queries]),
        check=True,
        text=True,
        timeout=60,
        env=environment(AWS_ENDPOINT_URL_S3=endpoint),
    )
    return {name: _texts(polars.read_parquet(folder / name)) for name in ASKED}


def by_our_sql() -> Rows:
    """As the process of a query reads them, here."""
    from mltables import statement_check  # noqa: PLC0415 -- the engines, which most tests do without
    from mltables.lake import Lake  # noqa: PLC0415
    from mltables.permitted_rows import row_sources  # noqa: PLC0415
    from mltables.statement_execution import execute, open_views  # noqa: PLC0415

    results = {}
    for name, (table, where) in ASKED.items():
        prepared = statement_check.translate(f"SELECT * FROM system.mlflow.{table} WHERE {where}")
        with (
            tempfile.TemporaryDirectory(dir=Lake().scratch) as folder,
            open_views(row_sources(prepared.reads, None, Path(folder))) as connection,
        ):
            limits = {"format": "arrow", "bytes": 1 << 20}
            stream = execute(connection, prepared.sql, limits)["arrow"]
            results[name] = _texts(polars.read_ipc_stream(io.BytesIO(base64.b64decode(stream))))
    return results


def live_files() -> dict[str, int]:
    """Names and sizes of the files that the tables have now."""
    results: dict[str, int] = {}
    for table in TABLES:
        delta = DeltaTable(storage.table_uri(table), storage_options=_options(table))
        actions = delta.get_add_actions(flatten=True)
        names, sizes = (actions.column(name).to_pylist() for name in ("path", "size_bytes"))
        results |= {Path(name).name: size for name, size in zip(names, sizes, strict=True)}
    return results


def scanned(table: str) -> polars.LazyFrame:
    return polars.scan_delta(storage.table_uri(table), storage_options=_options(table))


def _options(table: str) -> dict[str, str] | None:
    if "://" not in storage.table_uri(table):
        return None
    endpoint = os.environ["AWS_ENDPOINT_URL_S3"]
    return {"AWS_ENDPOINT_URL": endpoint, "AWS_ALLOW_HTTP": "true", "AWS_REGION": REGION}


def _texts(frame: polars.DataFrame) -> list[str]:
    """Without the partitions, which our SQL does not show."""
    columns = sorted(set(frame.columns) - {"insert_date", "start_month", "request_date"})
    return sorted(map(repr, frame.select(columns).to_dicts()))
