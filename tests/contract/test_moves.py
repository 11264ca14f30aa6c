"""Runs are moved between experiments: every read stays equal, in exactly one experiment, whoever
writes meanwhile, and whenever the process dies."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexer.history import history_packing
from indexer.verification import rebuild
from mlcore.db.table import table
from mlcore.repos import document
from mlcore.repos.runs.core import run_cache, runs
from mlcore.repos.runs.search import run_search
from tests.contract.conftest import Store, examples, forget
from tests.contract.logged_runs import killed_at
from tests.contract.run_moves import (
    METRICS,
    experiments,
    files,
    follow,
    found_in,
    move,
    removed,
    seen,
    stream,
)
from tests.contract.streams import Stream

__all__ = ["files", "removed", "stream"]

TEXTS = st.dictionaries(st.sampled_from(["a", "b/c", "d.e", "f g"]), st.text(max_size=20))
POINTS = st.lists(
    st.fixed_dictionaries(
        {
            "key": st.sampled_from(METRICS),
            "value": st.sampled_from([2, 1.5, -1, "NaN", "Infinity"]),
            "timestamp": st.integers(0, 3),
            "step": st.integers(-1, 6),
        }
    ),
    min_size=1,
    max_size=8,
)


@examples(12)
@given(
    params=TEXTS,
    tags=TEXTS,
    batches=st.lists(POINTS, max_size=5),
    datasets=st.lists(st.sampled_from("xyz"), unique=True, max_size=2),
    file_points=st.sampled_from([3, 2000]),
    inline_bytes=st.sampled_from([60, 300_000]),
    ended=st.booleans(),
    when=st.sets(st.sampled_from(["before", "after", "between"])),
    later=POINTS,
)
def test_every_read_stays_equal(
    shared_store: Store,
    stream: Stream,
    params: dict[str, str],
    tags: dict[str, str],
    batches: list[list[dict[str, Any]]],
    datasets: list[str],
    file_points: int,
    inline_bytes: int,
    ended: bool,
    when: set[str],
    later: list[dict[str, Any]],
) -> None:
    """Wherever the history is: in batches, packs, files; and values in items of their own."""
    store = shared_store
    stream.fresh()
    source, target = experiments(store)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(history_packing, "FILE_POINTS", file_points)
        patch.setattr(history_packing, "FEW_KEYS", 0)
        patch.setattr(document, "INLINE_BYTES", inline_bytes)
        run_id = store.api.new_run(source)
        store.api.post(
            "runs/log-batch",
            run_id=run_id,
            params=[{"key": key, "value": value} for key, value in params.items()],
            tags=[{"key": key, "value": value} for key, value in tags.items()],
        )
        for points in batches:
            store.api.post("runs/log-batch", run_id=run_id, metrics=points)
        if datasets:
            store.api.post(
                "runs/log-inputs",
                run_id=run_id,
                datasets=[
                    {
                        "dataset": {
                            "name": name,
                            "digest": "1",
                            "source_type": "local",
                            "source": name * 10,
                        },
                        "tags": [{"key": "mlflow.data.context", "value": "train"}],
                    }
                    for name in datasets
                ],
            )
        if ended:
            store.api.end(run_id)
        if "before" in when:
            follow(stream)
        before = seen(store, run_id)
        for here, there in ((source, target), (target, source), (source, target)):
            assert move(there, run_id)[:2] == (200, {})
            for _ in range(2):
                assert seen(store, run_id) == before
                assert store.api.run(run_id)["info"]["experiment_id"] == there
                assert found_in(store, there) == {run_id}
                assert found_in(store, here) == set()
                if "between" not in when:
                    break
                forget()
                follow(stream)
            assert move(there, run_id).status == 200
        if "after" in when:
            follow(stream)
        assert seen(store, run_id) == before
        store.api.post("runs/log-batch", run_id=run_id, metrics=later)
        store.api.end(run_id)
        after = seen(store, run_id)
        follow(stream)
        assert seen(store, run_id) == after
        assert store.items_of(source, run_id) == []
        for experiment in (source, target):
            assert rebuild.verify(experiment, patience=0).findings == []


SEARCHES: list[dict[str, Any]] = [
    {"filter": "metrics.loss > 0"},
    {"filter": "params.p = 'v'"},
    {"filter": "tags.t = 'v'"},
    {"filter": "datasets.name = 'x'"},
    {"filter": "status = 'FINISHED'"},
    {"order_by": ["metrics.loss DESC"]},
    {"order_by": ["start_time ASC"]},
    {"filter": "metrics.loss > 0", "order_by": ["metrics.loss ASC"]},
]


@pytest.mark.parametrize("followed", [(), ("before",), ("after",), ("before", "after")])
def test_searches_find_a_run_in_its_experiment_only(
    shared_store: Store, stream: Stream, monkeypatch: pytest.MonkeyPatch, followed: tuple[str, ...]
) -> None:
    """With indexes that the indexer has written, and with none."""
    store = shared_store
    stream.fresh()
    monkeypatch.setattr(run_search, "SMALL_RUNS", 0)
    source, target = experiments(store)
    run_ids = [store.api.new_run(source) for _ in range(3)]
    dataset = {"name": "x", "digest": "1", "source_type": "local", "source": "x"}
    for number, run_id in enumerate(run_ids):
        store.api.post(
            "runs/log-batch",
            run_id=run_id,
            metrics=[{"key": "loss", "value": 1 + number, "timestamp": 1, "step": 1}],
            params=[{"key": "p", "value": "v"}],
            tags=[{"key": "t", "value": "v"}],
        )
        store.api.post("runs/log-inputs", run_id=run_id, datasets=[{"dataset": dataset}])
        store.api.end(run_id)
    if "before" in followed:
        follow(stream)
    moved, *staying = run_ids
    assert move(target, moved).status == 200
    if "after" in followed:
        follow(stream)
    for search in SEARCHES:
        assert found_in(store, target, **search) == {moved}, search
        assert found_in(store, source, **search) == set(staying), search
        both = store.api.post("runs/search", experiment_ids=[source, target], **search)["runs"]
        assert sorted(run["info"]["run_id"] for run in both) == sorted(run_ids), search


@examples(25)
@given(request=st.integers(0, 16), packed=st.booleans(), afterwards=st.sampled_from("rfl"))
def test_a_killed_move_leaves_the_run_in_one_experiment(
    shared_store: Store, stream: Stream, request: int, packed: bool, afterwards: str
) -> None:
    """And is completed by its repetition (r); the indexer (f) and later requests (l) find either
    the run as it was, or the moved one."""
    store = shared_store
    stream.fresh()
    source, target = experiments(store)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(history_packing, "FILE_POINTS", 3)
        patch.setattr(history_packing, "FEW_KEYS", 0)
        run_id = store.api.new_run(source)
        for step in range(4):
            points = [{"key": key, "value": step, "timestamp": 1, "step": step} for key in METRICS]
            store.api.post("runs/log-batch", run_id=run_id, metrics=points)
        if packed:
            store.api.end(run_id)
            follow(stream)
        before = seen(store, run_id)
        with killed_at(request, []):
            move(target, run_id)
        in_source, in_target = found_in(store, source), found_in(store, target)
        assert sorted([*in_source, *in_target]) == [run_id]
        assert seen(store, run_id) == before
        if afterwards == "f":
            follow(stream)
        elif afterwards == "l":
            point = {"key": "loss", "value": 1, "timestamp": 9, "step": 9}
            store.api.post("runs/log-batch", run_id=run_id, metrics=[point])
            before = seen(store, run_id)
            assert (9, 9, 1.0) in before["histories"]["loss"]
        assert seen(store, run_id) == before
        assert move(target, run_id).status == 200
        follow(stream)
        assert seen(store, run_id) == before
        assert (found_in(store, source), found_in(store, target)) == (set(), {run_id})
        assert store.items_of(source, run_id) == []


WRITES: dict[str, dict[str, Any]] = {
    "runs/log-metric": {"key": "loss", "value": 3, "timestamp": 7, "step": 7},
    "runs/log-parameter": {"key": "new", "value": "1"},
    "runs/set-tag": {"key": "old", "value": "new"},
    "runs/delete-tag": {"key": "old"},
    "runs/update": {"status": "FINISHED", "end_time": 5},
    "runs/delete": {},
}
OLDER = {"metrics": [{"key": "loss", "value": 8, "timestamp": 0, "step": 0}]}


@pytest.mark.parametrize("path", [*WRITES, "runs/log-batch"])
@pytest.mark.parametrize("knows", ["its place", "the whole run"])
def test_a_process_that_knew_the_run_in_its_old_place_writes_to_the_new_one(
    shared_store: Store, stream: Stream, path: str, knows: str
) -> None:
    store = shared_store
    source, target = experiments(store)
    fields = WRITES.get(path, OLDER)

    def prepared() -> str:
        run_id = store.api.new_run(source, tags=[{"key": "old", "value": "1"}])
        point = {"key": "loss", "value": 1, "timestamp": 1, "step": 1}
        store.api.post("runs/log-batch", run_id=run_id, metrics=[point])
        return run_id

    expected, run_id = prepared(), prepared()
    cached = run_cache._known.get(run_id)
    assert cached is not None
    assert move(target, run_id).status == 200
    forget()
    runs.remember(run_id, source)
    if knows == "the whole run":
        run_cache._known.put(run_id, cached)
    store.api.post(path, run_id=run_id, **fields)
    store.api.post(path, run_id=expected, **fields)
    for _ in range(2):
        forget()
        moved, unmoved = (seen(store, each) for each in (run_id, expected))
        assert store.api.run(run_id)["info"]["experiment_id"] == target
        assert moved["histories"] == unmoved["histories"]
        assert moved["run"]["info"]["lifecycle_stage"] == unmoved["run"]["info"]["lifecycle_stage"]
        assert moved["run"]["info"]["status"] == unmoved["run"]["info"]["status"]
        for part in ("metrics", "params"):
            assert moved["run"]["data"].get(part) == unmoved["run"]["data"].get(part)
        follow(stream)


@pytest.mark.parametrize("reader", ["runs/get", "metrics/get-history"])
def test_a_process_that_knew_the_old_place_reads_the_new_one(
    shared_store: Store, reader: str
) -> None:
    store = shared_store
    source, target = experiments(store)
    run_id = store.api.new_run(source)
    point = {"key": "loss", "value": 1, "timestamp": 1, "step": 1}
    store.api.post("runs/log-batch", run_id=run_id, metrics=[point])
    before = store.api.get(reader, run_id=run_id, metric_key="loss")
    assert move(target, run_id).status == 200
    runs.remember(run_id, source)
    after = store.api.get(reader, run_id=run_id, metric_key="loss")
    if reader == "runs/get":
        after["run"]["info"]["experiment_id"] = source
    assert after == before


@pytest.mark.parametrize("path", sorted({*WRITES, "runs/log-batch"} - {"runs/delete"}))
def test_a_write_during_the_move_is_not_lost(shared_store: Store, path: str) -> None:
    """Before each request of the move, another process writes to the run."""
    store = shared_store
    fields = WRITES.get(path, OLDER)
    original = table._call
    for at in range(4, 30):
        source, target = experiments(store)
        run_id, expected = (
            store.api.new_run(source, tags=[{"key": "old", "value": "1"}]) for _ in range(2)
        )
        for each in (run_id, expected):
            point = {"key": "loss", "value": 1, "timestamp": 1, "step": 1}
            store.api.post("runs/log-batch", run_id=each, metrics=[point])
        numbers = itertools.count()

        def call(
            operation: str,
            at: int = at,
            run_id: str = run_id,
            numbers: Any = numbers,
            **more: Any,
        ) -> Any:
            if next(numbers) == at:
                with pytest.MonkeyPatch.context() as patch:
                    patch.setattr(table, "_call", original)
                    store.api.post(path, run_id=run_id, **fields)
            return original(operation, **more)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(table, "_call", call)
            assert move(target, run_id).status == 200
        if next(numbers) <= at:
            break
        store.api.post(path, run_id=expected, **fields)
        moved, unmoved = seen(store, run_id), seen(store, expected)
        assert moved["histories"] == unmoved["histories"], at
        assert moved["run"]["info"]["status"] == unmoved["run"]["info"]["status"]
        for part in ("metrics", "params"):
            assert moved["run"]["data"].get(part) == unmoved["run"]["data"].get(part)
    assert at > 6
