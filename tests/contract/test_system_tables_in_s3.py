"""The tables in a bucket: published there whoever dies, asked there, read there by others."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from lander import app as lander
from mlcore import errors
from mlcore.system_tables import storage
from tests.contract import delta_readers, span_files
from tests.contract.conftest import EXAMPLES, STEP, Store
from tests.contract.lake import Tables, tables
from tests.contract.lake_in_s3 import Mortal, bucket, rows, s3
from tests.contract.trace_calls import export, span

__all__ = ["bucket", "s3", "tables"]

pytestmark = [pytest.mark.xdist_group("system tables in S3"), pytest.mark.timeout(300)]


def test_what_is_published_in_a_bucket_is_read_alike(
    store: Store, bucket: Tables, tmp_path: Path
) -> None:
    upkeep = pytest.importorskip("mltables.table_maintenance")
    experiment = store.api.new_experiment("s3")
    run = store.api.new_run(experiment)
    for step in range(3):
        store.api.post(
            "runs/log-metric", run_id=run, key="m", value=step, step=step, timestamp=step
        )
        bucket.follow()
    assert bucket.seed("metric_statistics", run_id=run) == [["m", 3, 1.0, 2.0, 0.0, 0.5, 1.0, 1.5]]
    assert list(storage.store().list("landing")) == []
    # A reader of workspaces has the rows of these; a column that is named and missing is told of.
    count = (
        "SELECT count(*) FROM system.mlflow.run_metrics_history WHERE insert_time > '2020-01-01'"
    )
    assert [
        bucket.ask(count, workspaces)["rows"] for workspaces in (["default"], ["team"], None)
    ] == [
        [[3]],
        [[0]],
        [[3]],
    ]
    runs = "SELECT status, params FROM system.mlflow.runs_latest"
    assert bucket.ask(runs, ["default"])["rows"] == [["RUNNING", {}]]
    for workspaces in (["default"], None):
        with pytest.raises(errors.InvalidParameterValue, match='column "missing" not found'):
            bucket.ask("SELECT missing FROM system.mlflow.runs_latest", workspaces)
    store.api.post("runs/log-metric", run_id=run, key="m", value="NaN", step=9, timestamp=9)
    bucket.follow()
    upkeep.maintain_tables()
    expected = delta_readers.by_our_sql()
    assert [len(expected[name]) for name in ("run_metrics_history", "above")] == [4, 1]
    assert delta_readers.by_polars() == expected
    assert delta_readers.by_the_extension(tmp_path / "read") == expected


def test_columns_of_spans_are_fetched_without_their_map(
    store: Store, bucket: Tables, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Files without the columns need the map; the other files are asked for the columns only."""
    cache = pytest.importorskip("mltables.column_cache")
    experiment = store.api.new_experiment("s3")
    with span_files.without_columns():
        assert export(experiment, [span(f"{1:032x}", 1, mlflow__spanType="LLM")]).status == 200
        bucket.follow()
    assert export(experiment, [span(f"{2:032x}", 1, mlflow__spanType="TOOL")]).status == 200
    bucket.follow()
    kinds = "SELECT attributes['mlflow.spanType'] AS type FROM system.mlflow.spans ORDER BY type"
    for workspaces in (None, ["default"]):
        assert bucket.ask(kinds, workspaces)["rows"] == [["LLM"], ["TOOL"]]
    asked: list[tuple[str, tuple[str, ...]]] = []
    linked = cache.ColumnCache.linked

    def noted(self: Any, files: Any, columns: Any, target: Path) -> Any:
        asked.extend((Path(file.key).name[:8], tuple(sorted(columns))) for file in files)
        return linked(self, files, columns, target)

    monkeypatch.setattr(cache.ColumnCache, "linked", noted)
    monkeypatch.setattr(cache, "SMALL_FILE_BYTES", 8)  # else a file is fetched as a whole
    monkeypatch.setenv("SYSTEM_TABLES_SCRATCH", str(tmp_path / "empty"))
    statement = pytest.importorskip("mltables.statement_check").translate(kinds)
    processes = pytest.importorskip("mltables.statement_execution")
    (tmp_path / "query").mkdir()
    sources = processes.permitted_rows.row_sources(statement.reads, None, tmp_path / "query")
    with processes.open_views(sources) as connection:
        assert connection.execute(statement.sql).fetchall() == [("LLM",), ("TOOL",)]
    marked = [columns for name, columns in asked if name == "part-a3-"]
    assert marked == [("account_id", "inner_attribute_mlflow_spantype")]
    assert [columns for name, columns in asked if name != "part-a3-"] == [
        ("account_id", "attributes")
    ]


