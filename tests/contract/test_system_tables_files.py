"""The Parquet files of the tables are such that readers take them which know nothing of Arrow's
newer types, whatever commit wrote them."""

from __future__ import annotations

import base64
import io
import json
import subprocess
from pathlib import Path
from typing import Any

import duckdb
import polars
import pytest
from deltalake import DeltaTable

from mlcore.entities.workspaces import Workspace
from mlcore.repos.removal import workspace_moves
from mlcore.repos.workspaces import workspaces
from mlcore.system_tables import storage
from tests.contract.conftest import Store
from tests.contract.lake import Tables, tables
from tests.contract.removals import remove_run
from tests.e2e import clients
from tests.servers import environment

__all__ = ["tables"]

TABLES = ("experiments_latest", "runs_latest", "run_metrics_history")


def _files(table: str) -> list[str]:
    return [uri.removeprefix("file://") for uri in DeltaTable(storage.table_uri(table)).file_uris()]


def _rows() -> dict[str, int]:
    return {table: polars.scan_delta(storage.table_uri(table)).collect().height for table in TABLES}


def test_no_file_has_a_view_type(
    store: Store, tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    upkeep = pytest.importorskip("mltables.table_maintenance")
    monkeypatch.setattr(upkeep, "SMALL_FILES", 2)
    workspaces.create(Workspace("team", None))
    experiment, other = (store.api.new_experiment(name) for name in ("one", "two"))
    runs = [store.api.new_run(experiment) for _ in range(3)]
    written: set[str] = set()

    def log() -> None:
        for run in runs:
            metric = {"key": "loss", "value": len(written), "step": len(written), "timestamp": 7}
            store.api.post(
                "runs/log-batch",
                run_id=run,
                metrics=[metric],
                params=[{"key": "a", "value": "b"}],
                tags=[{"key": "long", "value": "x" * 50}],
            )

    def follow(act: Any) -> None:
        """Publishes, and notes which files are new; every act writes some."""
        act()
        tables.follow()
        new = {path for table in TABLES for path in _files(table)} - written
        assert new, act
        written.update(new)

    follow(log)
    follow(log)
    follow(lambda: upkeep.maintain_tables(today="2000-01-01"))
    follow(log)
    follow(upkeep.maintain_tables)
    follow(lambda: workspace_moves.experiment(experiment, "team"))
    follow(lambda: remove_run(runs.pop(), experiment, "team"))
    follow(lambda: store.api.new_run(other))
    assert _rows() == {"experiments_latest": 2, "runs_latest": 3, "run_metrics_history": 6}
    for path in sorted(written):
        if not Path(path).exists():
            continue
        rows = duckdb.execute(
            "SELECT value FROM parquet_kv_metadata(?) WHERE key = 'ARROW:schema'", [path]
        ).fetchall()
        for (value,) in rows:
            schema = base64.b64decode(value)
            assert not _has_views(schema), path


def _has_views(schema: bytes) -> bool:
    from nanoarrow import c_array_stream  # noqa: PLC0415 -- of the engines' layer
    from nanoarrow.ipc import InputStream  # noqa: PLC0415

    end = b"\xff\xff\xff\xff\0\0\0\0"
    whole = c_array_stream(InputStream.from_readable(io.BytesIO(schema + end))).get_schema()
    waiting = [whole]
    while waiting:
        field = waiting.pop()
        if field.format in {"vu", "vz"} or field.format.startswith("+v"):
            return True
        waiting += list(field.children)
    return False


def test_readers_without_view_types_read_all_tables(store: Store, tables: Tables) -> None:
    experiment = store.api.new_experiment("read")
    for number in range(3):
        run = store.api.new_run(experiment)
        for step, value in enumerate((1.5, "NaN", -2.0)):
            store.api.post(
                "runs/log-metric", run_id=run, key="loss", value=value, step=step, timestamp=step
            )
        store.api.post("runs/log-parameter", run_id=run, key="number", value=str(number))
        tables.follow()
    done = subprocess.run(
        [
            str(clients.python(clients.PARQUET)),
            str(Path(__file__).with_name("parquet_script.py")),
        ],
        input=json.dumps({table: _files(table) for table in TABLES}),
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
        env=environment(),
    )
    assert done.returncode == 0, done.stderr
    by_reader = json.loads(done.stdout)
    for reader, read_tables in by_reader.items():
        heights = {table: len(read["rows"]) for table, read in read_tables.items()}
        assert heights == {"experiments_latest": 1, "runs_latest": 3, "run_metrics_history": 9}, (
            reader
        )
    assert (
        by_reader["pyarrow"]["runs_latest"]["types"]["params"] == "map<string, string ('params')>"
    )
    assert "'loss'" in by_reader["daft"]["runs_latest"]["rows"][0]


def test_only_tables_without_doubles_have_new_encodings() -> None:
    definitions = pytest.importorskip("mltables.table_definitions")
    newer = {table.name for table in definitions.TABLES if table.parquet != "V1"}
    doubles = {
        table.name
        for table in definitions.TABLES
        if any("DOUBLE" in kind for _, kind, *_ in table.columns)
    }
    assert newer == {"spans"}
    assert not newer & doubles
