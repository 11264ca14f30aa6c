"""What the system tables say of runs that were logged through the API."""

from __future__ import annotations

import math
import statistics
from datetime import UTC, datetime
from typing import Any

import polars

from tests.contract.conftest import Store
from tests.contract.lake import Tables, tables

__all__ = ["tables"]

_UTC = polars.Datetime("us", "UTC")


def _run(store: Store, experiment: str, **fields: Any) -> str:
    run_id: str = store.api.post("runs/create", experiment_id=experiment, **fields)["run"]["info"][
        "run_id"
    ]
    return run_id


def _points(key: str, values: list[Any]) -> list[dict[str, Any]]:
    return [
        {"key": key, "value": value, "step": step, "timestamp": 1_700_000_000_000 + step}
        for step, value in enumerate(values)
    ]


def _at(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)


def test_each_column_has_the_type_and_the_content_of_the_reference(
    store: Store, tables: Tables
) -> None:
    api = store.api
    experiment = api.post("experiments/create", name="a/b: c")["experiment_id"]
    run = _run(
        store, experiment, start_time=1_700_000_000_123, run_name="wistful-deer", user_id="ann"
    )
    api.post("runs/log-metric", run_id=run, key="loss: a/b", value=0.5, step=7, timestamp=5)
    api.post(
        "runs/log-batch",
        run_id=run,
        metrics=[*_points("loss: a/b", [1.5, "NaN"]), *_points("acc", ["-Infinity", 0.97])],
        params=[{"key": "n_layers", "value": "5"}],
        tags=[{"key": "ready_for_review", "value": "true"}],
    )
    api.post("runs/update", run_id=run, status="FINISHED", end_time=1_700_000_600_999)
    tables.follow()

    history = tables.frame("run_metrics_history")
    assert history.schema == {
        "account_id": polars.String,
        "insert_time": _UTC,
        "record_id": polars.String,
        "workspace_id": polars.String,
        "experiment_id": polars.String,
        "run_id": polars.String,
        "metric_name": polars.String,
        "metric_time": _UTC,
        "metric_step": polars.Int64,
        "metric_value": polars.Float64,
        "insert_date": polars.String,
    }
    assert sorted(
        (row["metric_name"], row["metric_step"], repr(row["metric_value"]), row["metric_time"])
        for row in history.to_dicts()
    ) == sorted(
        [
            ("loss: a/b", 7, "0.5", _at(5)),
            ("loss: a/b", 0, "1.5", _at(1_700_000_000_000)),
            ("loss: a/b", 1, "nan", _at(1_700_000_000_001)),
            ("acc", 0, "-1.7976931348623157e+308", _at(1_700_000_000_000)),
            ("acc", 1, "0.97", _at(1_700_000_000_001)),
        ]
    )
    assert history["record_id"].n_unique() == 5
    assert set(history["record_id"].str.len_chars()) == {24}

    (row,) = tables.rows("runs_latest")
    written = {
        item["SK"]["S"]: int(item["updated_at"]["N"]) for item in store.items_of(experiment, run)
    }
    aggregated = {metric.pop("metric_name"): metric for metric in row.pop("aggregated_metrics")}
    assert aggregated["acc"] == {
        "latest_value": 0.97,
        "min_value": -1.7976931348623157e308,
        "max_value": 0.97,
    }
    assert aggregated["loss: a/b"].pop("latest_value") == 0.5
    assert all(map(math.isnan, aggregated["loss: a/b"].values()))
    tags = {tag["key"]: tag["value"] for tag in row.pop("tags")}
    assert tags.pop("mlflow.runName") == "wistful-deer"
    assert tags == {"ready_for_review": "true"}
    assert row == {
        "account_id": "000000000000",
        "update_time": _at(written[f"R#{run}"]),
        "delete_time": None,
        "workspace_id": "default",
        "run_id": run,
        "experiment_id": experiment,
        "created_by": "ann",
        "start_time": _at(1_700_000_000_123),
        "end_time": _at(1_700_000_600_999),
        "run_name": "wistful-deer",
        "status": "FINISHED",
        "params": [{"key": "n_layers", "value": "5"}],
        "start_month": "2023-11",
    }

    (row,) = tables.rows("experiments_latest")
    about = api.get("experiments/get", experiment_id=experiment)["experiment"]
    assert row["create_time"] == _at(int(about["creation_time"]))
    assert (row["experiment_id"], row["name"], row["delete_time"]) == (experiment, "a/b: c", None)


