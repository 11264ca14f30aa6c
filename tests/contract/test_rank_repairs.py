"""Metrics that are not ranked, or ranked beside writers: what a rebuild makes of them."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

from indexer.projection import item_writes
from indexer.ranks import rank_rows
from indexer.verification import rebuild
from indexer.verification.partition_scan import Suspects
from mlcore.db import keys
from mlcore.repos.runs.ranks import metric_ranks
from mlcore.repos.runs.search import run_search
from tests.contract.conftest import Store
from tests.contract.index_state import (
    deliver,
    found_by,
    marked,
    of_experiment,
    ranked,
    ranked_of,
    ranks_found,
    ranks_wanted,
)
from tests.contract.streams import following


@pytest.fixture(autouse=True)
def by_index(monkeypatch: pytest.MonkeyPatch) -> None:
    """No experiment has so few runs that a search reads them all."""
    monkeypatch.setattr(run_search, "SMALL_RUNS", 0)


@pytest.mark.parametrize("kind", ["rank_rows", "rank_segment", "rank_page"])
def test_metrics_that_are_not_ranked_are_named_and_ranked(
    store: Store, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Whatever is lost of rows and segments, exactly the values in it are named, and searches do
    without it until they are ranked again."""
    api = store.api
    if kind == "rank_page":
        monkeypatch.setattr(metric_ranks, "PAGE_ENTRIES", 1)
    experiment_id = api.new_experiment("unranked")
    runs = []
    with following(store) as stream:
        for value in (3, 1, 2, 1):
            run_id = api.new_run(experiment_id)
            api.post("runs/log-metric", run_id=run_id, key="m", value=value, step=0, timestamp=0)
            api.end(run_id)
            deliver(stream.fresh())
            runs.append((value, run_id))
    if kind != "rank_rows":
        rank_rows.sort_all(experiment_id)
    before = ranked(of_experiment(store, experiment_id))
    lost, *_ = [item for item in of_experiment(store, experiment_id) if item["type"]["S"] == kind]
    store.direct.delete_item(TableName=store.table, Key={"PK": lost["PK"], "SK": lost["SK"]})
    count = {"rank_rows": 1, "rank_segment": 4, "rank_page": 1}[kind]
    findings = rebuild.verify(experiment_id, patience=0).findings
    assert {finding.problem for finding in findings} == {"missing"}
    wanted = {keys.rank_metric(experiment_id, "m", value, run_id) for value, run_id in runs}
    assert len(findings) == count
    assert {finding.key for finding in findings} <= wanted
    if kind == "rank_page":
        for value in (1, 2, 3):
            of_value = {run_id for each, run_id in runs if each == value}
            assert {*found_by(api, experiment_id, f"metrics.m = {value}")} == of_value
    assert rebuild.reindex(experiment_id).findings == findings
    assert rebuild.verify(experiment_id, patience=0).findings == []
    assert ranked(of_experiment(store, experiment_id)) == before
    assert {*found_by(api, experiment_id, "metrics.m < 3")} == {
        run_id for value, run_id in runs if value < 3
    }


@pytest.mark.parametrize(("at", "what"), [(item_writes, "apply"), (rank_rows, "put")])
def test_a_repair_that_a_writer_overtook_harms_nothing(
    store: Store, monkeypatch: pytest.MonkeyPatch, at: ModuleType, what: str
) -> None:
    """It ranks what it has read, which may be a value of before: the entry says of which version it
    is."""
    api = store.api
    experiment_id = api.new_experiment("overtaken")
    run_id = api.new_run(experiment_id)
    api.post("runs/log-metric", run_id=run_id, key="m", value=1, step=1, timestamp=1)
    api.end(run_id)
    original = getattr(at, what)

    def overtaken(wanted: Any) -> Any:
        monkeypatch.setattr(at, what, original)
        api.post("runs/log-metric", run_id=run_id, key="m", value=2, step=2, timestamp=2)
        return original(wanted)

    def searches_are_right() -> None:
        for value, of_value in ((1, []), (2, [run_id])):
            assert found_by(api, experiment_id, f"metrics.m = {value}") == of_value

    with following(store) as stream:
        stream.fresh()
        monkeypatch.setattr(at, what, overtaken)
        key = keys.rank_metric(experiment_id, "m", 1.0, run_id)
        rebuild._repair(rebuild._partition(experiment_id), Suspects(run_id, [key]))
        assert ranked_of(store, run_id) == {"m": {"2.0" if at is item_writes else "1.0"}}
        assert marked(store) == {run_id}
        searches_are_right()
        deliver(stream.fresh())
    assert marked(store) == set()
    searches_are_right()
    assert ranks_found(store, [run_id]) == ranks_wanted(api, [run_id])


@pytest.mark.parametrize("was_followed", [True, False])
@pytest.mark.parametrize("then", [2, 1])
def test_a_repair_that_a_rest_overtook_leaves_nothing_that_nobody_finds(
    store: Store, monkeypatch: pytest.MonkeyPatch, was_followed: bool, then: int
) -> None:
    """The run went on, rested with another value, was followed, and goes on again: what the repair
    ranks of it is of the version that it read, and every search looks at the run itself."""
    api = store.api
    experiment_id = api.new_experiment("overtaken by a rest")
    run_id = api.new_run(experiment_id)
    original = item_writes.apply

    def log(value: int, step: int) -> None:
        api.post("runs/log-metric", run_id=run_id, key="m", value=value, step=step, timestamp=1)

    def rest(value: int, step: int) -> None:
        log(value, step)
        api.end(run_id)

    with following(store) as stream:

        def follow() -> None:
            records = stream.fresh()
            assert deliver(records) == len(records)

        def go_on(step: int) -> None:
            api.post("runs/update", run_id=run_id, status="RUNNING")
            log(7, step)
            follow()

        def overtaken(wanted: Any) -> None:
            monkeypatch.setattr(item_writes, "apply", original)
            go_on(2)
            rest(then, 3)
            follow()
            go_on(4)
            original(wanted)

        if was_followed:
            rest(0, 0)
            follow()
        rest(1, 1)
        monkeypatch.setattr(item_writes, "apply", overtaken)
        places = [keys.rank_metric(experiment_id, "m", value, run_id) for value in (0.0, 1.0)]
        places.append(keys.run_metric(experiment_id, run_id, "m"))
        rebuild._repair(rebuild._partition(experiment_id), Suspects(run_id, places))
        kinds = {item["type"]["S"] for item in of_experiment(store, experiment_id)}
        assert not kinds & {"rank_metric", "run_metric"}
        for value in (0, 1, 2):
            assert found_by(api, experiment_id, f"metrics.m = {value}") == []
        assert found_by(api, experiment_id, "metrics.m = 7") == [run_id]
        rest(3, 5)
        follow()
    assert ranks_found(store, [run_id]) == ranks_wanted(api, [run_id])
    assert rebuild.verify(experiment_id, patience=0).findings == []
    for value in (0, 1, 2, 7):
        assert found_by(api, experiment_id, f"metrics.m = {value}") == []
    assert found_by(api, experiment_id, "metrics.m = 3") == [run_id]
