"""Runs and experiments whose data crosses the limit of one item behave as plain dictionaries do."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlcore import process_cache
from mlcore.entities.runs import ENDED
from mlcore.models.runs import Run
from mlcore.repos import document
from mlcore.repos.runs.core import run_writes, runs
from tests.contract.api import Api, pairs
from tests.contract.conftest import Store, examples
from tests.contract.document_state import placed_once

INLINE = 2_000
TEXT = 700

_names = itertools.count()

KEYS = st.sampled_from(["a", "b", "c", "d", "e/ä b:c", "f" * 240, "🦊" * 200, "g"])
VALUES = st.one_of(
    st.integers(0, 40).map(lambda n: "v" * n),
    st.text("&=%2563D", max_size=6),
    st.integers(100, 900).map(lambda n: "w" * n),
    st.integers(1, 300).map(lambda n: "ü🦊" * n),
)
NUMBERS = st.sampled_from(
    [0.0, -0.0, 1.5, -7.25, float("nan"), float("inf"), float("-inf"), 5e-324]
)
POINTS = st.tuples(NUMBERS, st.integers(0, 3), st.integers(-2, 2))


@pytest.fixture(autouse=True)
def _small_items(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(document, "INLINE_BYTES", INLINE)
    monkeypatch.setattr(document, "MOST_TEXT", TEXT)


def latest(
    known: tuple[Any, ...] | None, value: float, timestamp: int, step: int
) -> tuple[Any, ...]:
    """MLflow's rule on (value, timestamp, step) as answers show them."""
    big = 1.7976931348623157e308
    stored: Any = "NaN" if math.isnan(value) else max(-big, min(big, value)) + 0.0
    new = (stored, timestamp, step)

    def order(point: tuple[Any, ...]) -> tuple[Any, ...]:
        return point[2], point[1], 0.0 if point[0] == "NaN" else point[0]

    return new if known is None or order(new) > order(known) else known


def wire_number(value: float) -> Any:
    if math.isnan(value):
        return "NaN"
    return value if not math.isinf(value) else ("Infinity" if value > 0 else "-Infinity")


def wire_metric(key: str, point: tuple[float, int, int]) -> dict[str, Any]:
    value, timestamp, step = point
    return {"key": key, "value": wire_number(value), "timestamp": timestamp, "step": step}


METRIC_KEYS = st.sampled_from(["m", "loss", "x/y z", "k" * 240, "ключ" * 60, "n", "o"])
STATUSES = ("RUNNING", "FINISHED")
STEPS = st.lists(
    st.one_of(
        st.tuples(
            st.just("batch"),
            st.lists(st.tuples(METRIC_KEYS, POINTS), max_size=4),
            st.dictionaries(METRIC_KEYS, VALUES, max_size=3),
            st.dictionaries(METRIC_KEYS, VALUES, max_size=3),
        ),
        st.tuples(st.just("param"), METRIC_KEYS, VALUES),
        st.tuples(st.just("tag"), METRIC_KEYS, VALUES),
        st.tuples(st.just("untag"), METRIC_KEYS),
        st.tuples(st.just("metric"), METRIC_KEYS, POINTS),
        st.tuples(st.just("status"), st.sampled_from(STATUSES)),
        st.just(("another process",)),
    ),
    min_size=1,
    max_size=10,
)


@examples(25)
@given(steps=STEPS)
def test_a_run_is_three_dictionaries(shared_store: Store, steps: list[tuple[Any, ...]]) -> None:
    api = shared_store.api
    run_id = api.new_run()
    metrics: dict[str, Any] = {}
    params: dict[str, str] = {}
    tags: dict[str, str] = {}
    for step in steps:
        match step:
            case ("batch", points, new_params, new_tags):
                answer = api.ask(
                    "POST",
                    "runs/log-batch",
                    run_id=run_id,
                    metrics=[wire_metric(key, point) for key, point in points],
                    params=pairs(new_params),
                    tags=pairs(new_tags),
                )
                if any(params.get(key, value) != value for key, value in new_params.items()):
                    assert (answer.status, answer.code) == (400, "INVALID_PARAMETER_VALUE")
                    continue
                assert answer.status == 200, answer
                for key, point in points:
                    metrics[key] = latest(metrics.get(key), *point)
                params |= new_params
                tags |= new_tags
            case ("param", key, value):
                answer = api.ask("POST", "runs/log-parameter", run_id=run_id, key=key, value=value)
                expected = 200 if params.setdefault(key, value) == value else 400
                assert answer.status == expected, answer
            case ("tag", key, value):
                api.post("runs/set-tag", run_id=run_id, key=key, value=value)
                tags[key] = value
            case ("untag", key):
                answer = api.ask("POST", "runs/delete-tag", run_id=run_id, key=key)
                assert answer.status == (404 if tags.pop(key, None) is None else 200), answer
            case ("status", status):
                api.post("runs/update", run_id=run_id, status=status)
            case ("another process",):
                process_cache.clear()
            case ("metric", key, point):
                api.post("runs/log-metric", run_id=run_id, **wire_metric(key, point))
                metrics[key] = latest(metrics.get(key), *point)
    assert api.data(run_id) == {"metrics": metrics, "params": params, "tags": tags}
    (run,) = api.post(
        "runs/search",
        experiment_ids=["0"],
        filter=f"attributes.run_id = '{run_id}'",
        run_view_type="ALL",
    )["runs"]
    assert run == {**api.run(run_id), "outputs": run.get("outputs", {})} or run == api.run(run_id)
    placed_once(shared_store, "0", run_id)


EXPERIMENT_STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("tag"), KEYS.filter(lambda k: len(k) < 250), VALUES),
        st.tuples(st.just("untag"), KEYS),
    ),
    min_size=1,
    max_size=10,
)


