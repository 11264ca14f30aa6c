"""Derived items follow from their sources alone: whatever the stream did, and after a repair."""

from __future__ import annotations

import contextlib
import itertools
import random
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import indexer.app
from indexer import rebuild, run_items
from indexer.index_items import INDEXES
from mlcore import errors
from mlcore.db import keys
from mlcore.db.table import Table
from mlcore.ids import now_ms
from mlcore.observability import logger
from mlcore.repos import document
from tests.contract.api import Api, pairs
from tests.contract.conftest import Store, examples
from tests.contract.streams import Record, Stream, following

KEYS = ["a", "b/c d", "e:.-"]
VALUES = [0, 1, 2.5, -1, "NaN", "Infinity", "-Infinity", 1e300]
DERIVED = {
    "experiment_tag",
    "experiment_name_rev",
    "run_metric",
    "run_param",
    "run_tag",
    "run_input",
    "run_logged_model",
    "rank_metric",
    "rank_param",
    "dataset_link",
}

_names = itertools.count()


class Broken(Exception):
    """What a chosen call of the table ends in."""


@pytest.fixture(scope="module")
def stream(shared_store: Store) -> Iterator[Stream]:
    with following(shared_store) as stream:
        yield stream


@contextlib.contextmanager
def failing(at: int | None) -> Iterator[None]:
    """The ``at``-th call of the table fails."""
    original = Table._call
    calls = itertools.count()

    def fail_once(self: Table, operation: str, **parameters: Any) -> dict[str, Any]:
        if next(calls) == at:
            raise Broken(operation)
        return original(self, operation, **parameters)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Table, "_call", fail_once)
        patch.setattr(logger, "exception", lambda *_args, **_more: None)
        yield


def deliver(records: list[Record], failing_call: int | None = None) -> int:
    """Gives a batch to the indexer; how many of its records from the first on it has handled."""
    with failing(failing_call):
        answer = indexer.app.handler({"Records": records}, None)
    for failure in answer["batchItemFailures"]:
        numbers = [record["dynamodb"]["SequenceNumber"] for record in records]
        return numbers.index(failure["itemIdentifier"])
    return len(records)


def ranks_wanted(api: Api, run_ids: list[str]) -> set[tuple[str, ...]]:
    """Told by the API, which reads no index."""
    wanted: set[tuple[str, ...]] = set()
    for run_id in run_ids:
        run = api.run(run_id)
        data = run["data"]
        for one in data.get("metrics", ()):
            wanted.add(("rank_metric", run_id, one["key"], str(float(one["value"]))))
        for one in data.get("params", ()):
            wanted.add(("rank_param", run_id, one["key"], one["value"]))
        for one in run.get("inputs", {}).get("dataset_inputs", ()):
            dataset = one["dataset"]
            wanted.add(("dataset_link", run_id, dataset["name"], dataset["digest"]))
    return wanted


def ranks_found(store: Store, run_ids: list[str]) -> set[tuple[str, ...]]:
    found: list[tuple[str, ...]] = []
    for item in store.items():
        kind = item["type"]["S"]
        if kind not in {"rank_metric", "rank_param", "dataset_link"}:
            continue
        if item["run_id"]["S"] in run_ids:
            names = ("name", "digest") if kind == "dataset_link" else ("key", "value")
            texts = [item[name]["S"] for name in names]
            if kind == "rank_metric":
                texts[1] = str(float(texts[1]))
            found.append((kind, item["run_id"]["S"], *texts))
    assert len(found) == len(set(found))
    return set(found)


def pending(store: Store, run_ids: list[str]) -> list[dict[str, Any]]:
    return [
        item
        for item in store.items()
        if item["type"]["S"] == "pending" and item["entity_id"]["S"] in run_ids
    ]


