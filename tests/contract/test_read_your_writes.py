"""What is acknowledged is read at once, though every global index is seconds behind and no indexer
runs."""

from __future__ import annotations

import random
from typing import Any

from tests.contract.api import Api, pairs
from tests.contract.conftest import Store, forget


def ids(answer: dict[str, Any]) -> set[str]:
    return {run["info"]["run_id"] for run in answer.get("runs", ())}


def search(api: Api, experiment_id: str, **fields: Any) -> set[str]:
    return ids(api.post("runs/search", experiment_ids=[experiment_id], **fields))


def test_everything_by_id_by_name_and_within_one_experiment(lagging_store: Store) -> None:
    api = lagging_store.api
    experiment_id = api.new_experiment("just made", tags=pairs({"k": "v"}))
    forget()  # nothing may depend on what this process remembers
    experiment = api.get("experiments/get-by-name", experiment_name="just made")["experiment"]
    assert experiment["experiment_id"] == experiment_id
    assert api.get("experiments/get", experiment_id=experiment_id)["experiment"] == experiment

    run_id = api.new_run(experiment_id, run_name="first")
    forget()
    assert api.run(run_id)["info"]["run_name"] == "first"
    assert search(api, experiment_id) == {run_id}
    api.post(
        "runs/log-batch",
        run_id=run_id,
        metrics=[{"key": k, "value": 0.5, "timestamp": 1, "step": 1} for k in ("loss", "acc")],
        params=pairs({"lr": "0.1"}),
        tags=pairs({"kind": "test"}),
    )
    forget()
    assert api.history(run_id, "loss") == [(1, 1, 0.5)]
    for text in (
        "metrics.loss = 0.5",
        "params.lr = '0.1'",
        "tags.kind = 'test'",
        "attributes.run_name = 'first'",
        f"attributes.run_id IN ('{run_id}')",
    ):
        assert search(api, experiment_id, filter=text) == {run_id}, text
    assert search(api, experiment_id, order_by=["metrics.loss DESC"]) == {run_id}

    api.post("runs/update", run_id=run_id, run_name="second", status="FINISHED")
    assert search(api, experiment_id, filter="attributes.run_name = 'first'") == set()
    assert search(api, experiment_id, filter="attributes.run_name = 'second'") == {run_id}
    assert search(api, experiment_id, filter="attributes.status = 'FINISHED'") == {run_id}
    api.post("runs/delete", run_id=run_id)
    assert search(api, experiment_id) == set()
    assert search(api, experiment_id, run_view_type="DELETED_ONLY") == {run_id}

    api.post("experiments/update", experiment_id=experiment_id, new_name="renamed")
    assert api.ask("GET", "experiments/get-by-name", experiment_name="just made").status == 404
    experiment = api.get("experiments/get-by-name", experiment_name="renamed")["experiment"]
    assert experiment["experiment_id"] == experiment_id
    again = api.new_experiment("just made")
    experiment = api.get("experiments/get-by-name", experiment_name="just made")["experiment"]
    assert experiment["experiment_id"] == again
    api.post("experiments/delete", experiment_id=experiment_id)
    assert api.ask("POST", "runs/create", experiment_id=experiment_id).status == 400


def test_a_history_of_writes_and_reads(lagging_store: Store) -> None:
    """Random writes, each followed by searches that must show exactly the model."""
    api = lagging_store.api
    chance = random.Random(5)
    experiments = [api.new_experiment(f"e{n}") for n in range(2)]
    runs: dict[str, dict[str, Any]] = {}
    for _ in range(40):
        experiment_id = chance.choice(experiments)
        mine = [run_id for run_id, run in runs.items() if run["experiment"] == experiment_id]
        action = chance.choice(["create", "metric", "tag", "delete", "restore"])
        if action == "create" or not mine:
            run_id = api.new_run(experiment_id)
            runs[run_id] = {"experiment": experiment_id, "m": None, "stage": "active"}
        else:
            run_id = chance.choice(mine)
            run = runs[run_id]
            if action in {"delete", "restore"}:
                api.post(f"runs/{action}", run_id=run_id)
                run["stage"] = "deleted" if action == "delete" else "active"
            elif run["stage"] == "active":
                value = chance.randrange(3)
                step = (run.get("step") or 0) + 1
                fields = {"key": "m", "value": value, "timestamp": 1, "step": step}
                api.post("runs/log-metric", run_id=run_id, **fields)
                run.update(m=value, step=step)
        for bound in (0, 1):
            assert search(api, experiment_id, filter=f"metrics.m > {bound}") == {
                run_id
                for run_id, run in runs.items()
                if run["experiment"] == experiment_id
                and run["stage"] == "active"
                and (run["m"] or 0) > bound
            }


def test_lists_of_experiments_catch_up(lagging_store: Store) -> None:
    """They may lag, but what they list is as it is now."""
    api = lagging_store.api
    experiment_id = api.new_experiment("slow to appear")
    listed = api.post("experiments/search", max_results=100)["experiments"]
    assert "0" in {experiment["experiment_id"] for experiment in listed}
    api.post("experiments/delete", experiment_id=experiment_id)
    listed = api.post("experiments/search", max_results=100)["experiments"]
    assert experiment_id not in {experiment["experiment_id"] for experiment in listed}
