"""Derived items follow from their sources alone: whatever the stream did, and after a repair."""

from __future__ import annotations

import contextlib
import random
import threading
import time
from typing import Any

import pytest

from indexer.projection.index_items import INDEXES, OUTSIDE_MAPS
from indexer.verification import places, rebuild
from mlcore import errors, process_cache
from mlcore.db import keys
from mlcore.db.table import table
from mlcore.repos import document
from tests.contract.api import Api, pairs
from tests.contract.conftest import Store
from tests.contract.index_state import (
    deliver,
    found_by,
    marked,
    of_experiment,
    ranks_found,
    ranks_wanted,
    tiny_ranks,
)
from tests.contract.streams import following

DERIVED = {
    "experiment_tag",
    "experiment_name_rev",
    "run_param",
    "run_tag",
    "run_input",
    "run_logged_model",
    "rank_param",
    "dataset_link",
    "fts",
    "fts_rev",
}


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
        api.end(run_id)
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


def comparable(items: list[dict[str, Any]]) -> dict[str, Any]:
    left_out = {"version", "updated_at"}
    return {
        item["SK"]["S"]: {name: value for name, value in item.items() if name not in left_out}
        for item in items
    }


def test_verify_names_exactly_the_damage_and_reindex_repairs_it(store: Store, indexed: str) -> None:
    assert rebuild.reindex(indexed).findings == []  # it packs what history there is
    assert rebuild.verify(indexed).findings == []
    before = of_experiment(store, indexed)
    derived = [item for item in before if item["type"]["S"] in DERIVED and "outside" not in item]
    assert {item["type"]["S"] for item in derived} == DERIVED
    assert any("outside" in item for item in before)
    chance = random.Random(7)
    damage: set[tuple[str, str]] = set()
    for item in derived:
        key = {"PK": item["PK"], "SK": item["SK"]}
        harm = chance.choice(["none", "missing", "stale", "surplus"])
        sort_key = item["SK"]["S"]
        if harm == "missing":
            store.direct.delete_item(TableName=store.table, Key=key)
        elif harm == "stale":
            name = next(name for name in ("key", "name", "token") if name in item)
            store.direct.put_item(TableName=store.table, Item={**item, name: {"S": "spoiled"}})
        elif harm == "surplus" and item["type"]["S"] not in {"experiment_name_rev"}:
            sort_key += "x"
            store.direct.put_item(TableName=store.table, Item={**item, "SK": {"S": sort_key}})
        else:
            continue
        damage.add((harm, sort_key))
    assert {harm for harm, _ in damage} == {"missing", "stale", "surplus"}
    findings = rebuild.verify(indexed, patience=0.01).findings
    assert {(finding.problem, finding.key.sk) for finding in findings} == damage
    assert len(findings) == len(damage)
    repaired = rebuild.reindex(indexed).findings
    assert {(finding.problem, finding.key.sk) for finding in repaired} == damage
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


def test_items_of_a_run_that_is_gone_are_surplus(store: Store, indexed: str) -> None:
    (gone, *_) = [i for i in of_experiment(store, indexed) if i["type"]["S"] == "run"]
    run_id = gone["run_id"]["S"]
    key = {"PK": gone["PK"], "SK": gone["SK"]}
    store.direct.delete_item(TableName=store.table, Key=key)
    findings = rebuild.verify(indexed, patience=0).findings
    assert {finding.problem for finding in findings} == {"surplus"}
    rebuild.reindex(indexed)
    assert rebuild.verify(indexed).findings == []
    left = [i for i in of_experiment(store, indexed) if run_id in i["SK"]["S"]]
    assert {i["type"]["S"] for i in left if "outside" not in i} <= {"run_metric_history"}


