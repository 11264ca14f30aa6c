"""What the system tables say of evaluation datasets, their records and jobs, after random histories
of writes that are landed and published under every kind of accident."""

from __future__ import annotations

import json
import os
import random
from datetime import UTC, datetime
from typing import Any

import polars
import pytest

from mlcore.entities.evaluation.jobs import Creator
from mlcore.repos.evaluation import jobs
from tests.contract import stored_job
from tests.contract.conftest import Store
from tests.contract.datasets_world import DatasetsWorld
from tests.contract.evaluation_calls import new_dataset, sent, upsert
from tests.contract.lake import Tables, tables
from tests.contract.publisher_kills import follow_with_accidents, kill

__all__ = ["kill", "tables"]

OPERATIONS = int(os.environ.get("TABLES_OPERATIONS", "60"))
SEED = int(os.environ.get("TABLES_SEED", "1"))
TABLES = ("evaluation_datasets", "evaluation_dataset_records", "jobs")


def _map(listed: list[dict[str, Any]]) -> dict[str, Any]:
    return {pair["key"]: pair["value"] for pair in listed}


def _check(tables: Tables, table: str, ids: tuple[str, ...], expected: dict[Any, Any]) -> None:
    """Each row is there once, in the columns that the model knows."""
    names = {name for row in expected.values() for name in row}
    rows: dict[Any, Any] = {}
    for row in tables.rows(table):
        key = tuple(row[name] for name in ids)
        assert key not in rows, "each row once"
        tags = {"tags": _map(row["tags"])} if "tags" in row else {}
        rows[key] = {name: value for name, value in {**row, **tags}.items() if name in names}
    assert rows == expected


def check(tables: Tables, world: DatasetsWorld) -> None:
    _check(tables, "evaluation_datasets", ("dataset_id",), world.dataset_rows())
    ids = ("dataset_id", "inputs")
    _check(tables, "evaluation_dataset_records", ids, world.record_rows())
    _check(tables, "jobs", ("job_id",), world.job_rows())


def test_a_random_history_is_published_once(
    store: Store, tables: Tables, kill: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    upkeep = pytest.importorskip("mltables.table_maintenance")
    # So small that a step has several parts, and a month several full and several small files.
    monkeypatch.setattr("mltables.entity_staging.BATCH_ROWS", 2)
    monkeypatch.setattr("mltables.row_replacement.FULL_FILE_ROWS", 3)
    monkeypatch.setattr("mltables.row_replacement.SMALL_FILES", 2)
    world = DatasetsWorld(store, SEED)
    follow_with_accidents(tables.stream, random.Random(SEED + 1), kill, world.step, OPERATIONS)
    check(tables, world)
    upkeep.maintain_tables()
    check(tables, world)
    assert list(pytest.importorskip("mltables.verification").verify()) == []


def test_backfill_brings_what_no_stream_tells(store: Store, tables: Tables) -> None:
    """A second time it brings nothing."""
    whole = pytest.importorskip("mltables.backfill")
    verification = pytest.importorskip("mltables.verification")
    world = DatasetsWorld(store, SEED)
    for _ in range(40):
        world.step()
    assert {table for problem, table, _ in verification.verify() if problem == "missing"} >= {
        *TABLES
    }
    whole.backfill()
    check(tables, world)
    assert list(verification.verify()) == []
    assert set(whole.backfill()[1:]) == {0}


def test_each_column_has_its_type_and_content(store: Store, tables: Tables) -> None:
    dataset_id = new_dataset(tags=json.dumps({"mlflow.user": "ann"}), experiment_ids=["7"])
    record = {
        "inputs": {"q": "half \ud800 of a pair"},
        "outputs": [1, None],
        "expectations": {"answer": "ü"},
        "tags": {"mlflow.user": "bob", "split": "test"},
        "source": {"source_type": "TRACE", "source_data": {"trace_id": "tr-1"}},
    }
    assert upsert(dataset_id, record).status == 200
    stored_job.store(
        jobs.new("default", "invoke_scorer", {"experiment_id": "7"}, 3, Creator("ann"))
    )
    tables.follow()
    time = polars.Datetime("us", "UTC")
    times = {"create_time", "last_update_time", "update_time"}
    for table in TABLES:
        kinds = dict(tables.frame(table).schema)
        assert {name for name, kind in kinds.items() if kind == time} - {"deadline"} == times
    (dataset,), (stored,), (job,) = map(tables.rows, TABLES)
    month = datetime.now(UTC).strftime("%Y-%m")
    for row in (dataset, stored, job):
        assert (row["account_id"], row["workspace_id"]) == ("000000000000", "default")
        assert row["create_month"] == month
    assert dataset["experiment_ids"] == ["7"]
    assert json.loads(dataset["profile"]) == {"num_records": 1}
    assert json.loads(dataset["schema"])["inputs"]
    assert (dataset["created_by"], _map(dataset["tags"])) == ("ann", {"mlflow.user": "ann"})
    assert {name: stored[name] for name in ("inputs", "outputs", "expectations", "source")} == {
        "inputs": '{"q": "half ? of a pair"}',
        "outputs": "[1, null]",
        "expectations": '{"answer": "ü"}',
        "source": '{"trace_id": "tr-1"}',
    }
    assert (stored["source_type"], stored["source_id"]) == ("TRACE", "tr-1")
    assert (stored["created_by"], _map(stored["tags"])["split"]) == ("bob", "test")
    assert (job["status"], job["total"], job["retry_count"]) == ("PENDING", 3, 0)
    assert (job["deadline"] - job["create_time"]).total_seconds() == 3600
    answer = tables.ask(
        "SELECT get_json_object(r.expectations, '$.answer') AS answer, d.name "
        "FROM system.mlflow.evaluation_dataset_records r "
        "JOIN system.mlflow.evaluation_datasets d USING (dataset_id)"
    )
    assert answer["rows"] == [["ü", "d"]]


def test_a_record_of_a_dataset_that_is_not_published_waits_for_it(
    store: Store, tables: Tables
) -> None:
    """The shards of the stream have no common order."""
    dataset_id = new_dataset()
    created = tables.stream.fresh()
    assert upsert(dataset_id, {"inputs": {"q": 1}}).status == 200
    tables.follow()
    assert tables.rows("evaluation_dataset_records") != []  # the dataset was changed, too
    sent("DELETE", f"datasets/{dataset_id}")
    tables.follow()
    from lander import app as lander  # noqa: PLC0415

    lander.handler({"Records": created}, None)
    tables.follow()
    assert tables.rows("evaluation_datasets") == tables.rows("evaluation_dataset_records") == []


def test_who_may_not_read_a_workspace_learns_nothing_of_its_datasets(
    store: Store, tables: Tables
) -> None:
    """Neither by counting and guessing nor by an error."""
    assert upsert(new_dataset(), {"inputs": {"q": "secret"}}).status == 200
    stored_job.store(jobs.new("default", "secret", {}, 1, Creator("ann")))
    tables.follow()
    columns = dict(zip(TABLES, ("name", "inputs", "job_name"), strict=True))
    for table in columns:
        assert tables.ask(f"SELECT count(*) FROM system.mlflow.{table}")["rows"] == [[1]]
    statements = [
        f"SELECT count(*) FROM system.mlflow.{table} WHERE {where}"
        for table, column in columns.items()
        for where in ("true", f"{column} LIKE '%secret%'", f"CAST({column} AS INT) = 1")
    ]
    for readable in ([], ["team"], ["Default"], ["default "], ["%"]):
        assert tables.counts(statements, readable) == [0] * len(statements)
