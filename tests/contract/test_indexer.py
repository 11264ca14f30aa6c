"""Whatever the stream does, the indexer ends with the items that the sources ask for."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlcore.db.attribute_types import texts_in
from mlcore.repos import document
from tests.contract.api import Api, pairs
from tests.contract.conftest import Store, examples
from tests.contract.index_state import deliver
from tests.contract.streams import Record, Stream, following

KEYS = ["a", "b/c d", "e#é:.-"]
METRIC_KEYS = ["a", "b/c d", "é:.-"]
KINDS = {
    "run_metric": "metrics",
    "run_param": "params",
    "run_tag": "tags",
    "run_input": "inputs",
    "run_logged_model": "models",
    "experiment_tag": "tags",
}

_names = itertools.count()


@pytest.fixture(scope="module")
def stream(shared_store: Store) -> Iterator[Stream]:
    with following(shared_store) as stream:
        yield stream


def child_items_mirror_sources(store: Store, experiment_id: str, *run_ids: str) -> None:
    """The child items without values of their own are exactly the keys of the maps but metrics."""
    wanted: dict[tuple[str, str, str], str] = {}
    results: dict[tuple[str, str, str], str] = {}
    owned = [store.items_of(experiment_id, run_id) for run_id in ("", *run_ids)]
    for item in itertools.chain(*owned):
        kind = item["type"]["S"]
        if kind in {"run", "experiment"}:
            at = item["run_id" if kind == "run" else "experiment_id"]["S"]
            for name in ("params", "tags", "inputs", "model_inputs", "model_outputs"):
                shown = {"model_inputs": "models", "model_outputs": "models"}.get(name, name)
                for key, text in texts_in(item.get(name, {"M": {}})).items():
                    wanted[at, shown, key] = "" if shown == "inputs" else text
        elif kind in KINDS and "outside" not in item:
            at = item["SK"]["S"].split("#")[1] if kind.startswith("run") else item["PK"]["S"][4:]
            shown = KINDS[kind]
            results[at, shown, item["key"]["S"]] = "" if shown == "inputs" else item["value"]["S"]
    assert results == wanted


STEPS = st.lists(
    st.one_of(
        st.tuples(
            st.just("batch"),
            st.integers(0, 1),
            st.lists(
                st.tuples(st.sampled_from(METRIC_KEYS), st.integers(0, 3), st.integers(0, 3)),
                max_size=4,
            ),
            st.dictionaries(st.sampled_from(METRIC_KEYS), st.integers(0, 1), max_size=2),
        ),
        st.tuples(
            st.just("tag"), st.integers(0, 2), st.sampled_from(METRIC_KEYS), st.integers(0, 400)
        ),
        st.tuples(st.just("untag"), st.integers(0, 2), st.sampled_from(METRIC_KEYS)),
        st.tuples(st.just("inputs"), st.integers(0, 1), st.integers(0, 2)),
        st.tuples(
            st.just("deliver"),
            st.lists(st.integers(0, 30), min_size=1, max_size=12),
            st.one_of(st.none(), st.integers(0, 6)),
        ),
        st.tuples(
            st.just("replay"),
            st.lists(st.integers(0, 60), min_size=1, max_size=6),
            st.one_of(st.none(), st.integers(0, 6)),
        ),
    ),
    min_size=2,
    max_size=14,
)


@pytest.mark.parametrize("inline_bytes", [300_000, 700])
@examples(20)
@given(steps=STEPS)
def test_any_delivery_leads_to_the_same_items(
    shared_store: Store, stream: Stream, inline_bytes: int, steps: list[tuple[Any, ...]]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(document, "INLINE_BYTES", inline_bytes)
        _play(shared_store, stream, steps)


def _play(store: Store, stream: Stream, steps: list[tuple[Any, ...]]) -> None:
    api = store.api
    stream.fresh()
    experiment_id = api.new_experiment(f"indexed {next(_names)}")
    runs = [api.new_run(experiment_id) for _ in range(2)]
    history: dict[tuple[str, str], set[tuple[int, int, float]]] = {}
    pending: list[Record] = []
    handled: list[Record] = []

    def check_history() -> None:
        for (run_id, key), points in history.items():
            assert api.history(run_id, key) == sorted(points)

    for step in steps:
        match step:
            case ("deliver", order, failing):
                pending += stream.fresh()
                if pending:
                    batch = [pending[n % len(pending)] for n in order]
                    done = batch[: deliver(batch, failing)]
                    numbers = {record["dynamodb"]["SequenceNumber"] for record in done}
                    pending = [r for r in pending if r["dynamodb"]["SequenceNumber"] not in numbers]
                    handled += done
            case ("replay", order, failing):
                if handled:
                    deliver([handled[n % len(handled)] for n in order], failing)
            case ("batch", run, points, params):
                if _log(api, runs[run], points, params):
                    for key, timestamp, n in points:
                        history.setdefault((runs[run], key), set()).add((timestamp, n, n + 0.5))
            case (_, 2, *_):
                _change_experiment(api, experiment_id, step)
            case _:
                _change_run(api, runs[step[1]], step)
        check_history()
    for run_id in runs:
        api.end(run_id)
    pending += stream.fresh()
    assert deliver(pending) == len(pending)
    # What the indexer wrote comes back in the stream where the event source does not filter it.
    assert deliver(own := stream.fresh()) == len(own)
    check_history()
    child_items_mirror_sources(store, experiment_id, *runs)


def _log(api: Api, run_id: str, points: list[tuple[str, int, int]], params: dict[str, int]) -> bool:
    """Whether the batch was taken: a param that changes forbids it."""
    answer = api.ask(
        "POST",
        "runs/log-batch",
        run_id=run_id,
        metrics=[
            {"key": key, "value": n + 0.5, "timestamp": timestamp, "step": n}
            for key, timestamp, n in points
        ],
        params=pairs({key: "p" * (1 + 300 * n) for key, n in params.items()}),
    )
    assert answer.status in {200, 400}
    return answer.status == 200


def _change_experiment(api: Api, experiment_id: str, step: tuple[Any, ...]) -> None:
    about = {"experiment_id": experiment_id, "key": step[2]}
    if step[0] == "tag":
        api.post("experiments/set-experiment-tag", **about, value="v" * step[3])
    else:
        api.ask("POST", "experiments/delete-experiment-tag", **about)


def _change_run(api: Api, run_id: str, step: tuple[Any, ...]) -> None:
    match step:
        case ("tag", _, key, size):
            api.post("runs/set-tag", run_id=run_id, key=key, value="v" * size)
        case ("untag", _, key):
            api.ask("POST", "runs/delete-tag", run_id=run_id, key=key)
        case (_, _, number):
            dataset = {
                **{"name": f"d/{number}", "digest": "#x"},
                **{"source_type": "s", "source": "u"},
            }
            api.post(
                "runs/log-inputs",
                run_id=run_id,
                datasets=[{"dataset": dataset}],
                models=[{"model_id": f"m{number}"}],
            )
            api.post("runs/outputs", run_id=run_id, models=[{"model_id": f"o{number}"}])


def test_a_batch_resumes_where_it_failed(store: Store) -> None:
    """The indexer fails at each call in turn; from the reported record on all is done again."""
    api = store.api
    with following(store) as stream:
        run_id = api.new_run()
        for n in range(4):
            metrics = [{"key": key, "value": n, "timestamp": n, "step": n} for key in ("x", "y")]
            api.post("runs/log-batch", run_id=run_id, metrics=metrics, tags=pairs({f"t{n}": "v"}))
            api.post("experiments/set-experiment-tag", experiment_id="0", key=f"k{n}", value="v")
        api.post("runs/delete-tag", run_id=run_id, key="t0")
        api.end(run_id)
        records = stream.fresh()
        rounds, failing = 0, 0
        left = records
        while left:
            done = deliver(left, failing)
            left = left[done:]
            failing = 0 if done else failing + 1
            rounds += 1
        assert rounds > 3
        child_items_mirror_sources(store, "0", run_id)
        assert [p[0] for p in api.history(run_id, "x")] == [0, 1, 2, 3]


def test_history_of_ten_thousand_points_before_and_after(store: Store) -> None:
    api = store.api
    with following(store) as stream:
        run_id = api.new_run()
        for batch in range(10):
            metrics = [
                {
                    "key": f"m{n % 10}",
                    "value": n / 7,
                    "timestamp": batch,
                    "step": batch * 100 + n // 10,
                }
                for n in range(1000)
            ]
            api.post("runs/log-batch", run_id=run_id, metrics=metrics)
        before = [api.history(run_id, f"m{n}") for n in range(10)]
        assert [len(points) for points in before] == [1000] * 10
        assert deliver(records := stream.fresh()) == len(records)
        assert [api.history(run_id, f"m{n}") for n in range(10)] == before
        kinds = [item["type"]["S"] for item in store.items()]
        assert kinds.count("run_metric_batch") == 10
        api.post("runs/update", run_id=run_id, status="FINISHED")
        assert deliver(records := stream.fresh()) == len(records)
        assert [api.history(run_id, f"m{n}") for n in range(10)] == before
        kinds = [item["type"]["S"] for item in store.items()]
        assert "run_metric_batch" not in kinds
        assert kinds.count("run_metric_history") == 10


def test_records_of_other_items_are_passed_over() -> None:
    """Also those of items that a later version may write."""
    record = {
        "dynamodb": {
            "SequenceNumber": "1",
            "Keys": {"PK": {"S": "X"}, "SK": {"S": "Y"}},
            "NewImage": {"type": {"S": json.dumps("unknown")}},
        }
    }
    assert deliver([record, {"dynamodb": {"SequenceNumber": "2", "Keys": {}}}]) == 2