def test_the_removal_of_a_run_takes_its_index_away(store: Store) -> None:
    with following(store) as stream:
        (run_id,) = filled(store, "0", 1)
        deliver(stream.fresh())
        assert ranks_found(store, [run_id])
        run = keys.run("0", run_id)
        item_key = {"PK": {"S": run.pk}, "SK": {"S": run.sk}}
        store.direct.delete_item(TableName=store.table, Key=item_key)
        deliver(stream.fresh())
        # What is in rows stays there, and leads nobody to anything.
        left = {rank[0] for rank in ranks_found(store, [run_id])}
        assert left == {"rank_metric"}
        kinds = {item["type"]["S"] for item in of_experiment(store, "0")}
        assert not kinds & {"rank_metric", "run_metric", "rank_param", "dataset_link", "run_param"}
        assert found_by(store.api, "0", "metrics.a = 0") == []
        assert rebuild.verify("0", patience=0).findings == []
        assert rebuild.reindex("0").findings == []
        assert ranks_found(store, [run_id]) == set()


def test_a_run_without_its_reference_is_found_by_its_id_again(
    store: Store, indexed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tables have such runs (see test_history_packing). Without the run there is no reference, also
    if the run is removed at this moment."""
    lost, removed, removed_now, *_ = run_ids = filled(store, indexed, 4)
    rebuild.reindex(indexed)
    answer = store.api.get("runs/get", run_id=lost)
    references = [keys.run_ref(run_id) for run_id in run_ids]
    before = table.batch_get(references)
    for reference in references[:3]:
        table.delete(reference)
    table.delete(keys.run(indexed, removed))
    process_cache.clear()
    assert store.api.ask("GET", "runs/get", run_id=lost).status == 404
    found = [finding for finding in rebuild.verify(indexed, 0).findings if "REF" in finding.place]
    assert [(each.problem, each.place) for each in found] == [
        ("missing", " ".join(keys.run_ref(run_id))) for run_id in sorted((lost, removed_now))
    ]
    original = places._repairing

    def after_a_removal(*arguments: Any) -> Any:
        table.delete(keys.run(indexed, removed_now))
        return original(*arguments)

    monkeypatch.setattr(places, "_repairing", after_a_removal)
    rebuild.reindex(indexed)
    assert store.api.get("runs/get", run_id=lost) == answer
    after = table.batch_get(references)
    assert comparable([after[0] or {}]) == comparable([before[0] or {}])
    assert after[1:] == [None, None, before[3]]
    rebuild.reindex(indexed)
    assert rebuild.verify(indexed, 0).findings == []


def test_a_logged_model_that_a_move_left_behind_is_found_again(store: Store, indexed: str) -> None:
    made = store.api.post("logged-models", experiment_id=indexed, name="m")
    model_id = made["model"]["info"]["model_id"]
    key = keys.logged_model(indexed, model_id)
    hidden = table.get(key) or {}
    table.put({**hidden, "workspace": {"S": "gone"}})
    assert store.api.ask("GET", f"logged-models/{model_id}").status == 404
    assert [each.key for each in rebuild.verify(indexed, 0).findings] == [key]
    assert [each.key for each in rebuild.reindex(indexed).findings] == [key]
    assert store.api.get(f"logged-models/{model_id}") == made
    assert rebuild.verify(indexed, 0).findings == []


def test_an_unknown_experiment(store: Store) -> None:
    for act in (rebuild.verify, rebuild.reindex):
        with pytest.raises(errors.ResourceDoesNotExist):
            act("987654321")


@pytest.mark.parametrize("tiny", [False, True])
def test_reindex_beside_writers_and_the_indexer(
    store: Store, monkeypatch: pytest.MonkeyPatch, tiny: bool
) -> None:
    """Four writers, the indexer and rebuilds at once; in the end everything is exact."""
    tiny_ranks(monkeypatch, tiny=tiny)
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
            status = chance.choice(["RUNNING", "FINISHED"])
            Api().post("runs/update", run_id=runs[seed % 2], status=status)

    def repairs() -> None:
        while not stop.is_set():
            with contextlib.suppress(errors.TemporarilyUnavailable):
                rebuild.reindex(experiment_id)

    with following(store) as stream:

        def follows() -> None:
            while not stop.is_set():
                records = stream.fresh()
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
        for run_id in runs:
            api.end(run_id)
        records = stream.fresh()
        assert deliver(records) == len(records)
    assert ranks_found(store, runs) == ranks_wanted(api, runs)
    assert rebuild.verify(experiment_id, patience=0).findings == []
    assert marked(store) == set()


def test_outside_types_are_those_with_an_index() -> None:
    assert set(OUTSIDE_MAPS.values()) == set(INDEXES)
