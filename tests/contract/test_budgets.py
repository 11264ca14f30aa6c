"""What calls cost on the real engine: round trips as the product waits for them, and capacity."""

from __future__ import annotations

import json
from typing import Any

import pytest

import indexer.app
from mlcore.db import capacity, keys
from mlcore.db.expression import Update
from mlcore.db.table import table
from mlcore.http import Rpc
from mlcore.repos import document
from mlcore.repos.runs.core import marked_experiments
from mlcore.repos.runs.search import run_search
from tests.contract.api import Api, pairs
from tests.contract.conftest import Store, forget
from tests.contract.route_world import routes_of
from tests.contract.streams import Stream, following


def cost(api: Api) -> tuple[int, float, float]:
    """Round trips, read and write units of the last call."""
    last = api.cost
    return last.round_trips, last.read_units, last.write_units


def budget(name: str) -> tuple[int, float, float]:
    """What the table of routes allows: round trips, read and write units."""
    route = {**routes_of("runs"), **routes_of("experiments")}[name]
    assert isinstance(route, Rpc)
    assert route.cost is not None
    return route.cost, route.read_units or 0, route.write_units or 0


def run_of_3_kb(api: Api) -> str:
    run_id = api.new_run()
    api.post(
        "runs/log-batch",
        run_id=run_id,
        metrics=[{"key": f"metric-{n}", "value": n, "timestamp": 1, "step": 1} for n in range(10)],
        params=pairs({f"param-{n}": "value" * 10 for n in range(15)}),
        tags=pairs({f"tag-{n}": "value" * 10 for n in range(10)}),
    )
    return run_id


def written_by_another_process(run_id: str) -> None:
    """One write to a run that this process does not know of."""
    update = Update()
    document.touch(update)
    table.update(keys.run("0", run_id), update)


def thousand(keys: int, first: int = 0) -> list[dict[str, Any]]:
    return [
        {"key": f"m{n % keys}", "value": n / 7, "timestamp": 1_700_000_000_000 + n, "step": n}
        for n in range(first, first + 1000)
    ]


def test_get_run(store: Store) -> None:
    api = store.api
    run_id = run_of_3_kb(api)
    trips, read, _ = budget("GET /2.0/mlflow/runs/get")
    api.run(run_id)
    assert cost(api)[0] == trips == 1
    forget()
    api.run(run_id)
    assert cost(api)[0] == trips + 1
    assert cost(api)[1] <= read == 4


def test_create_run(store: Store) -> None:
    api = store.api
    api.get("experiments/get", experiment_id="0")
    api.new_run()
    trips, _, written = budget("POST /2.0/mlflow/runs/create")
    assert cost(api)[0] == trips == 2
    assert cost(api)[2] <= written == 20


def test_log_metric(store: Store) -> None:
    api = store.api
    run_id = run_of_3_kb(api)
    trips, _, written = budget("POST /2.0/mlflow/runs/log-metric")
    for step in (2, 3):
        api.post("runs/log-metric", run_id=run_id, key="metric-1", value=1, timestamp=2, step=step)
        assert cost(api)[0] == trips == 1
        assert cost(api)[2] <= written == 8
    forget()
    for step in (4, 5):
        api.post("runs/log-metric", run_id=run_id, key="metric-1", value=1, timestamp=2, step=step)
        assert cost(api)[0] == (3 if step == 4 else 1)  # located, read, written
    written_by_another_process(run_id)
    api.post("runs/log-metric", run_id=run_id, key="metric-1", value=1, timestamp=2, step=6)
    assert cost(api)[0] == 2
    assert cost(api)[2] <= written + 3  # the condition that failed


def test_log_batch_of_a_training_step(store: Store) -> None:
    api = store.api
    run_id = api.new_run()
    forget()
    for n in range(2):
        api.post(
            "runs/log-batch",
            run_id=run_id,
            metrics=[{"key": f"m{k}", "value": k, "timestamp": n, "step": n} for k in range(20)],
            params=pairs({f"p{n}-{k}": "v" * 20 for k in range(20)}),
            tags=pairs({f"t{k}": str(n) for k in range(5)}),
        )
        assert cost(api)[0] == (3 if n == 0 else 1)  # located, read, written


def test_log_batch_of_a_thousand_points(store: Store) -> None:
    api = store.api
    run_id = api.new_run()
    forget()
    api.post("runs/log-batch", run_id=run_id, metrics=thousand(10))
    trips, _, written = budget("POST /2.0/mlflow/runs/log-batch")
    assert cost(api)[0] <= trips + 2  # located, read
    assert 0 < cost(api)[2] <= written == 60


def test_history_of_ten_thousand_points(store: Store) -> None:
    api = store.api
    with following(store) as stream:
        alone, mixed = api.new_run(), api.new_run()
        for batch in range(10):
            api.post("runs/log-batch", run_id=alone, metrics=thousand(1, batch * 1000))
            api.post(
                "runs/log-batch",
                run_id=mixed,
                metrics=[
                    *thousand(1, batch * 1000)[:-1],
                    {"key": "other", "value": 1, "timestamp": batch, "step": batch},
                ],
            )
        for _ in range(2):
            assert len(api.history(alone, "m0")) == 10_000
            assert cost(api)[0] == 2
            assert len(api.history(mixed, "m0")) == 9_990
            assert cost(api)[0] == 2
            assert indexer.app.index(stream.fresh()) is None