def test_the_sample_queries_answer_what_an_independent_computation_does(
    store: Store, tables: Tables
) -> None:
    api = store.api
    experiment = api.post("experiments/create", name="sampled")["experiment_id"]
    start = 1_700_000_000_000
    run = _run(store, experiment, start_time=start, run_name="sample")
    values = [((index * 37) % 101) / 7 for index in range(100)]
    api.post("runs/log-batch", run_id=run, metrics=_points("loss", values))
    # One second less than 188 minutes: 187 whole ones have passed.
    end = start + 187 * 60_000 + 59_000
    api.post("runs/update", run_id=run, status="FINISHED", end_time=end)
    for status in ("FAILED", "FINISHED", "RUNNING"):
        other = _run(store, experiment, start_time=start)
        api.post("runs/update", run_id=other, status=status)
    tables.follow()

    assert tables.seed("run_information", experiment_id=experiment, run_id=run) == [
        ["sample", "2023-11-14", "FINISHED", 187]
    ]
    assert tables.seed("experiment_and_run_information", experiment_id=experiment, run_id=run) == [
        ["sample", "sampled", "2023-11-14", "FINISHED", 187]
    ]
    quarters = statistics.quantiles(values, n=4, method="inclusive")
    assert tables.seed("metric_statistics", run_id=run) == [
        [
            "loss",
            100,
            *(
                round(value, 1)
                for value in (statistics.mean(values), max(values), min(values), *quarters)
            ),
        ]
    ]
    assert tables.seed("low_reliability") == [[experiment, 0.5, 4]]


def test_deletions_restorations_and_names_follow(store: Store, tables: Tables) -> None:
    api = store.api
    experiment = api.post("experiments/create", name="first")["experiment_id"]
    kept, gone = _run(store, experiment), _run(store, experiment)
    for run in (kept, gone):
        api.post("runs/log-metric", run_id=run, key="m", value=1, timestamp=1, step=1)
    tables.follow()

    api.post("runs/delete", run_id=gone)
    api.post("experiments/update", experiment_id=experiment, new_name="second")
    tables.follow()
    deleted = {row["run_id"]: row["delete_time"] for row in tables.rows("runs_latest")}
    assert deleted[kept] is None
    assert deleted[gone] is not None
    assert [row["name"] for row in tables.rows("experiments_latest")] == ["second"]

    api.post("experiments/delete", experiment_id=experiment)
    tables.follow()
    (about,) = tables.rows("experiments_latest")
    assert about["delete_time"] is not None
    assert {row["delete_time"] is None for row in tables.rows("runs_latest")} == {False}

    api.post("experiments/restore", experiment_id=experiment)
    tables.follow()
    assert {row["delete_time"] for row in tables.rows("runs_latest")} == {None}
    assert [row["delete_time"] for row in tables.rows("experiments_latest")] == [None]


def test_what_is_gone_for_good_has_no_rows(store: Store, tables: Tables) -> None:
    from mlcore.repos.removal import permanent_deletion  # noqa: PLC0415

    api = store.api
    experiments = [
        api.post("experiments/create", name=name)["experiment_id"] for name in ("kept", "gone")
    ]
    runs = [_run(store, experiment) for experiment in experiments]
    for run in runs:
        api.post("runs/log-metric", run_id=run, key="m", value=1, timestamp=1, step=1)
    tables.follow()
    api.post("experiments/delete", experiment_id=experiments[1])
    permanent_deletion.experiment(experiments[1])
    tables.follow()
    assert [row["experiment_id"] for row in tables.rows("experiments_latest")] == experiments[:1]
    assert [row["run_id"] for row in tables.rows("runs_latest")] == runs[:1]
    assert [row["run_id"] for row in tables.rows("run_metrics_history")] == runs[:1]


def test_a_workspace_sees_its_own_rows(store: Store, tables: Tables) -> None:
    experiment = store.api.post("experiments/create", name="mine")["experiment_id"]
    _run(store, experiment)
    tables.follow()
    count = "SELECT count(*) FROM system.mlflow.runs_latest"
    assert tables.ask(count)["rows"] == [[1]]
    assert tables.ask(count, ["default"])["rows"] == [[1]]
    assert tables.ask(count, ["other"])["rows"] == [[0]]
    assert tables.ask(count, [])["rows"] == [[0]]
