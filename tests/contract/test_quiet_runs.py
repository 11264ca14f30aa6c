"""Runs that nobody ends: they are followed once they are quiet, or when they are too many."""

from __future__ import annotations

from typing import Any

import pytest

import indexer.app
from indexer.projection import quiet_runs
from indexer.verification import rebuild
from mlcore import errors, process_cache
from mlcore.db import keys
from mlcore.db.table import table
from mlcore.repos import document
from mlcore.repos.runs.core import marked_experiments
from tests.contract.api import Api
from tests.contract.conftest import Store
from tests.contract.index_state import deliver, marked, ranks_found, ranks_wanted
from tests.contract.streams import following


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was written is quiet at once."""
    monkeypatch.setattr(quiet_runs, "QUIET_MS", -60_000)
    monkeypatch.setattr(quiet_runs, "CALM_MS", -60_000)


def sweep() -> None:
    assert indexer.app.handler({"source": "schedule"}, None) == {}


def running(api: Api, experiment_id: str = "0", **point: Any) -> str:
    run_id = api.new_run(experiment_id)
    api.post("runs/log-metric", run_id=run_id, **{"key": "m", "value": 1, "timestamp": 1, **point})
    return run_id


def listed(store: Store) -> set[str]:
    return {
        item["experiment_id"]["S"]
        for item in store.items()
        if item["type"]["S"] == "marked_experiment"
    }


def test_a_quiet_run_is_followed(store: Store) -> None:
    api = store.api
    with following(store) as stream:
        run_id, ended = running(api), running(api)
        api.end(ended)
        deliver(stream.fresh())
        assert marked(store) == {run_id}
        assert listed(store) == {"0"}
        sweep()
        assert marked(store) == {run_id}
        deliver(stream.fresh())
        assert marked(store) == set()
        assert ranks_found(store, [run_id]) == ranks_wanted(api, [run_id])
        assert rebuild.verify("0", patience=0).findings == []
        api.post("runs/log-metric", run_id=run_id, key="m", value=2, timestamp=2, step=1)
        assert marked(store) == {run_id}
        sweep()
        deliver(stream.fresh())
        assert marked(store) == set()
        assert ranks_found(store, [run_id]) == ranks_wanted(api, [run_id])


def test_a_run_that_goes_on_is_left_alone(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    api = store.api
    with following(store) as stream:
        busy, waking = running(api), running(api)
        deliver(stream.fresh())
        monkeypatch.setattr(quiet_runs, "QUIET_MS", 60_000)
        before = store.items()
        sweep()
        assert store.items() == before
        monkeypatch.setattr(quiet_runs, "QUIET_MS", -60_000)
        original = quiet_runs._mark_as_quiet

        def written_to(item: Any) -> None:
            if item["run_id"]["S"] == waking:
                api.post("runs/log-metric", run_id=waking, key="m", value=3, timestamp=9)
            original(item)

        monkeypatch.setattr(quiet_runs, "_mark_as_quiet", written_to)
        sweep()
        deliver(stream.fresh())
        assert marked(store) == {waking}
        api.post("runs/log-metric", run_id=busy, key="m", value=3, timestamp=9)
        deliver(stream.fresh())
        assert marked(store) == {waking, busy}


def test_an_experiment_that_fails_stops_no_other_one(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The failure is still reported, and names the experiment."""
    api = store.api
    experiment_ids = [api.new_experiment(name) for name in "abc"]
    with following(store) as stream:
        run_ids = [running(api, experiment_id) for experiment_id in experiment_ids]
        deliver(stream.fresh())
        original = quiet_runs._mark_as_quiet
        failing = run_ids[:2]

        def failing_for_some(item: Any) -> None:
            if item["run_id"]["S"] in failing:
                raise errors.TemporarilyUnavailable("busy")
            original(item)

        monkeypatch.setattr(quiet_runs, "_mark_as_quiet", failing_for_some)
        with pytest.raises(ExceptionGroup) as failed:
            sweep()
        notes = [getattr(each, "__notes__", []) for each in failed.value.exceptions]
        assert sorted(notes) == [[f"experiment {each}"] for each in sorted(experiment_ids[:2])]
        deliver(stream.fresh())
        assert marked(store) == set(failing)
        failing.clear()
        sweep()
        deliver(stream.fresh())
        assert marked(store) == set()


def test_an_idle_table_costs_one_query(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """An experiment whose runs are all followed leaves the list, but not while a process may take
    it for listed."""
    api = store.api
    with following(store) as stream:
        running(api)
        deliver(stream.fresh())
        sweep()
        deliver(stream.fresh())
        sweep()
        assert listed(store) == {"0"}
        monkeypatch.setattr(marked_experiments, "KEPT_MS", -60_000)
        sweep()
        assert listed(store) == set()
        with table.measure() as cost:
            sweep()
        assert (cost.requests, cost.write_units) == (1, 0)


def test_an_entry_that_was_renewed_stays(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    marked_experiments.note("7")
    (entry,) = marked_experiments.every()
    monkeypatch.setattr(marked_experiments, "KEPT_MS", -60_000)
    monkeypatch.setattr(marked_experiments, "now_ms", lambda: (entry.updated_at or 0) + 5)
    process_cache.clear()
    marked_experiments.note("7")
    marked_experiments.drop(entry)
    assert listed(store) == {"7"}
    with table.measure() as cost:
        marked_experiments.note("7")
    assert cost.requests == 0


def test_too_many_marked_runs_are_followed_with_the_next_batch(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Clients that never end runs: what is marked stays few, however many runs there are."""
    monkeypatch.setattr(quiet_runs, "CROWD", 10)
    monkeypatch.setattr(quiet_runs, "COUNTED_EVERY", 5)
    api = store.api
    experiment_id = api.new_experiment("crowded")
    with following(store) as stream:
        made: list[str] = []
        for _ in range(8):
            made += [running(api, experiment_id, value=n) for n in range(4)]
            assert deliver(records := stream.fresh()) == len(records)
            assert len(marked(store)) <= 10 + 5
        followed = [run_id for run_id in made if run_id not in marked(store)]
        assert len(followed) >= 32 - 15
        assert ranks_found(store, followed) == ranks_wanted(api, followed)
        assert rebuild.verify(experiment_id, patience=0).findings == []
        sweep()
        deliver(stream.fresh())
        assert marked(store) == set()
        assert ranks_found(store, made) == ranks_wanted(api, made)


def test_a_run_marked_for_good_is_no_reason_to_look(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(document, "INLINE_BYTES", 300)
    api = store.api
    with following(store) as stream:
        run_id = running(api, key="k" * 200)
        running_key = {"key": "l" * 200, "value": 1, "timestamp": 1}
        api.post("runs/log-metric", run_id=run_id, **running_key)
        deliver(stream.fresh())
        sweep()
        deliver(stream.fresh())
        monkeypatch.setattr(marked_experiments, "KEPT_MS", -60_000)
        sweep()
        assert listed(store) == set()
        run = keys.run("0", run_id)
        item = table.get(run)
        assert item is not None
        assert item["lsi5sk"]["S"] == keys.lsi5_run_mark(run_id, 0)
