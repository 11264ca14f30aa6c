"""Writers that race leave the union of what they wrote, and one winner where only one can win."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from mlcore.repos import document
from tests.contract.api import Answer, Api, pairs
from tests.contract.conftest import Store
from tests.contract.threads import at_once

THREADS = 8


@pytest.mark.parametrize("inline_bytes", [300_000, 3_000])
def test_eight_writers_of_one_run(
    store: Store, monkeypatch: pytest.MonkeyPatch, inline_bytes: int
) -> None:
    monkeypatch.setattr(document, "INLINE_BYTES", inline_bytes)
    api = store.api
    run_id = api.new_run()
    rounds = 6

    def write(writer: int) -> dict[str, list[tuple[int, int, float]]]:
        chance = random.Random(writer)
        sent: dict[str, list[tuple[int, int, float]]] = {}
        for number in range(rounds):
            metrics: list[dict[str, Any]] = [
                {
                    "key": chance.choice([f"own {writer}", "shared/a", "shared:b", f"s{n}"]),
                    "value": round(chance.uniform(-5, 5), 3),
                    "timestamp": chance.randrange(50),
                    "step": chance.randrange(-3, 20),
                }
                for n in range(chance.choice([1, 8]))
            ]
            for metric in metrics:
                point = (metric["timestamp"], metric["step"], metric["value"])
                sent.setdefault(metric["key"], []).append(point)
            if len(metrics) == 1:
                api.post("runs/log-metric", run_id=run_id, **metrics[0])
            else:
                api.post(
                    "runs/log-batch",
                    run_id=run_id,
                    metrics=metrics,
                    params=pairs({f"p{writer}.{number}": "v" * 50, "same": "for all"}),
                    tags=pairs({f"t{writer}": str(number), "last": str(writer)}),
                )
        return sent

    everything: dict[str, set[tuple[int, int, float]]] = {}
    for sent in at_once(THREADS, write):
        for key, points in sent.items():
            everything.setdefault(key, set()).update(points)
    data = api.data(run_id)
    assert data["metrics"] == {
        key: (value, timestamp, step)
        for key, points in everything.items()
        for step, timestamp, value in [max((s, t, v) for t, s, v in points)]
    }
    for key, logged in everything.items():
        assert api.history(run_id, key) == sorted(logged), key
    assert data["params"]["same"] == "for all"
    assert {key for key in data["tags"] if key != "last"} <= {f"t{n}" for n in range(THREADS)}


def test_models_and_inputs_of_racing_writers(store: Store) -> None:
    api = store.api
    run_id = api.new_run()

    def write(writer: int) -> None:
        for number in range(3):
            model = {
                "run_id": run_id,
                "artifact_path": f"{writer}-{number}",
                "utc_time_created": "t",
                "flavors": {},
            }
            api.post("runs/log-model", run_id=run_id, model_json=json.dumps(model))
            dataset = {"name": f"d{number}", "digest": "x", "source_type": "s", "source": "u"}
            tags = [{"key": "who", "value": str(writer)}]
            api.post(
                "runs/log-inputs",
                run_id=run_id,
                datasets=[{"dataset": dataset, "tags": tags}],
                models=[{"model_id": f"in-{writer}"}],
            )
            seen.setdefault(number, set()).add(_who(api, run_id, number))
            api.post("runs/outputs", run_id=run_id, models=[{"model_id": f"out-{writer}"}])

    seen: dict[int, set[str]] = {}
    at_once(THREADS, write)
    run = api.run(run_id)
    history = json.loads(
        next(t["value"] for t in run["data"]["tags"] if t["key"] == "mlflow.log-model.history")
    )
    assert len(history) == THREADS * 3
    assert {entry["artifact_path"] for entry in history} == {
        f"{writer}-{number}" for writer in range(THREADS) for number in range(3)
    }
    assert len(run["inputs"]["dataset_inputs"]) == 3
    assert all(len(writers) == 1 for writers in seen.values()), "the first link stays as it is"
    assert len(run["inputs"]["model_inputs"]) == len(run["outputs"]["model_outputs"]) == THREADS


def _who(api: Api, run_id: str, number: int) -> str:
    for entry in api.run(run_id)["inputs"]["dataset_inputs"]:
        if entry["dataset"]["name"] == f"d{number}":
            return str(entry["tags"][0]["value"])
    raise AssertionError("not linked")


def test_an_item_filled_by_racing_writers_never_refuses(store: Store) -> None:
    """Each writer alone would find room for its 250 KB."""
    api = store.api
    run_id = api.new_run()

    def write(writer: int) -> Answer:
        params = {f"{writer}-{n}": "v" * 6000 for n in range(40)}
        return api.ask("POST", "runs/log-batch", run_id=run_id, params=pairs(params))

    assert [answer.status for answer in at_once(4, write)] == [200] * 4
    assert len(api.data(run_id)["params"]) == 160


def test_values_at_the_limits(store: Store) -> None:
    api = store.api
    run_id = api.new_run(run_name="🦊" * 250)
    key = "ключ 変数/a:b.c-"
    long = "\U0001d4d0" * 250
    metrics = [
        {"key": k, "value": 1, "timestamp": 2**63 - 1, "step": -(2**63)} for k in (key, long)
    ]
    params = {key: "x" * 6000, long: "𝔘" * 6000}
    tags = {key: "y" * 8000, **{long[:240] + str(n): "𝔙" * 8000 for n in range(20)}}
    api.post(
        "runs/log-batch", run_id=run_id, metrics=metrics, params=pairs(params), tags=pairs(tags)
    )
    data = api.data(run_id)
    point = (1.0, 2**63 - 1, -(2**63))
    assert data == {"metrics": {key: point, long: point}, "params": params, "tags": tags}
    assert api.history(run_id, long) == [(2**63 - 1, -(2**63), 1.0)]
    api.post("runs/log-metric", run_id=run_id, key=long, value="NaN", timestamp=0, step=5)
    assert api.history(run_id, long)[0] == (0, 5, "NaN")
    experiment_id = api.new_experiment("\U0001d4d0" * 500)
    expected = {f"{'k' * 240}{n}": ("𝔚" if n < 5 else "w") * 20_000 for n in range(60)}
    for name, value in expected.items():
        api.post(
            "experiments/set-experiment-tag", experiment_id=experiment_id, key=name, value=value
        )
    found_by_name = api.get("experiments/get-by-name", experiment_name="\U0001d4d0" * 500)
    assert {t["key"]: t["value"] for t in found_by_name["experiment"]["tags"]} == expected


def test_one_winner_of_a_name(store: Store) -> None:
    api = store.api
    for name in ("contested", "a/b #c", "Default"):

        def create(_number: int, name: str = name) -> Answer:
            return api.ask("POST", "experiments/create", name=name)

        answers = at_once(16, create)
        codes = sorted(answer.code for answer in answers)
        winners = 0 if name == "Default" else 1
        assert codes == [""] * winners + ["RESOURCE_ALREADY_EXISTS"] * (16 - winners)
        for answer in answers:
            if answer.status == 200:
                experiment = api.get("experiments/get-by-name", experiment_name=name)["experiment"]
                assert experiment["experiment_id"] == answer.body["experiment_id"]


def test_the_default_experiment_is_created_once(store: Store) -> None:
    api = store.api

    def look(number: int) -> dict[str, Any]:
        if number % 3 == 0:
            return api.get("experiments/get", experiment_id="0")["experiment"]
        if number % 3 == 1:
            return api.get("experiments/get-by-name", experiment_name="Default")["experiment"]
        return api.post("experiments/search", max_results=10)["experiments"][0]

    answers = at_once(16, look)
    assert all(experiment == answers[0] for experiment in answers)
    assert (answers[0]["experiment_id"], answers[0]["name"]) == ("0", "Default")
    assert sum(item["type"]["S"] == "experiment" for item in store.items()) == 1


def test_the_default_name_is_taken_from_the_start(store: Store) -> None:
    api = store.api
    answer = api.ask("POST", "experiments/create", name="Default")
    assert answer.code == "RESOURCE_ALREADY_EXISTS"
    api.post("experiments/update", experiment_id="0", new_name="other")
    missing = api.ask("GET", "experiments/get-by-name", experiment_name="Default")
    assert missing.code == "RESOURCE_DOES_NOT_EXIST"
    api.new_experiment("Default")
    assert api.get("experiments/get", experiment_id="0")["experiment"]["name"] == "other"


def test_renames_and_creations_race(store: Store) -> None:
    """Whoever wins, each name is one experiment's and each experiment is found by its name."""
    api = store.api
    ids = [api.new_experiment(f"racer {n}") for n in range(4)]

    def act(number: int) -> set[int]:
        chance = random.Random(number)
        statuses = set()
        for _ in range(10):
            name = f"prize {chance.randrange(3)}"
            if number % 2:
                answer = api.ask("POST", "experiments/create", name=name)
            else:
                answer = api.ask(
                    "POST",
                    "experiments/update",
                    experiment_id=ids[number // 2],
                    new_name=chance.choice([name, f"racer {number // 2}"]),
                )
            statuses.add(answer.status)
        return statuses

    assert set().union(*at_once(8, act)) <= {200, 400}
    listed = api.post("experiments/search", max_results=100)["experiments"]
    names = [experiment["name"] for experiment in listed]
    assert len(set(names)) == len(names)
    for experiment in listed:
        named = api.get("experiments/get-by-name", experiment_name=experiment["name"])["experiment"]
        assert named == experiment
    locks = [item for item in store.items() if item["type"]["S"] == "experiment_name_lock"]
    assert {lock["experiment_id"]["S"] for lock in locks} == {e["experiment_id"] for e in listed}
    assert len(locks) == len(listed)


def test_deletions_and_restorations_race(store: Store) -> None:
    api = store.api
    experiment_id = api.new_experiment("on and off")
    run_id = api.new_run(experiment_id)

    def act(number: int) -> list[tuple[str, int]]:
        path = "experiments/delete" if number % 2 else "experiments/restore"
        return [(path, api.ask("POST", path, experiment_id=experiment_id).status) for _ in range(8)]

    answers = [answer for answered in at_once(8, act) for answer in answered]
    assert {status for _, status in answers} <= {200, 404}
    (item,) = [
        i for i in store.items() if i["SK"]["S"] == "E#META" and experiment_id in i["PK"]["S"]
    ]
    stage = "deleted" if int(item["epoch"]["N"]) % 2 else "active"
    assert item["stage"]["S"] == stage
    experiment = api.get("experiments/get", experiment_id=experiment_id)["experiment"]
    assert experiment["lifecycle_stage"] == stage
    assert api.run(run_id)["info"]["lifecycle_stage"] == stage


def test_tags_of_an_experiment_race(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(document, "INLINE_BYTES", 2_000)
    api = store.api
    experiment_id = api.new_experiment("tagged")

    def write(writer: int) -> None:
        for n in range(6):
            api.post(
                "experiments/set-experiment-tag",
                experiment_id=experiment_id,
                key=f"{writer}.{n % 3}",
                value=f"{n}" * (10 if n % 2 else 300),
            )

    at_once(THREADS, write)
    tags = api.get("experiments/get", experiment_id=experiment_id)["experiment"]["tags"]
    assert {tag["key"]: tag["value"] for tag in tags} == {
        f"{writer}.{n % 3}": f"{n}" * (10 if n % 2 else 300)
        for writer in range(THREADS)
        for n in (3, 4, 5)
    }