def test_newest_hundred_runs(store: Store) -> None:
    api = store.api
    for size in (3, 250):
        experiment_id = api.new_experiment(f"of {size}")
        for n in range(size):
            api.post("runs/create", experiment_id=experiment_id, start_time=n)
        for view in ("ACTIVE_ONLY", "ALL"):
            answer = api.post(
                "runs/search",
                experiment_ids=[experiment_id],
                max_results=100,
                run_view_type=view,
                order_by=["attributes.start_time DESC"],
            )
            assert cost(api)[0] == 2
            assert len(answer["runs"]) == min(size, 100)
        assert ("next_page_token" in answer) == (size > 100)


def test_top_by_a_metric_while_runs_go_on(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """The running runs are read beside the first entries of the order."""
    monkeypatch.setattr(run_search, "SMALL_RUNS", 3)
    api = store.api
    experiment_id = api.new_experiment("ordered")
    with following(store) as stream:
        for n in range(16):
            made = api.post("runs/create", experiment_id=experiment_id, start_time=n)
            run_id = made["run"]["info"]["run_id"]
            api.post("runs/log-metric", run_id=run_id, key="m", value=n % 8, timestamp=1, step=n)
            if n < 8:
                api.post("runs/update", run_id=run_id, status="FINISHED", end_time=1)
        assert indexer.app.index(stream.fresh()) is None
    answer = api.post(
        "runs/search",
        experiment_ids=[experiment_id],
        max_results=4,
        order_by=["metrics.m DESC"],
    )
    assert cost(api)[0] == 3
    assert [run["info"]["start_time"] for run in answer["runs"]] == [15, 7, 14, 6]


def test_experiment_by_name(store: Store) -> None:
    api = store.api
    api.new_experiment("sought")
    api.get("experiments/get-by-name", experiment_name="sought")
    assert cost(api)[:2] == budget("GET /2.0/mlflow/experiments/get-by-name")[:2] == (2, 2)


def test_indexer_works_in_batches(store: Store) -> None:
    """A hundred records of one run cost a handful of calls one after another."""
    api = store.api
    with following(store) as stream:
        run_id = api.new_run()
        for n in range(30):
            api.post("runs/log-batch", run_id=run_id, metrics=thousand(10, n * 1000)[:100])
        records = stream.fresh()
        assert len(json.dumps(records, default=str)) > 100_000
        marked_experiments.note("0")  # one write in a while
        with capacity.measure() as measured:
            assert indexer.app.index(records) is None
    assert measured.round_trips <= 10


def test_update_run_reads_no_datasets(store: Store) -> None:
    """Which its answer does not show."""
    api = store.api
    run_id = api.new_run()
    dataset = {"name": "d", "digest": "1", "source_type": "local", "source": "s"}
    api.post("runs/log-inputs", run_id=run_id, datasets=[{"dataset": dataset, "tags": []}])
    forget()
    api.post("runs/update", run_id=run_id, status="FINISHED")
    assert cost(api)[0] == 3  # where the run is; the run; the write
    forget()
    assert api.run(run_id)["inputs"]["dataset_inputs"][0]["dataset"] == dataset
    assert cost(api)[0] == 3


def test_version_of_a_logged_model(store: Store) -> None:
    """The logged model, the registered one, the transaction, and the logged model's tag."""
    api = store.api
    made = api.post("logged-models", experiment_id="0", name="m")["model"]["info"]
    api.post("registered-models/create", name="r")
    source = f"models:/{made['model_id']}"
    for version in (1, 2):
        api.post("model-versions/create", name="r", source=source, model_id=made["model_id"])
        assert cost(api)[0] == 4
        tags = api.get(f"logged-models/{made['model_id']}")["model"]["info"]["tags"]
        (tag,) = (item["value"] for item in tags if item["key"] == "mlflow.modelVersions")
        assert [entry["version"] for entry in json.loads(tag)] == list(range(1, version + 1))


def test_a_run_of_two_hundred_steps_of_fifty_metrics(store: Store) -> None:
    """One call a step; the API and what the indexer makes of the run."""
    api = store.api
    written = 0.0
    with following(store) as stream:
        stream.fresh()
        run_id = api.new_run()
        written += cost(api)[2]
        for step in range(200):
            metrics = [
                {"key": f"metric {n}", "value": n / (step + 1), "timestamp": step, "step": step}
                for n in range(50)
            ]
            api.post("runs/log-batch", run_id=run_id, metrics=metrics)
            written += cost(api)[2]
            if step % 20 == 0:
                written += _followed(stream)
        api.end(run_id)
        written += cost(api)[2] + _followed(stream)
    assert written <= 2_200


def test_single_points_of_a_metric(store: Store) -> None:
    """Of the API and the indexer together."""
    api = store.api
    written = 0.0
    with following(store) as stream:
        stream.fresh()
        run_id = api.new_run()
        for step in range(100):
            api.post("runs/log-metric", run_id=run_id, key="m", value=step, timestamp=1, step=step)
            written += cost(api)[2]
        api.end(run_id)
        written += cost(api)[2] + _followed(stream)
    assert written <= 100 * 4.5


def _followed(stream: Stream) -> float:
    """The write units of the indexer."""
    records = stream.fresh()
    with capacity.measure() as measured:
        assert indexer.app.index(records) is None

    return measured.write_units