def test_past_versions_are_read_from_the_bucket(store: Store, bucket: Tables) -> None:
    """Copies of replaced files do not stand for those of today, nor the other way round."""
    run = store.api.new_run(store.api.new_experiment("s3"))
    bucket.follow()
    time.sleep(1.1)  # S3 tells times of files in seconds
    before = datetime.now(UTC).isoformat()
    store.api.post("runs/update", run_id=run, status="FINISHED", end_time=1)
    bucket.follow()
    status = "SELECT status FROM system.mlflow.runs_latest"
    for workspaces in (None, ["default"]) * 2:
        assert bucket.ask(f"{status} TIMESTAMP AS OF :t", workspaces, t=before)["rows"] == [
            ["RUNNING"]
        ]
        assert bucket.ask(status, workspaces)["rows"] == [["FINISHED"]]
    assert bucket.ask(f"{status} TIMESTAMP AS OF :t", ["team"], t=before)["rows"] == []


def test_copies_on_this_machine_are_those_of_files_that_tables_have(
    store: Store, bucket: Tables, tmp_path: Path
) -> None:
    scratch = tmp_path / "scratch"
    left = scratch / "part-0/temporary/left by who was killed"
    left.mkdir(parents=True)
    run = store.api.new_run(store.api.new_experiment("s3"))
    for step in range(4 if EXAMPLES == 1 else 8 * EXAMPLES):  # each replaces files
        store.api.post("runs/log-metric", run_id=run, key="m", value=step, step=step, timestamp=1)
        bucket.follow()
        copies = {path.name: path.stat().st_size for path in scratch.rglob("*.parquet")}
        assert copies.items() <= delta_readers.live_files().items()
    (part,) = scratch.iterdir()
    assert {path.name for path in part.iterdir()} == {"lock", "files", "logs", "temporary"}
    assert list((part / "temporary").iterdir()) == []
    # Whoever works at the same time has a part of its own.
    lake = pytest.importorskip("mltables.lake").Lake
    with lake() as first_lake, lake() as other:
        assert first_lake.temporary != other.temporary
        first = first_lake.temporary
    with lake() as again:
        assert again.temporary == first


def test_whoever_dies_at_any_write_leaves_nothing_undone(
    store: Store, bucket: Tables, s3: tuple[str, Mortal], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lander, the publisher and the upkeep are killed before their first write, and so
    on until they get through; each time the next one ends what was begun."""
    publisher = pytest.importorskip("mltables.publisher")
    upkeep = pytest.importorskip("mltables.table_maintenance")
    of_points = [table for table in upkeep.TABLES if table.name == "run_metrics_history"]
    monkeypatch.setattr(upkeep, "TABLES", of_points)
    monkeypatch.setattr(upkeep, "SMALL_FILES", 4)
    monkeypatch.setattr(upkeep, "KEPT_HOURS", 0)  # what is no longer needed goes at once
    _, mortal = s3
    experiment = store.api.new_experiment("s3")
    runs = [store.api.new_run(experiment) for _ in range(2)]
    points: set[tuple[str, int]] = set()
    deaths = {"land": 0, "publish": 0, "upkeep": 0}

    def lived(name: str, act: Any, writes: int | None) -> bool:
        mortal.live_for(writes)
        try:
            act()
        except Exception:
            if not mortal.died:
                raise
        died = mortal.died
        mortal.live_for(None)
        deaths[name] += died
        return not died

    def land(records: list[Any]) -> None:
        lander.handler({"Records": records}, None)

    through, writes = False, 0
    while not through:
        run = runs[writes // STEP % 2]
        store.api.post(
            "runs/log-metric", run_id=run, key="m", value=writes, step=writes, timestamp=1
        )
        store.api.post("experiments/update", experiment_id=experiment, new_name=f"name {writes}")
        points.add((run, writes))
        records = bucket.stream.fresh()
        if not lived("land", lambda records=records: land(records), writes):
            land(records)
        through = lived("publish", publisher.publish, writes)
        publisher.publish()
        writes += STEP
    # What was doubled or lost on the way would be so still.
    assert _points() == sorted(points)
    (about,) = rows("experiments_latest")
    assert about["name"] == f"name {writes - STEP}"
    assert len(rows("runs_latest")) == 2
    through, writes = False, 0
    while not through:
        through = lived("upkeep", upkeep.maintain_tables, writes)
        writes += 1
    assert _points() == sorted(points)
    assert deaths["land"] == 1
    assert deaths["publish"] > 5 // STEP
    assert deaths["upkeep"] > 2
    differences = list(pytest.importorskip("mltables.verification").verify())
    assert differences == []


def _points() -> list[tuple[str, int]]:
    return sorted((row["run_id"], row["metric_step"]) for row in rows("run_metrics_history"))