POINT = st.fixed_dictionaries(
    {
        "key": st.sampled_from(KEYS),
        "value": st.sampled_from(VALUES),
        "timestamp": st.integers(0, 3),
        "step": st.integers(0, 3),
    }
)
DELIVERY = st.tuples(
    st.lists(st.integers(0, 30), min_size=1, max_size=12), st.one_of(st.none(), st.integers(0, 8))
)
STEPS = st.lists(
    st.one_of(
        st.tuples(
            st.just("batch"),
            st.integers(0, 1),
            st.lists(POINT, max_size=4),
            st.dictionaries(st.sampled_from(KEYS), st.sampled_from([1, 300]), max_size=2),
        ),
        st.tuples(st.just("tag"), st.integers(0, 1), st.sampled_from(KEYS), st.integers(0, 400)),
        st.tuples(st.just("inputs"), st.integers(0, 1), st.integers(0, 2)),
        st.tuples(st.just("rename"), st.integers(0, 3)),
        st.tuples(st.just("deliver"), DELIVERY),
        st.tuples(st.just("replay"), DELIVERY),
        st.tuples(st.just("reindex")),
    ),
    min_size=2,
    max_size=14,
)


@pytest.mark.parametrize("inline_bytes", [300_000, 500])
@examples(20)
@given(steps=STEPS)
def test_any_delivery_leads_to_the_same_index(
    shared_store: Store, stream: Stream, inline_bytes: int, steps: list[tuple[Any, ...]]
) -> None:
    """Records out of order between items, twice, late, with failing calls, beside rebuilds."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(document, "INLINE_BYTES", inline_bytes)
        _play(shared_store, stream, steps)


def _play(store: Store, stream: Stream, steps: list[tuple[Any, ...]]) -> None:
    api = store.api
    stream.fresh()
    name = f"ranked {next(_names)}"
    experiment_id = api.new_experiment(name)
    runs = [api.new_run(experiment_id) for _ in range(2)]
    waiting: list[Record] = []
    handled: list[Record] = []
    for step in steps:
        match step:
            case ("batch", run, points, params):
                texts = pairs({key: "p" * size for key, size in params.items()})
                api.ask("POST", "runs/log-batch", run_id=runs[run], metrics=points, params=texts)
            case ("tag", run, key, size):
                api.post("runs/set-tag", run_id=runs[run], key=key, value="v" * size)
            case ("inputs", run, number):
                dataset = {"name": f"d#{number}", "digest": "#x", "source_type": "s", "source": "u"}
                api.post("runs/log-inputs", run_id=runs[run], datasets=[{"dataset": dataset}])
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
                    _marked_or_ranked(store, api, runs)
            case ("replay", (order, failing_call)):
                if handled:
                    deliver([handled[n % len(handled)] for n in order], failing_call)
            case ("reindex",):
                rebuild.reindex(experiment_id)
                _marked_or_ranked(store, api, runs)
    waiting += stream.fresh()
    assert deliver(waiting) == len(waiting)
    assert ranks_found(store, runs) == ranks_wanted(api, runs)
    assert {item["write_id"]["S"] for item in pending(store, runs)} <= {"overflow"}
    report = rebuild.verify(experiment_id, patience=0)
    assert (report.findings, report.batches, report.pending) == ([], 0, 0)


def _marked_or_ranked(store: Store, api: Api, runs: list[str]) -> None:
    """What a search relies on: a run without a marker has all its ranks, perhaps old ones too."""
    marked = {item["entity_id"]["S"] for item in pending(store, runs)}
    relied = [run_id for run_id in runs if run_id not in marked]
    missing = ranks_wanted(api, relied) - ranks_found(store, relied)
    assert not {entry for entry in missing if entry[0] != "dataset_link"}


def test_a_batch_resumes_where_it_failed(store: Store) -> None:
    api = store.api
    with following(store) as stream:
        runs = [api.new_run() for _ in range(2)]
        for n in range(4):
            for run_id in runs:
                metrics = [{"key": k, "value": n, "timestamp": n, "step": n} for k in "xy"]
                api.post(
                    "runs/log-batch", run_id=run_id, metrics=metrics, params=pairs({f"p{n}": "v"})
                )
        left = stream.fresh()
        call, rounds = 0, 0
        while left:
            done = deliver(left, call)
            left = left[done:]
            call = 0 if done else call + 1
            rounds += 1
            _marked_or_ranked(store, api, runs)
        assert rounds > 3
        assert ranks_found(store, runs) == ranks_wanted(api, runs)
        assert pending(store, runs) == []


def filled(store: Store, experiment_id: str, count: int) -> list[str]:
    """Runs with everything that is derived from, one of them with values outside."""
    api = store.api
    made = []
    for n in range(count):
        run_id = api.new_run(experiment_id)
        api.post(
            "runs/log-batch",
            run_id=run_id,
            metrics=[
                {"key": k, "value": v, "timestamp": 0, "step": 0}
                for k, v in (("a", n), ("b/c d", "NaN"))
            ],
            params=pairs({"p": "x", "q:": "y" * 900} if n else {"p": "z" * 2000}),
            tags=pairs({"t": "v"}),
        )
        dataset = {"name": "d", "digest": str(n), "source_type": "s", "source": "u"}
        api.post(
            "runs/log-inputs",
            run_id=run_id,
            datasets=[{"dataset": dataset}],
            models=[{"model_id": "m"}],
        )
        made.append(run_id)
    return made


@pytest.fixture
def indexed(store: Store, monkeypatch: pytest.MonkeyPatch) -> str:
    """An experiment that the indexer has followed."""
    monkeypatch.setattr(document, "INLINE_BYTES", 1500)
    with following(store) as stream:
        experiment_id = store.api.new_experiment("damaged", tags=pairs({"team": "x"}))
        filled(store, experiment_id, 3)
        records = stream.fresh()
        assert deliver(records) == len(records)
    return experiment_id


def of_experiment(store: Store, experiment_id: str) -> list[dict[str, Any]]:
    return [item for item in store.items() if item["PK"]["S"] == keys.experiment(experiment_id).pk]


def comparable(items: list[dict[str, Any]]) -> dict[str, Any]:
    left_out = {"version", "updated_at"}
    return {
        item["SK"]["S"]: {name: value for name, value in item.items() if name not in left_out}
        for item in items
    }


def test_verify_names_exactly_the_damage_and_reindex_repairs_it(store: Store, indexed: str) -> None:
    assert rebuild.verify(indexed).findings == []
    before = of_experiment(store, indexed)
    derived = [item for item in before if item["type"]["S"] in DERIVED and "outside" not in item]
    assert {item["type"]["S"] for item in derived} == DERIVED
    assert any("outside" in item for item in before)
    chance = random.Random(7)
    damage: set[tuple[str, str]] = set()
    for item in derived:
        place = {"PK": item["PK"], "SK": item["SK"]}
        harm = chance.choice(["none", "missing", "stale", "surplus"])
        sort_key = item["SK"]["S"]
        if harm == "missing":
            store.direct.delete_item(TableName=store.table, Key=place)
        elif harm == "stale":
            name = "text" if "key" not in item and "name" not in item else "key"
            name = name if name in item else "name"
            store.direct.put_item(TableName=store.table, Item={**item, name: {"S": "damaged"}})
        elif harm == "surplus" and item["type"]["S"] not in {"experiment_name_rev"}:
            sort_key += "x"
            store.direct.put_item(TableName=store.table, Item={**item, "SK": {"S": sort_key}})
        else:
            continue
        damage.add((harm, sort_key))
    assert {harm for harm, _ in damage} == {"missing", "stale", "surplus"}
    found = rebuild.verify(indexed, patience=0.01).findings
    assert {(finding.problem, finding.place.sk) for finding in found} == damage
    assert len(found) == len(damage)
    repaired = rebuild.reindex(indexed).findings
    assert {(finding.problem, finding.place.sk) for finding in repaired} == damage
    assert rebuild.verify(indexed).findings == []
    assert comparable(of_experiment(store, indexed)) == comparable(before)


def test_reindex_makes_all_of_a_table_that_no_indexer_followed(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(document, "INLINE_BYTES", 1500)
    experiment_id = store.api.new_experiment("never followed")
    runs = filled(store, experiment_id, 3)
    report = rebuild.reindex(experiment_id)
    assert report.batches == 3
    assert {finding.problem for finding in report.findings} == {"missing"}
    assert ranks_found(store, runs) == ranks_wanted(store.api, runs)
    after = rebuild.verify(experiment_id)
    assert (after.findings, after.batches) == ([], 0)
    # What is so young may still come through the stream.
    assert after.pending == 3


def test_an_abandoned_marker_is_named_and_goes(store: Store, indexed: str) -> None:
    run_id = store.api.new_run(indexed)
    place = keys.pending(indexed, "run", run_id, "abandoned")
    marker = {
        "PK": {"S": place.pk},
        "SK": {"S": place.sk},
        "type": {"S": "pending"},
        "entity_type": {"S": "run"},
        "entity_id": {"S": run_id},
        "write_id": {"S": "abandoned"},
        "updated_at": {"N": str(now_ms() - 700_000)},
    }
    store.direct.put_item(TableName=store.table, Item=marker)
    found = [f for f in rebuild.verify(indexed).findings if f.problem == "abandoned"]
    assert [finding.place for finding in found] == [place]
    rebuild.reindex(indexed)
    assert rebuild.verify(indexed).findings == []


def test_items_of_a_run_that_is_gone_are_surplus(store: Store, indexed: str) -> None:
    (gone, *_) = [i for i in of_experiment(store, indexed) if i["type"]["S"] == "run"]
    run_id = gone["run_id"]["S"]
    place = {"PK": gone["PK"], "SK": gone["SK"]}
    store.direct.delete_item(TableName=store.table, Key=place)
    found = rebuild.verify(indexed, patience=0).findings
    assert {finding.problem for finding in found} == {"surplus"}
    rebuild.reindex(indexed)
    assert rebuild.verify(indexed).findings == []
    left = [i for i in of_experiment(store, indexed) if run_id in i["SK"]["S"]]
    assert {i["type"]["S"] for i in left if "outside" not in i} <= {"run_metric_history", "pending"}


def test_the_removal_of_a_run_takes_its_index_away(store: Store) -> None:
    with following(store) as stream:
        (run_id,) = filled(store, "0", 1)
        deliver(stream.fresh())
        assert ranks_found(store, [run_id])
        place = keys.run("0", run_id)
        item_key = {"PK": {"S": place.pk}, "SK": {"S": place.sk}}
        store.direct.delete_item(TableName=store.table, Key=item_key)
        deliver(stream.fresh())
        assert ranks_found(store, [run_id]) == set()


def test_an_unknown_experiment(store: Store) -> None:
    for act in (rebuild.verify, rebuild.reindex):
        with pytest.raises(errors.ResourceDoesNotExist):
            act("01ARZ3NDEKTSV4RRFFQ69G5FAV")


def test_reindex_beside_writers_and_the_indexer(store: Store) -> None:
    """Four writers, the indexer and rebuilds at once; in the end everything is exact."""
    api = store.api
    experiment_id = api.new_experiment("busy")
    runs = [api.new_run(experiment_id) for _ in range(2)]
    stop = threading.Event()
    failures: list[BaseException] = []

    def guarded(work: Any) -> threading.Thread:
        def run() -> None:
            try:
                work()
            except BaseException as error:
                failures.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        return thread

    def writes(seed: int) -> None:
        chance = random.Random(seed)
        for n in range(40):
            metrics = [
                {"key": key, "value": chance.choice([0, 1, 2]), "timestamp": n, "step": n}
                for key in "ab"
            ]
            Api().post("runs/log-batch", run_id=runs[seed % 2], metrics=metrics)

    def repairs() -> None:
        while not stop.is_set():
            with contextlib.suppress(errors.TemporarilyUnavailable):
                rebuild.reindex(experiment_id)

    followed: set[str] = set()
    with following(store) as stream:

        def follows() -> None:
            while not stop.is_set():
                records = stream.fresh()
                followed.update(writes_of(records))
                assert deliver(records) == len(records)
                time.sleep(0.005)

        writers = [guarded(lambda seed=seed: writes(seed)) for seed in range(4)]
        others = [guarded(repairs), guarded(follows)]
        for thread in writers:
            thread.join()
        stop.set()
        for thread in others:
            thread.join()
        assert failures == []
        records = stream.fresh()
        assert deliver(records) == len(records)
        followed.update(writes_of(records))
    assert ranks_found(store, runs) == ranks_wanted(api, runs)
    assert rebuild.verify(experiment_id, patience=0).findings == []
    # A write that had nothing left to do when others came first leaves its marker for a while.
    assert followed.isdisjoint(item["write_id"]["S"] for item in pending(store, runs))
    assert len(followed) > 40


def writes_of(records: list[Record]) -> set[str]:
    images = [record["dynamodb"].get("NewImage", {}) for record in records]
    return {image["last_write"]["S"] for image in images if "last_write" in image}


def test_outside_types_are_those_with_an_index() -> None:
    assert set(run_items.OUTSIDE_MAPS.values()) == set(INDEXES)
