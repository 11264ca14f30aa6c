"""Logged models on the real engine: what calls cost, writers that race, models with many points,
pages, and workspaces."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlcore.db.table import Operation, table
from mlcore.repos import document
from mlcore.repos.logged_models import points as logged_model_points
from mlcore.repos.logged_models import search as logged_model_search
from mlcore.repos.removal import workspace_moves
from tests.contract.api import Api, pairs
from tests.contract.conftest import Store, enable_workspaces, examples, forget
from tests.contract.threads import at_once


def new_model(api: Api, experiment_id: str = "0", **fields: Any) -> str:
    created = api.post("logged-models", experiment_id=experiment_id, **fields)
    model_id: str = created["model"]["info"]["model_id"]
    return model_id


def model(api: Api, model_id: str) -> dict[str, Any]:
    logged_model: dict[str, Any] = api.get(f"logged-models/{model_id}")["model"]
    return logged_model


def points_of(logged_model: dict[str, Any]) -> list[tuple[Any, ...]]:
    return [(m["key"], m["step"], m["value"]) for m in logged_model["data"].get("metrics", ())]


def patch(api: Api, path: str, **fields: Any) -> None:
    assert api.ask("PATCH", f"logged-models/{path}", **fields).status == 200


def trips(api: Api) -> int:
    return api.cost.round_trips


def kinds(store: Store) -> Counter[str]:
    """How many items of logged models there are, by type."""
    types = [item["type"]["S"] for item in store.items()]
    return Counter(kind for kind in types if kind.startswith("logged_model"))


def test_costs(store: Store) -> None:
    api = store.api
    api.get("experiments/get", experiment_id="0")
    model_id = new_model(api, name="m", tags=pairs({"a": "1"}), params=pairs({"b": "2"}))
    assert trips(api) == 2
    model(api, model_id)
    assert trips(api) == 1
    forget()
    model(api, model_id)
    assert trips(api) == 2
    patch(api, model_id, model_id=model_id, status=2)
    assert trips(api) == 2
    patch(api, f"{model_id}/tags", tags=pairs({"c": "3"}))
    assert trips(api) == 2
    api.post("logged-models/search", experiment_ids=["0"])
    assert trips(api) == 1


def test_cost_of_metrics(store: Store) -> None:
    api = store.api
    model_id, run_id = new_model(api), api.new_run()
    point = {"run_id": run_id, "key": "m", "value": 1, "timestamp": 1}
    for step in range(3):
        api.post("runs/log-metric", **point, step=step, model_id=model_id)
        assert trips(api) == 2
        with_model = api.cost.write_units
        api.post("runs/log-metric", **point, step=step + 10)
        assert trips(api) == 1
        assert with_model - api.cost.write_units <= 4  # a transaction: twice the units of each item
    elsewhere = new_model(api, api.new_experiment("elsewhere"))
    api.post("runs/log-metric", **point, step=5, model_id=elsewhere)
    assert trips(api) <= 3
    forget()
    api.post("runs/log-metric", **point, step=6, model_id=model_id)
    assert trips(api) == 3
    thousand = [
        {"key": f"m{n % 10}", "value": n, "timestamp": n, "step": n, "model_id": model_id}
        for n in range(1000)
    ]
    api.post("runs/log-batch", run_id=run_id, metrics=thousand)
    assert trips(api) <= 4
    assert api.cost.write_units <= 160


def test_finding_by_name_and_by_run_costs_what_it_finds(store: Store) -> None:
    api = store.api
    run_id = api.new_run()
    for n in range(60):
        made_by = run_id if n == 7 else "other"
        new_model(api, name=f"m{n}", source_run_id=made_by, params=pairs({"p": "v" * 3000}))
    for text in ("name = 'm7'", f"source_run_id = '{run_id}'"):
        answer = api.post("logged-models/search", experiment_ids=["0"], filter=text)
        assert [logged_model["info"]["name"] for logged_model in answer["models"]] == ["m7"]
        assert trips(api) == 1
        assert api.cost.read_units <= 4


def test_more_points_than_the_model_holds(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logged_model_points, "INLINE_BYTES", 500)
    api = store.api
    model_id, run_id = new_model(api), api.new_run()
    for step in range(30):
        api.post(
            "runs/log-metric",
            **{"run_id": run_id, "model_id": model_id, "key": "m", "value": step / 7},
            **{"timestamp": step, "step": step},
        )
    metrics = [
        {"key": f"n{n % 3}", "value": n, "timestamp": n, "step": n, "model_id": model_id}
        for n in range(400)
    ]
    for _ in range(2):
        api.post("runs/log-batch", run_id=run_id, metrics=metrics)
    expected: list[tuple[Any, ...]] = [("m", step, step / 7) for step in range(30)]
    expected += [(point["key"], point["step"], point["value"]) for point in metrics]
    forget()
    assert points_of(model(api, model_id)) == expected
    for more in ({}, {"filter": "metrics.m > 4.1 AND metrics.n0 > 380"}):
        (models,) = api.post("logged-models/search", experiment_ids=["0"], **more)["models"]
        assert points_of(models) == expected
    order = [{"field_name": "metrics.n1", "ascending": False}]
    new_model(api, name="without")
    models = api.post("logged-models/search", experiment_ids=["0"], order_by=order)["models"]
    assert models[0]["info"]["model_id"] == model_id


@pytest.mark.parametrize("inline_bytes", [16_000, 500])
def test_eight_writers_of_one_model(
    store: Store, monkeypatch: pytest.MonkeyPatch, inline_bytes: int
) -> None:
    monkeypatch.setattr(logged_model_points, "INLINE_BYTES", inline_bytes)
    api = store.api
    model_id, run_id = new_model(api), api.new_run()
    runs = [run_id, api.new_run()]

    def write(writer: int) -> None:
        for n in range(6):
            api.post(
                "runs/log-metric",
                **{"run_id": runs[writer % 2], "model_id": model_id, "key": f"k{n % 2}"},
                **{"value": writer + n / 10, "timestamp": 1, "step": writer * 100 + n},
            )
            patch(api, f"{model_id}/tags", tags=pairs({f"t{writer}": str(n)}))
            api.post(
                f"logged-models/{model_id}/params",
                **{"model_id": model_id, "params": pairs({f"p{writer}-{n}": "x", "shared": "s"})},
            )

    at_once(8, write)
    logged_model = model(api, model_id)
    assert sorted(points_of(logged_model)) == sorted(
        (f"k{n % 2}", writer * 100 + n, writer + n / 10) for writer in range(8) for n in range(6)
    )
    assert logged_model["info"]["tags"] == pairs({f"t{writer}": "5" for writer in range(8)})
    assert len(logged_model["data"]["params"]) == 49


def test_racing_params_have_one_winner(store: Store) -> None:
    api = store.api
    model_id = new_model(api)
    answers = at_once(
        8,
        lambda n: api.ask(
            "POST",
            f"logged-models/{model_id}/params",
            **{"model_id": model_id, "params": pairs({"p": str(n)})},
        ),
    )
    assert sorted(answer.status for answer in answers) == [200] + [400] * 7
    winner = next(n for n, answer in enumerate(answers) if answer.status == 200)
    assert model(api, model_id)["data"]["params"] == pairs({"p": str(winner)})


ORDERS: tuple[Any, ...] = (
    [],
    [{"field_name": "creation_time", "ascending": False}],
    [{"field_name": "name"}],
    [{"field_name": "metrics.m", "ascending": False}, {"field_name": "model_type"}],
)


@examples(12)
@given(
    sizes=st.lists(st.integers(0, 5), min_size=1, max_size=3),
    page=st.integers(1, 4),
    order=st.sampled_from(ORDERS),
    text=st.sampled_from(["", "model_type = 'a'", "metrics.m >= 0", "name LIKE 'm%'"]),
    seed=st.integers(0, 99),
)
def test_pages_are_the_whole(
    shared_store: Store, sizes: list[int], page: int, order: Any, text: str, seed: int
) -> None:
    api = shared_store.api
    chance = random.Random(seed)
    ids = [api.new_experiment(f"pages {uuid4()}") for _ in sizes]
    run_id = api.new_run(ids[0])
    for experiment_id, size in zip(ids, sizes, strict=True):
        for _ in range(size):
            model_id = new_model(
                api,
                experiment_id,
                name=chance.choice(["m", "n", "mm"]),
                model_type=chance.choice("ab"),
            )
            if chance.random() < 0.6:
                api.post(
                    "runs/log-metric",
                    **{"run_id": run_id, "model_id": model_id, "key": "m", "timestamp": 1},
                    value=chance.choice([-1, 0, 1]),
                )
            if chance.random() < 0.2:
                api.ask("DELETE", f"logged-models/{model_id}")
    query = {"experiment_ids": ids, "order_by": order, "filter": text}
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(logged_model_search, "PAGE_ITEMS", 3)
        whole = api.post("logged-models/search", **query).get("models", [])
        results: list[Any] = []
        token = ""
        while True:
            answer = api.post("logged-models/search", **query, max_results=page, page_token=token)
            assert len(answer.get("models", [])) <= page
            results += answer.get("models", [])
            token = answer.get("next_page_token", "")
            if not token:
                break
    assert results == whole
    if order in ORDERS[:2]:
        keys = [(-m["info"]["creation_timestamp_ms"], m["info"]["model_id"]) for m in whole]
        assert keys == sorted(keys)


def test_a_workspace_hides_its_models(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    enable_workspaces(monkeypatch, "team")
    api = store.api
    model_id, run_id = new_model(api), api.new_run()
    theirs = Api("team")
    path = f"logged-models/{model_id}"
    assert theirs.ask("GET", path).status == 404
    assert theirs.ask("PATCH", path, model_id=model_id, status=2).status == 404
    assert theirs.ask("PATCH", f"{path}/tags", tags=[]).status == 404
    assert theirs.ask("DELETE", f"{path}/tags/a").status == 404
    assert theirs.ask("DELETE", path).status == 404
    assert theirs.ask("POST", f"{path}/params", model_id=model_id, params=[]).status == 404
    assert theirs.ask("POST", "logged-models", experiment_id="0").status == 404
    for text in ("", f"model_id = '{model_id}'"):
        answer = theirs.ask("POST", "logged-models/search", experiment_ids=["0"], filter=text)
        assert (answer.status, answer.body) == (200, {})
    logged = {"run_id": run_id, "key": "m", "value": 1, "timestamp": 1, "model_id": model_id}
    assert theirs.ask("POST", "runs/log-metric", **logged).status in (400, 404)
    assert points_of(model(api, model_id)) == []


def test_a_model_is_not_created_in_an_experiment_that_moves_meanwhile(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The move has named the workspace of all models that it found, so nobody would see this one.
    Nothing of it stays."""
    enable_workspaces(monkeypatch, "team")
    monkeypatch.setattr(document, "INLINE_BYTES", 100)
    theirs = Api("team")
    experiment_id = theirs.new_experiment("moves")
    fields: dict[str, Any] = {"experiment_id": experiment_id, "params": pairs({"p": "v" * 200})}
    kept = new_model(theirs, **fields)
    made = kinds(store)
    assert made["logged_model_param"] == 1
    original = table.transact

    def after_a_move(operations: Sequence[Operation], token: str) -> None:
        monkeypatch.setattr(table, "transact", original)
        workspace_moves.experiment(experiment_id, "default")
        original(operations, token)

    monkeypatch.setattr(table, "transact", after_a_move)
    assert theirs.ask("POST", "logged-models", **fields).status == 404
    assert kinds(store) == made
    assert model(store.api, kept)
    assert new_model(store.api, **fields)
