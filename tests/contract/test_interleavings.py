"""Two writers and a reader of one item whose DynamoDB calls meet in every order."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlcore.repos import document
from tests.contract.api import Api, pairs
from tests.contract.conftest import Store, examples
from tests.contract.document_state import placed_once
from tests.contract.interleaved_calls import interleaved

_names = itertools.count()

SEEDED = {"s0": "seed", "s1": "seed" * 20}
KEYS = st.sampled_from(["s0", "s1", "k0", "k1", "k2"])
SIZES = st.sampled_from([3, 60, 250])
Acts = list[tuple[Any, ...]]
Seen = list[tuple[tuple[Any, ...], int]]

ACTS = st.lists(
    st.one_of(
        st.tuples(st.just("tag"), KEYS, SIZES),
        st.tuples(st.just("untag"), st.sampled_from(["k0", "k1", "k2"])),
        st.tuples(st.just("tags"), st.dictionaries(KEYS, SIZES, min_size=1, max_size=4)),
        st.tuples(st.just("params"), st.dictionaries(KEYS, SIZES, min_size=1, max_size=3)),
        st.tuples(st.just("metrics"), st.dictionaries(KEYS, st.integers(0, 5), min_size=1)),
    ),
    min_size=1,
    max_size=4,
)
ORDER = st.lists(st.integers(0, 2), max_size=40)


@examples(40)
@given(left=ACTS, right=ACTS, order=ORDER, inline_bytes=st.sampled_from([150, 400, 900]))
def test_writers_of_a_run(
    shared_store: Store, left: Acts, right: Acts, order: list[int], inline_bytes: int
) -> None:
    api = shared_store.api
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(document, "INLINE_BYTES", inline_bytes)
        run_id = api.new_run(tags=pairs(SEEDED))

        def writer(name: str, acts: Acts) -> Callable[[], Seen]:
            return lambda: [(act, _act(api, run_id, name, act)) for act in acts]

        def reader() -> Seen:
            for _ in range(3):
                assert api.data(run_id)["tags"].keys() >= SEEDED.keys(), "a tag was out of sight"
            return []

        seen = interleaved(order, [writer("l", left), writer("r", right), reader])
    data = api.data(run_id)
    statuses = {status for acts in seen for _, status in acts}
    assert statuses <= {200, 400, 404}
    _check_tags(data["tags"], seen)
    _check_params(data["params"], seen)
    metrics: dict[str, set[int]] = {}
    for name, acts in zip("lr", seen[:2], strict=True):
        for act, status in acts:
            if act[0] == "metrics":
                assert status == 200
                for key, step in act[1].items():
                    metrics.setdefault(key, set()).add(2 * step + (name == "r"))
    assert {key: point[2] for key, point in data["metrics"].items()} == {
        key: max(steps) for key, steps in metrics.items()
    }
    for key, steps in metrics.items():
        assert [point[1] for point in api.history(run_id, key)] == sorted(steps)
    placed_once(shared_store, "0", run_id)


def _act(api: Api, run_id: str, name: str, act: tuple[Any, ...]) -> int:
    match act:
        case ("tag", key, size):
            path, fields = "runs/set-tag", {"key": key, "value": name * size}
        case ("untag", key):
            path, fields = "runs/delete-tag", {"key": key}
        case (("tags" | "params") as kind, values):
            texts = {key: name * size for key, size in values.items()}
            path, fields = "runs/log-batch", {kind: pairs(texts)}
        case (_, steps):
            points = [
                {"key": key, "value": 1, "timestamp": 1, "step": 2 * step + (name == "r")}
                for key, step in steps.items()
            ]
            path, fields = "runs/log-batch", {"metrics": points}
    return api.ask("POST", path, run_id=run_id, **fields).status


def _check_tags(tags: dict[str, str], seen: list[Seen]) -> None:
    """Each tag is as one of the writers left it."""
    left_as: dict[str, dict[str, str | None]] = {}
    for name, acts in zip("lr", seen[:2], strict=True):
        for act, status in acts:
            match act:
                case ("tag", key, size):
                    assert status == 200
                    left_as.setdefault(key, {})[name] = name * size
                case ("untag", key):
                    assert status in {200, 404}
                    left_as.setdefault(key, {})[name] = None
                case ("tags", values):
                    assert status == 200
                    for key, size in values.items():
                        left_as.setdefault(key, {})[name] = name * size
    for key, by_writer in left_as.items():
        assert tags.get(key) in by_writer.values(), key
    untouched = {key: value for key, value in SEEDED.items() if key not in left_as}
    assert {key: value for key, value in tags.items() if key not in left_as} == untouched


def _check_params(params: dict[str, str], seen: list[Seen]) -> None:
    """What was accepted is there, and nothing that was not sent."""
    sent: dict[str, set[str]] = {}
    for name, acts in zip("lr", seen[:2], strict=True):
        for act, status in acts:
            if act[0] == "params":
                for key, size in act[1].items():
                    sent.setdefault(key, set()).add(name * size)
                    if status == 200:
                        assert params[key] == name * size
    for key, value in params.items():
        assert value in sent[key]


@examples(25)
@given(
    left=st.lists(st.tuples(KEYS, st.sampled_from([None, 3, 250])), min_size=1, max_size=4),
    right=st.lists(st.tuples(KEYS, st.sampled_from([None, 3, 250])), min_size=1, max_size=4),
    order=ORDER,
    inline_bytes=st.sampled_from([150, 400]),
)
def test_writers_of_an_experiment(
    shared_store: Store,
    left: list[tuple[str, int | None]],
    right: list[tuple[str, int | None]],
    order: list[int],
    inline_bytes: int,
) -> None:
    api = shared_store.api
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(document, "INLINE_BYTES", inline_bytes)
        experiment_id = api.new_experiment(f"interleaved {next(_names)}", tags=pairs(SEEDED))

        def writer(name: str, acts: list[tuple[str, int | None]]) -> Callable[[], Seen]:
            def write() -> Seen:
                answered: Seen = []
                for key, size in acts:
                    if size is None:
                        path, fields = "delete-experiment-tag", {"key": key}
                    else:
                        path, fields = "set-experiment-tag", {"key": key, "value": name * size}
                    answer = api.ask(
                        "POST", f"experiments/{path}", experiment_id=experiment_id, **fields
                    )
                    act = ("untag", key) if size is None else ("tag", key, size)
                    answered.append((act, answer.status))
                return answered

            return write

        seen = interleaved(order, [writer("l", left), writer("r", right)])
    tags = api.get("experiments/get", experiment_id=experiment_id)["experiment"].get("tags", ())
    _check_tags({tag["key"]: tag["value"] for tag in tags}, seen)
    placed_once(shared_store, experiment_id)
