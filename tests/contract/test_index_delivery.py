"""However the stream delivers, the indexes follow from their sources and may be relied upon."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexer.verification import rebuild
from mlcore.repos import document
from tests.contract.api import Api, pairs
from tests.contract.conftest import Store, examples
from tests.contract.index_state import (
    deliver,
    marked,
    marked_or_ranked,
    ranks_found,
    ranks_wanted,
    tiny_ranks,
    with_ranked_run,
)
from tests.contract.streams import Record, Stream, following

KEYS = ["a", "b/c d", "e:.-"]
VALUES = [0, 1, 2.5, -1, "NaN", "Infinity", "-Infinity", 1e300]

_names = itertools.count()


@pytest.fixture(scope="module")
def stream(shared_store: Store) -> Iterator[Stream]:
    with following(shared_store) as stream:
        yield stream


POINT = st.fixed_dictionaries(
    {
        "key": st.sampled_from(KEYS[:2]),
        "value": st.sampled_from(VALUES),
        "timestamp": st.integers(0, 3),
        "step": st.integers(0, 9),
    }
)
DELIVERY = st.tuples(
    st.lists(st.integers(0, 30), min_size=1, max_size=12), st.one_of(st.none(), st.integers(0, 8))
)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("batch"), st.integers(0, 1), st.lists(POINT, min_size=1), st.just({})),
        st.tuples(
            st.just("batch"),
            st.integers(0, 1),
            st.lists(POINT, max_size=4),
            st.dictionaries(st.sampled_from(KEYS), st.sampled_from([1, 300]), max_size=2),
        ),
        st.tuples(st.just("follow")),
        st.tuples(st.just("tag"), st.integers(0, 1), st.sampled_from(KEYS), st.integers(0, 400)),
        st.tuples(st.just("status"), st.integers(0, 1), st.sampled_from(["FINISHED", "RUNNING"])),
        st.tuples(st.just("stage"), st.integers(0, 1), st.sampled_from(["delete", "restore"])),
        st.tuples(st.just("inputs"), st.integers(0, 1), st.integers(0, 2)),
        st.tuples(st.just("rename"), st.integers(0, 3)),
        st.tuples(st.just("deliver"), DELIVERY),
        st.tuples(st.just("replay"), DELIVERY),
        st.tuples(st.just("reindex")),
    ),
    min_size=8,
    max_size=20,
)


@pytest.mark.parametrize("inline_bytes", [300_000, 500])
@examples(12)
@given(steps=STEPS, tiny=st.booleans())
def test_any_delivery_leads_to_the_same_index(
    shared_store: Store, stream: Stream, inline_bytes: int, steps: list[tuple[Any, ...]], tiny: bool
) -> None:
    """Records out of order between items, twice, late, with failing calls, beside rebuilds."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(document, "INLINE_BYTES", inline_bytes)
        tiny_ranks(patch, tiny=tiny)
        _play(shared_store, stream, steps)


def _play(store: Store, stream: Stream, steps: list[tuple[Any, ...]]) -> None:
    api = store.api
    stream.fresh()
    name = f"ranked {next(_names)}"
    experiment_id = api.new_experiment(name)
    with_ranked_run(api, experiment_id, stream, *KEYS[:2])
    runs = [api.new_run(experiment_id) for _ in range(2)]
    waiting: list[Record] = []
    handled: list[Record] = []
    for step in steps:
        match step:
            case ("batch", run, points, params):
                texts = pairs({key: "p" * size for key, size in params.items()})
                api.ask("POST", "runs/log-batch", run_id=runs[run], metrics=points, params=texts)
            case ("status" | "stage", run, what):
                ask = "update" if step[0] == "status" else what
                api.ask("POST", f"runs/{ask}", run_id=runs[run], status=what)
            case ("tag", run, key, size):
                api.ask("POST", "runs/set-tag", run_id=runs[run], key=key, value="v" * size)
            case ("inputs", run, number):
                dataset = {"name": f"d#{number}", "digest": "#x", "source_type": "s", "source": "u"}
                api.ask(
                    "POST", "runs/log-inputs", run_id=runs[run], datasets=[{"dataset": dataset}]
                )
            case ("rename", number):
                api.post(
                    "experiments/update", experiment_id=experiment_id, new_name=f"{name}.{number}"
                )
            case ("deliver", (order, failing_call)):
                waiting += stream.fresh()
                if waiting:
                    batch = [waiting[n % len(waiting)] for n in order]
                    done = batch[: deliver(batch, failing_call)]
                    handled += done
                    waiting = [record for record in waiting if record not in done]
                    marked_or_ranked(store, api, runs)
            case ("follow",):
                end(api, runs)
                waiting += stream.fresh()
                assert deliver(waiting) == len(waiting)
                handled, waiting = handled + waiting, []
                assert ranks_found(store, runs) == ranks_wanted(api, runs)
            case ("replay", (order, failing_call)):
                if handled:
                    deliver([handled[n % len(handled)] for n in order], failing_call)
            case ("reindex",):
                rebuild.reindex(experiment_id)
                marked_or_ranked(store, api, runs)
    end(api, runs)
    waiting += stream.fresh()
    assert deliver(waiting) == len(waiting)
    assert ranks_found(store, runs) == ranks_wanted(api, runs)
    report = rebuild.verify(experiment_id, patience=0)
    assert (report.findings, report.batches, report.pending) == ([], 0, 0)


def end(api: Api, runs: list[str]) -> None:
    """Of runs that are there or deleted."""
    for run_id in runs:
        api.ask("POST", "runs/update", run_id=run_id, status="FINISHED")


@pytest.mark.parametrize("tiny", [False, True])
def test_a_batch_resumes_where_it_failed(
    store: Store, monkeypatch: pytest.MonkeyPatch, tiny: bool
) -> None:
    tiny_ranks(monkeypatch, tiny=tiny)
    api = store.api
    with following(store) as stream:
        runs = [api.new_run() for _ in range(2)]
        for n in range(4):
            for run_id in runs:
                metrics = [{"key": k, "value": n, "timestamp": n, "step": n} for k in "xy"]
                api.post(
                    "runs/log-batch", run_id=run_id, metrics=metrics, params=pairs({f"p{n}": "v"})
                )
        end(api, runs)
        left = stream.fresh()
        call, rounds = 0, 0
        while left:
            done = deliver(left, call)
            left = left[done:]
            call = 0 if done else call + 1
            rounds += 1
            marked_or_ranked(store, api, runs)
        assert rounds > 3
        assert ranks_found(store, runs) == ranks_wanted(api, runs)
        assert marked(store) == set()