@examples(15)
@given(initial=st.dictionaries(st.sampled_from("abc"), VALUES, max_size=3), steps=EXPERIMENT_STEPS)
def test_an_experiment_is_a_dictionary(
    shared_store: Store, initial: dict[str, str], steps: list[tuple[str, ...]]
) -> None:
    api = shared_store.api
    experiment_id = api.new_experiment(f"dictionary {next(_names)}", tags=pairs(initial))
    tags = dict(initial)
    for step in steps:
        match step:
            case ("tag", key, value):
                answer = api.ask(
                    "POST",
                    "experiments/set-experiment-tag",
                    experiment_id=experiment_id,
                    key=key,
                    value=value,
                )
                if "🦊" in key:
                    assert answer.status == 400
                else:
                    assert answer.status == 200, answer
                    tags[key] = value
            case ("untag", key):
                answer = api.ask(
                    "POST",
                    "experiments/delete-experiment-tag",
                    experiment_id=experiment_id,
                    key=key,
                )
                assert answer.status == (404 if tags.pop(key, None) is None else 200), answer
    experiment = api.get("experiments/get", experiment_id=experiment_id)["experiment"]
    assert {tag["key"]: tag["value"] for tag in experiment.get("tags", ())} == tags
    placed_once(shared_store, experiment_id)


def _batch(api: Api, run_id: str, count: int, first: int = 0) -> None:
    metrics = [
        {"key": f"m{n}", "value": n + 0.5, "timestamp": n, "step": n}
        for n in range(first, first + count)
    ]
    api.post("runs/log-batch", run_id=run_id, metrics=metrics)


@pytest.mark.parametrize("inline", [INLINE, 300_000])
def test_whole_maps_equal_single_keys(
    store: Store, monkeypatch: pytest.MonkeyPatch, inline: int
) -> None:
    """1,000 keys in one batch are more than an expression holds."""
    monkeypatch.setattr(document, "INLINE_BYTES", inline)
    api = store.api
    at_once, in_parts = api.new_run(), api.new_run()
    _batch(api, at_once, 1000)
    for first in range(0, 1000, 50):
        _batch(api, in_parts, 50, first)
    data = api.data(at_once)
    assert data == api.data(in_parts)
    assert len(data["metrics"]) == 1000
    placed_once(store, "0", at_once)
    placed_once(store, "0", in_parts)


def _forms(store: Store, run_id: str) -> dict[str, str]:
    """DynamoDB's types of the maps that a run's item has."""
    (item,) = (
        candidate for candidate in store.items_of("0", run_id) if candidate["type"]["S"] == "run"
    )
    return {name: next(iter(item[name])) for name in ("metrics", "params", "tags") if name in item}


def test_maps_are_texts_while_one_writes(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(document, "INLINE_BYTES", 300_000)
    api = store.api
    run_id = api.new_run()
    api.post("runs/log-batch", run_id=run_id, params=pairs({"a": "1"}))
    stale = runs.load(run_id, "default")
    api.post("runs/log-parameter", run_id=run_id, key="b", value="2")
    assert _forms(store, run_id) == {"params": "S", "tags": "S"}

    run_writes.write(stale, lambda _: ({"params": {"c": "3"}}, ()))
    assert _forms(store, run_id) == {"params": "M", "tags": "S"}
    api.post("runs/log-parameter", run_id=run_id, key="d", value="4")
    api.post("runs/set-tag", run_id=run_id, key="long", value="t" * TEXT)
    assert _forms(store, run_id) == {"params": "M", "tags": "M"}

    for status in ENDED:
        api.post("runs/update", run_id=run_id, status=status)
        assert _forms(store, run_id) == {"params": "S", "tags": "S"}
    (read,) = (item for item in store.items_of("0", run_id) if item["type"]["S"] == "run")
    assert Run.of(read).params == {"a": "1", "b": "2", "c": "3", "d": "4"}
    assert api.data(run_id)["tags"]["long"] == "t" * TEXT


def test_the_end_of_a_run_waits_for_no_other_writer(store: Store) -> None:
    """It becomes texts only if nobody came between; the status is written all the same."""
    api = store.api
    run_id = api.new_run()
    first, second = (runs.load(run_id, "default") for _ in range(2))
    run_writes.write(first, lambda _: ({"params": {"0": "x"}}, ()))
    run_writes.write(second, lambda _: ({"params": {"1": "x"}}, ()))
    before = runs.load(run_id, "default")
    api.post("runs/log-parameter", run_id=run_id, key="2", value="x")
    run_writes.write(before, lambda _: ({}, ()), [(Run.status, "FINISHED")])
    assert _forms(store, run_id)["params"] == "M"
    assert api.run(run_id)["info"]["status"] == "FINISHED"
    assert api.data(run_id)["params"] == dict.fromkeys("012", "x")


def test_a_key_is_written_whatever_its_map_has_become(store: Store) -> None:
    """What was a map when it was read may be one text by now."""
    api = store.api
    run_id = api.new_run()
    first, second = (runs.load(run_id, "default") for _ in range(2))
    for number, read in enumerate((first, second)):
        run_writes.write(read, lambda _, key=f"{number}": ({"params": {key: "x"}}, ()))  # type: ignore[misc]
    stale = runs.load(run_id, "default")
    assert _forms(store, run_id)["params"] == "M"
    api.post("runs/update", run_id=run_id, status="FINISHED")
    assert _forms(store, run_id)["params"] == "S"
    run_writes.write(stale, lambda _: ({"params": {"2": "x"}}, ()))
    assert api.data(run_id)["params"] == dict.fromkeys("012", "x")
