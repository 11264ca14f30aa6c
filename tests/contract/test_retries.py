"""Every write survives a fault at each of its DynamoDB calls, at worst by being sent again."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from mlcore.db import table as table_module
from mlcore.repos import document
from tests.contract.api import Answer, Api, pairs
from tests.contract.conftest import forget
from tests.contract.faults import DONE_BEFORE, faults_at
from tests.doubles.fixtures import Doubles

Fields = dict[str, Any]


_numbers = itertools.count()


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_module, "back_off", lambda _attempt: None)


class Scene(NamedTuple):
    """Where a request takes place."""

    name: str
    experiment_id: str
    run_id: str
    model_id: str


class Case(NamedTuple):
    path: str
    fields: Callable[[Scene], Fields]
    before: tuple[tuple[str, Callable[[Scene], Fields]], ...] = ()
    """Requests that prepare the scene."""
    inline_bytes: int = 300_000
    method: str = "POST"

    def names(self, scene: Scene) -> list[str]:
        """What experiments may be called then."""
        is_of_experiments = self.path.startswith("experiments/")
        return [scene.name, *(f"{scene.name} {new}" for new in ("new", "2") if is_of_experiments)]

    def keys(self, scene: Scene) -> list[str]:
        """Metrics of which there may be a history then, of many a few."""
        requests = [self.fields, *(fields for _, fields in self.before)]
        sent = json.dumps([fields(scene) for fields in requests])
        return [key for key in ("m", "m0", "m1", "m19", "m149") if f'"key": "{key}"' in sent]

    def send(self, api: Api, scene: Scene) -> Answer:
        return api.ask(self.method, self.path.format(*scene), **self.fields(scene))

    def sent(self, api: Api, scene: Scene) -> Any:
        answer = self.send(api, scene)
        assert answer.status == 200, answer
        return comparable(answer.body)


def of_run(**fields: Any) -> Callable[[Scene], Fields]:
    return lambda scene: {"run_id": scene.run_id, **fields}


def of_experiment(**fields: Any) -> Callable[[Scene], Fields]:
    return lambda scene: {"experiment_id": scene.experiment_id, **fields}


def of_model(**fields: Any) -> Callable[[Scene], Fields]:
    return lambda scene: {"model_id": scene.model_id, **fields}


def points(count: int, keys: int) -> list[Fields]:
    return [
        {"key": f"m{n % keys}", "value": n / 3, "timestamp": n, "step": n // keys}
        for n in range(count)
    ]


DATASETS = [
    {
        "dataset": {
            **{"name": f"d{n}", "digest": "x", "source_type": "s", "source": "u"},
            "profile": "p" * size,
        },
        "tags": [{"key": "mlflow.data.context", "value": "training"}],
    }
    for n, size in enumerate((10, 150_000))
]
MODEL_PATH = "logged-models/{3}"
MODEL = json.dumps(
    {"run_id": "r", "artifact_path": "m", "utc_time_created": "now", "flavors": {"python": {}}}
)
BATCH = {
    "metrics": points(12, 3),
    "params": pairs({"p1": "1", "p2": "2"}),
    "tags": pairs({"t1": "1", "t2": "2"}),
}
SPILLING = {
    "metrics": points(40, 20),
    "params": pairs({f"p{n}": "v" * 300 for n in range(8)}),
    "tags": pairs({f"t{n}": "w" * 300 for n in range(8)}),
}

CASES = {
    "create experiment": Case(
        "experiments/create",
        lambda scene: {"name": f"{scene.name} new", "tags": pairs({"a": "b"})},
    ),
    "create experiment, tags outside": Case(
        "experiments/create",
        lambda scene: {
            "name": f"{scene.name} new",
            "tags": pairs({"a": "b" * 900, "c": "d" * 900}),
        },
        inline_bytes=1000,
    ),
    "rename experiment": Case(
        "experiments/update",
        lambda s: {"experiment_id": s.experiment_id, "new_name": f"{s.name} 2"},
    ),
    "touch experiment": Case(
        "experiments/update", lambda s: {"experiment_id": s.experiment_id, "new_name": s.name}
    ),
    "delete experiment": Case("experiments/delete", of_experiment()),
    "restore experiment": Case(
        "experiments/restore", of_experiment(), (("experiments/delete", of_experiment()),)
    ),
    "set experiment tag": Case("experiments/set-experiment-tag", of_experiment(key="k", value="v")),
    "set experiment tag outside": Case(
        "experiments/set-experiment-tag",
        of_experiment(key="k", value="v" * 2000),
        (("experiments/set-experiment-tag", of_experiment(key="k", value="v")),),
        inline_bytes=1000,
    ),
    "delete experiment tag": Case(
        "experiments/delete-experiment-tag",
        of_experiment(key="k"),
        (("experiments/set-experiment-tag", of_experiment(key="k", value="v")),),
    ),
    "delete experiment tag outside": Case(
        "experiments/delete-experiment-tag",
        of_experiment(key="k"),
        (("experiments/set-experiment-tag", of_experiment(key="k", value="v" * 2000)),),
        inline_bytes=1000,
    ),
    "create run": Case(
        "runs/create",
        of_experiment(start_time=7, run_name="new", user_id="u", tags=pairs({"a": "b"})),
    ),
    "update run": Case("runs/update", of_run(status="FINISHED", end_time=9, run_name="renamed")),
    "delete run": Case("runs/delete", of_run()),
    "restore run": Case("runs/restore", of_run(), (("runs/delete", of_run()),)),
    "log metric": Case("runs/log-metric", of_run(key="m", value="NaN", timestamp=5, step=-3)),
    "log param": Case("runs/log-parameter", of_run(key="p", value="v")),
    "set tag": Case("runs/set-tag", of_run(key="t", value="v")),
    "delete tag": Case(
        "runs/delete-tag", of_run(key="t"), (("runs/set-tag", of_run(key="t", value="v")),)
    ),
    "log batch": Case("runs/log-batch", of_run(**BATCH)),
    "log batch without params": Case(
        "runs/log-batch", of_run(metrics=BATCH["metrics"], tags=BATCH["tags"])
    ),
    "log batch of 150 keys": Case("runs/log-batch", of_run(metrics=points(300, 150))),
    "log batch outside": Case("runs/log-batch", of_run(**SPILLING), inline_bytes=2000),
    "log batch outside again": Case(
        "runs/log-batch",
        of_run(
            metrics=points(60, 20),
            tags=pairs({f"t{n}": "x" * 310 for n in range(10)}),
        ),
        (
            ("runs/log-batch", of_run(tags=pairs({f"t{n}": "y" for n in range(10)}))),
            ("runs/log-batch", of_run(**{**SPILLING, "tags": []})),
        ),
        inline_bytes=2000,
    ),
    "log inputs": Case("runs/log-inputs", of_run(datasets=DATASETS, models=[{"model_id": "m-1"}])),
    "log outputs": Case(
        "runs/outputs", of_run(models=[{"model_id": f"m-{n}", "step": n} for n in (3, 1, 2)])
    ),
    "log model": Case("runs/log-model", of_run(model_json=MODEL)),
    "create logged model": Case(
        "logged-models",
        of_experiment(name="new", params=pairs({"p": "1"}), tags=pairs({"t": "1"})),
    ),
    "create logged model, tags outside": Case(
        "logged-models",
        of_experiment(name="new", tags=pairs({f"t{n}": "w" * 300 for n in range(8)})),
        inline_bytes=1000,
    ),
    "finalize logged model": Case(MODEL_PATH, of_model(status=2), method="PATCH"),
    "delete logged model": Case(MODEL_PATH, of_model(), method="DELETE"),
    "set tags of logged model": Case(
        f"{MODEL_PATH}/tags", of_model(tags=pairs({"a": "1", "b": "2"})), method="PATCH"
    ),
    "set tags of logged model outside": Case(
        f"{MODEL_PATH}/tags",
        of_model(tags=pairs({f"t{n}": "w" * 300 for n in range(8)})),
        inline_bytes=1000,
        method="PATCH",
    ),
    "delete tag of logged model": Case(f"{MODEL_PATH}/tags/first", of_model(), method="DELETE"),
    "log params of logged model": Case(
        f"{MODEL_PATH}/params", of_model(params=pairs({"a": "1", "b": "2"}))
    ),
    "log params of logged model outside": Case(
        f"{MODEL_PATH}/params",
        of_model(params=pairs({f"p{n}": "w" * 300 for n in range(8)})),
        inline_bytes=1000,
    ),
    "log metric of logged model": Case(
        "runs/log-metric",
        lambda scene: {
            **{"run_id": scene.run_id, "model_id": scene.model_id},
            **{"key": "m", "value": 1, "timestamp": 5, "step": 2},
        },
    ),
    "log batch of logged model": Case(
        "runs/log-batch",
        lambda scene: {
            "run_id": scene.run_id,
            "metrics": [{**point, "model_id": scene.model_id} for point in points(200, 2)],
            "params": pairs({"p": "1"}),
        },
    ),
}


def prepared(api: Api, case: Case) -> Scene:
    name = f"experiment-{next(_numbers):06d}"
    experiment_id = api.new_experiment(name)
    model = api.post("logged-models", experiment_id=experiment_id, tags=pairs({"first": "1"}))
    scene = Scene(
        name,
        experiment_id,
        api.new_run(experiment_id, run_name="first"),
        model["model"]["info"]["model_id"],
    )
    for path, fields in case.before:
        api.post(path, **fields(scene))
    return scene


def comparable(value: Any) -> Any:
    """An answer without what differs from time to time: ids and the clock."""
    text = json.dumps(value, sort_keys=True)
    text = re.sub(r"m-[0-9a-f]{32}", "<model>", text)  # some begin with 26 digits
    text = re.sub(r"\b[0-9A-HJKMNP-TV-Z]{26}\b", "<id>", text)
    text = re.sub(r"experiment-\d{6}", "<name>", text)
    text = re.sub(r'("experiment_id": "|mlflow-artifacts:/)\d+', r"\1<id>", text)
    text = re.sub(r'"name": "[a-z]+-[a-z]+-\d+"', '"name": "<generated>"', text)
    text = re.sub(r'"(creation|last_updated?)_time(stamp_ms)?": \d+', '"time": 0', text)
    return json.loads(text)


def state(api: Api, case: Case, scene: Scene) -> list[Any]:
    """All that clients can see of a scene after a case. A run created twice counts once: its client
    was not told of the first."""
    results: list[Any] = []
    for name in case.names(scene):
        results.append(
            comparable(api.ask("GET", "experiments/get-by-name", experiment_name=name).body)
        )
    results.append(comparable(api.get("experiments/get", experiment_id=scene.experiment_id)))
    listed = api.post(
        "runs/search", experiment_ids=[scene.experiment_id], run_view_type="ALL", max_results=100
    ).get("runs", [])
    results.append(sorted({json.dumps(comparable(run), sort_keys=True) for run in listed}))
    results.append(comparable(api.run(scene.run_id)))
    models = api.post("logged-models/search", experiment_ids=[scene.experiment_id])
    listed = models.get("models", [])
    results.append(sorted({json.dumps(comparable(model), sort_keys=True) for model in listed}))
    path = f"logged-models/{scene.model_id}"
    results.append(comparable(api.get(path, allow_deleted="true")))
    results += [api.history(scene.run_id, key) for key in case.keys(scene)]
    results.append(
        comparable(api.post("experiments/search-datasets", experiment_ids=[scene.experiment_id]))
    )
    return results


@pytest.mark.parametrize("name", CASES)
def test_a_fault_at_every_call(
    broken: tuple[Api, Doubles], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    api, doubles = broken
    case = CASES[name]
    monkeypatch.setattr(document, "INLINE_BYTES", case.inline_bytes)
    scene = prepared(api, case)
    forget()
    before, kills_before = doubles.faulty.total, doubles.faulty.kills
    calm = case.sent(api, scene)
    calls = doubles.faulty.total - before
    kills = doubles.faulty.kills - kills_before
    assert calls, "the request made no call"
    expected = state(api, case, scene)
    for nth in range(1, calls + 1):
        for fault in faults_at(nth, kills, name):
            scene = prepared(api, case)
            forget()
            doubles.faulty.arm(fault, nth)
            answer = case.send(api, scene)
            where = f"{fault.name} at call {nth}"
            assert doubles.faulty.fired or nth > 1, where
            doubles.faulty.heal()
            if answer.status == 200:
                assert comparable(answer.body) == calm, where
            else:
                assert answer.status >= 500 or answer.status == 429, (where, answer)
                forget()
                again = case.send(api, scene)
                assert _fine(again, calm, case), (where, again)
            assert state(api, case, scene) == expected, where


def _fine(answer: Answer, calm: Any, case: Case) -> bool:
    if answer.status == 200:
        return bool(comparable(answer.body) == calm)
    ends = ("create", "delete", "restore", "delete-tag", "delete-experiment-tag")
    removes = case.method == "DELETE" or case.path.endswith(ends)
    return removes and answer.code in DONE_BEFORE


@pytest.mark.parametrize("name", CASES)
def test_sent_twice(
    broken: tuple[Api, Doubles], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """A client that did not hear the answer sends the request again, after the fact."""
    api, _ = broken
    case = CASES[name]
    monkeypatch.setattr(document, "INLINE_BYTES", case.inline_bytes)
    scene = prepared(api, case)
    calm = case.sent(api, scene)
    expected = state(api, case, scene)
    again = case.send(api, scene)
    assert _fine(again, calm, case), again
    assert state(api, case, scene) == expected


def test_no_read_may_be_stale(broken: tuple[Api, Doubles]) -> None:
    """Nothing but a global index is ever read without ConsistentRead."""
    api, doubles = broken
    with doubles.counting.measure() as cost:
        for case in CASES.values():
            scene = prepared(api, case)
            case.sent(api, scene)
            state(api, case, scene)
        api.post("experiments/search", max_results=100)
    assert sum(cost.requests.values()) > 100
    assert cost.stale_reads == []
