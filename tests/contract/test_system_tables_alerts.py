"""Alerts over the system tables: a file decides, and what is wrong with one stops no other."""

from __future__ import annotations

from pathlib import Path

import pytest

import sql.app
from mlcore.system_tables import alert_files, storage
from mlcore.topics import ALERT_TOPICS
from sql.due_alerts import QUERIES
from tests.contract.conftest import Store
from tests.contract.lake import Tables, tables

__all__ = ["tables"]

SAMPLES = Path(__file__).parents[2] / "examples/system_tables"


def test_the_shipped_alert_is_the_sample_query_with_a_condition() -> None:
    first, _, rest = (QUERIES / "low_reliability.sql").read_text().partition("\n")
    assert first == "-- when: MIN(success_ratio) < 0.9"
    assert rest == (SAMPLES / "low_reliability.sql").read_text()


def test_alerts_are_decided_on_a_schedule(
    store: Store, tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(ALERT_TOPICS, "arn:a")
    statuses = ["FINISHED"] * 9
    for status in statuses:
        store.api.post("runs/update", run_id=store.api.new_run(), status=status)
    tables.follow()
    assert sql.app.handler({"alerts": True}, None) == {"met": [], "failed": [], "skipped": []}
    for _ in range(2):
        store.api.post("runs/update", run_id=store.api.new_run(), status="FAILED")
    tables.follow()
    files = {
        "many": "-- when: COUNT(run_id) > 10\nSELECT run_id FROM system.mlflow.runs_latest",
        "few": "-- When: COUNT(run_id) > 11\nSELECT run_id FROM system.mlflow.runs_latest",
        "wordless": "SELECT 1 AS x",
        "wrong": "-- when: MIN(x) < 1\nSELECT x FROM nowhere",
        "other": "-- when: MIN(y) < 1\nSELECT 1 AS x",
        "texts": "-- when: MIN(x) < 1\nSELECT 'a' AS x",
    }
    for name, text in files.items():
        storage.store().put(f"{alert_files.FOLDER}/{name}.sql", text.encode())
    storage.store().put(f"{alert_files.FOLDER}/README.md", b"no alert")
    done = sql.app.handler({"alerts": True}, None)
    assert done == {
        "met": ["low_reliability", "many"],
        "failed": ["other", "texts", "wordless", "wrong"],
        "skipped": [],
    }
    # A file of the deployment's own takes the place of the shipped one.
    own = "-- when: MIN(x) > 1\nSELECT 1 AS x"
    storage.store().put(f"{alert_files.FOLDER}/low_reliability.sql", own.encode())
    assert sql.app.handler({"alerts": True}, None)["met"] == ["many"]


def test_all_rows_count_and_nan_can_be_waited_for(store: Store, tables: Tables) -> None:
    run = store.api.new_run()
    for step, value in enumerate((0.5, "NaN", 2.0)):
        store.api.post(
            "runs/log-metric", run_id=run, key="loss", value=value, step=step, timestamp=step
        )
    tables.follow()
    numbers = "SELECT explode(sequence(1, 20000)) AS x"
    losses = "SELECT metric_value AS x FROM system.mlflow.run_metrics_history"
    expected = {
        f"-- when: COUNT(x) > 10000\n{numbers}": True,
        f"-- when: MAX(x) > 19999\n{numbers} ORDER BY x": True,
        f"-- when: FIRST(x) = 20000\n{numbers} ORDER BY x DESC; -- the last": True,
        f"-- when: SUM(x) = 200010000\n{numbers};": True,
        f"-- when: MAX(x) = NaN\n{losses}": True,
        f"-- when: MAX(x) > 100\n{losses}": True,
        f"-- when: AVG(x) = NaN\n{losses} ORDER BY metric_step": True,
        f"-- when: MIN(x) = NaN\n{losses}": False,
        f"-- when: MIN(x) < 1\n{losses}": True,
        f"-- when: MAX(x) = NaN\n{losses} WHERE metric_step <> 1": False,
    }
    for number, text in enumerate(expected):
        storage.store().put(f"{alert_files.FOLDER}/{number}.sql", text.encode())
    done = sql.app.handler({"alerts": True}, None)
    assert done["failed"] == []
    met = [number for number, is_met in enumerate(expected.values()) if is_met]
    assert done["met"] == sorted(map(str, met))
