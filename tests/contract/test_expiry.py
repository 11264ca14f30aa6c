"""Deleted runs and experiments expire with what is theirs, restored ones do not; settings are
checked; what was deleted can be purged at once."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import indexer.app
from indexer.history import history_packing
from indexer.lifecycle import expiry, expiry_times
from indexer.projection import quiet_runs
from indexer.verification import rebuild
from mlcore import artifacts as port
from mlcore import errors
from mlcore.artifacts.local_folder_store import Folder
from mlcore.db import keys
from mlcore.db.table import table
from mlcore.repos.removal import garbage
from mlcore.repos.runs.core import marked_experiments
from mlcore.repos.settings import stored_settings
from tests.contract.conftest import Store, examples, forget
from tests.contract.streams import following

DAY = 86_400
POLICY = {"deleted_runs": "7d", "deleted_experiments": "9d"}


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Folder]:
    monkeypatch.setenv("ARTIFACT_FOLDER", str(tmp_path / "artifacts"))
    port.store.cache_clear()
    made = port.store()
    assert isinstance(made, Folder)
    yield made
    port.store.cache_clear()


def furnish(store: Store, experiment_id: str) -> str:
    run_id = store.api.new_run(experiment_id)
    metrics = [{"key": k, "value": 1.0, "timestamp": 1, "step": 1} for k in ("a", "b")]
    params = [{"key": "p", "value": "v"}, {"key": "q", "value": "v" * 6000}]
    tags = [{"key": "t", "value": "some words"}]
    store.api.post("runs/log-batch", run_id=run_id, metrics=metrics, params=params, tags=tags)
    dataset = {"name": "d", "digest": "d", "source_type": "s", "source": "s"}
    store.api.post("runs/log-inputs", run_id=run_id, datasets=[{"dataset": dataset}])
    return run_id


def ends(store: Store, experiment_id: str, run_id: str) -> dict[str, int | None]:
    """Sort key → when it expires, of a run and what is its own."""
    reference = store.direct.query(
        TableName=store.table,
        KeyConditionExpression="PK=:p",
        ExpressionAttributeValues={":p": {"S": f"RUN#{run_id}"}},
    )["Items"]
    results = [*store.items_of(experiment_id, run_id), *reference]
    return {item["SK"]["S"]: int(item["ttl"]["N"]) if "ttl" in item else None for item in results}


def expire(store: Store) -> int:
    """Deletes what has an end, whenever that is, as DynamoDB does then."""
    gone = [item for item in store.items() if "ttl" in item and item["type"]["S"] != "login"]
    for item in sorted(gone, key=lambda item: int(item["ttl"]["N"])):
        store.direct.delete_item(TableName=store.table, Key={"PK": item["PK"], "SK": item["SK"]})
    return len(gone)


def test_a_deleted_run_expires_and_a_restored_one_does_not(store: Store) -> None:
    stored_settings.put("ttl_policy", POLICY)
    experiment_id = store.api.new_experiment("e")
    with following(store) as stream:
        run_id, other = furnish(store, experiment_id), furnish(store, experiment_id)
        store.api.post("runs/delete", run_id=run_id)
        records = stream.fresh()
        assert indexer.app.index(records) is None
        expected = int(time.time()) + 7 * DAY
        marked = ends(store, experiment_id, run_id)
        assert abs(marked.pop(f"R#{run_id}") - expected) < 60  # type: ignore[operator]
        assert len(marked) > 5
        for end in marked.values():
            assert end is not None
            assert abs(end - expected - expiry_times.CHILD_SECONDS) < 60
        assert set(ends(store, experiment_id, other).values()) == {None}
        store.api.post("runs/restore", run_id=run_id)
        fresh = stream.fresh()
        assert indexer.app.index(fresh) is None
        assert set(ends(store, experiment_id, run_id).values()) == {None}
        for again in (records, fresh, [*fresh, *records], records[::-1]):
            assert indexer.app.index(again) is None
            assert set(ends(store, experiment_id, run_id).values()) == {None}
        before = store.items()
        store.api.post("runs/delete", run_id=run_id)
        assert indexer.app.index(stream.fresh()) is None
        assert expire(store) > 5
        assert indexer.app.index(stream.fresh()) is None
        assert indexer.app.index(stream.fresh()) is None
        left = [item for item in store.items() if run_id in f"{item['PK']['S']}{item['SK']['S']}"]
        assert left == []
        assert len(store.items()) < len(before)
        assert rebuild.verify(experiment_id, 0).findings == []


def test_an_experiment_expires_with_everything_and_its_name_is_free(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(marked_experiments, "KEPT_MS", -1)
    stored_settings.put("ttl_policy", POLICY)
    empty = {(item["PK"]["S"], item["SK"]["S"]) for item in store.items()}
    with following(store) as stream:
        experiment_id = store.api.new_experiment("e")
        run_ids = [furnish(store, experiment_id) for _ in range(3)]
        store.api.post("runs/delete", run_id=run_ids[0])
        store.api.post("experiments/delete", experiment_id=experiment_id)
        assert indexer.app.index(stream.fresh()) is None
        for run_id in run_ids:
            assert None not in ends(store, experiment_id, run_id).values()
        store.api.post("experiments/restore", experiment_id=experiment_id)
        assert indexer.app.index(stream.fresh()) is None
        for run_id in run_ids:
            assert set(ends(store, experiment_id, run_id).values()) == {None}
        store.api.post("experiments/delete", experiment_id=experiment_id)
        assert indexer.app.index(stream.fresh()) is None
        expire(store)
        for _ in range(2):
            assert indexer.app.index(stream.fresh()) is None
        assert quiet_runs.sweep() == 0
        left = {(item["PK"]["S"], item["SK"]["S"]) for item in store.items()} - empty
        assert left == {keys.id_counter()}
        forget()
        assert int(store.api.new_experiment("e")) > int(experiment_id)


def test_the_name_of_an_expired_experiment_is_not_found_before_the_indexer_frees_it(
    store: Store,
) -> None:
    experiment_id = store.api.new_experiment("e")
    pk, sk = keys.experiment(experiment_id)
    store.direct.delete_item(TableName=store.table, Key={"PK": {"S": pk}, "SK": {"S": sk}})
    answer = store.api.ask("GET", "experiments/get-by-name", experiment_name="e")
    assert answer.body["error_code"] == "RESOURCE_DOES_NOT_EXIST"
    answer = store.api.ask("POST", "experiments/create", name="e")
    assert answer.body["error_code"] == "RESOURCE_ALREADY_EXISTS"


def test_history_expires_by_itself(store: Store) -> None:
    stored_settings.put("ttl_policy", {"metric_history": "1d"})
    run_id = store.api.new_run()
    store.api.post("runs/log-metric", run_id=run_id, key="m", value=1, timestamp=1)
    [batch] = [item for item in store.items() if item["type"]["S"] == "run_metric_batch"]
    assert abs(int(batch["ttl"]["N"]) - time.time() - DAY) < 60
    history_packing.pack_runs([("0", run_id)])
    [pack] = [item for item in store.items() if item["type"]["S"] == "run_metric_history"]
    assert abs(int(pack["ttl"]["N"]) - time.time() - DAY) < 60
    expire(store)
    assert store.api.data(run_id)["metrics"] == {"m": (1, 1, 0)}


def test_without_a_policy_nothing_expires(store: Store) -> None:
    with following(store) as stream:
        run_id = furnish(store, "0")
        store.api.post("runs/delete", run_id=run_id)
        store.api.post("experiments/delete", experiment_id="0")
        assert indexer.app.index(stream.fresh()) is None
    assert not any("ttl" in item for item in store.items())


WRONG = (
    ("nothing", {}),
    ("ttl_policy", []),
    ("ttl_policy", {"runs": "7d"}),
    ("ttl_policy", {"traces": "7"}),
    ("ttl_policy", {"traces": 7}),
    ("fts_fields", "tags.*"),
    ("fts_fields", ["metrics.*"]),
    ("fts_fields", [1]),
)


@pytest.mark.parametrize(("key", "value"), WRONG)
def test_settings_are_checked(store: Store, key: str, value: Any) -> None:
    with pytest.raises(errors.InvalidParameterValue):
        stored_settings.put(key, value)
    assert stored_settings.find_all() == {}


def test_settings(store: Store) -> None:
    stored_settings.put("ttl_policy", POLICY)
    stored_settings.put("fts_fields", ["tags.*", "params.lr"])
    assert stored_settings.get("ttl_policy") == POLICY
    assert list(stored_settings.find_all()) == ["fts_fields", "ttl_policy"]
    stored_settings.delete("ttl_policy")
    stored_settings.delete("ttl_policy")
    with pytest.raises(errors.ResourceDoesNotExist):
        stored_settings.get("ttl_policy")


def test_garbage_goes_for_good_wherever_its_removal_was_cut(store: Store, files: Folder) -> None:
    api = store.api
    api.new_run()
    kept = {(item["PK"]["S"], item["SK"]["S"]) for item in store.items()}
    with following(store) as stream:
        gone = api.new_experiment("gone")
        run_id, in_gone = furnish(store, "0"), furnish(store, gone)
        model = api.post("logged-models", experiment_id="0", name="m")["model"]["info"]
        for experiment_id, each in (("0", run_id), (gone, in_gone)):
            files.put(f"{experiment_id}/{each}/artifacts/f", b"x")
        files.put(f"0/models/{model['model_id']}/artifacts/f", b"x")
        api.post("runs/delete", run_id=run_id)
        api.post("experiments/delete", experiment_id=gone)
        path = f"logged-models/{model['model_id']}"
        assert api.ask("DELETE", path).status == 200
        assert indexer.app.index(stream.fresh()) is None
        assert list(garbage.find(0)) == []
        results = list(garbage.find(int(time.time() * 1000) + 1000))
        assert sorted(leftover.kind for leftover in results) == [
            "experiment",
            "logged_model",
            "run",
        ]
        assert list(garbage.find(2**60, gone)) == [
            leftover for leftover in results if leftover.experiment_id == gone
        ]
        for leftover in results:
            garbage.remove(leftover)
            garbage.remove(leftover)
        for _ in range(2):
            assert indexer.app.index(stream.fresh()) is None
    left = {(item["PK"]["S"], item["SK"]["S"]) for item in store.items()} - kept
    theirs = (run_id, in_gone, keys.experiment(gone).pk)
    assert not any(text in key for text in theirs for pair in left for key in pair)
    assert rebuild.verify("0", 0).findings == []
    assert [entry.name for entry in files.list("")] in ([], ["0"])
    assert files.list(f"0/{run_id}") == []
    forget()
    api.new_experiment("gone")


def test_a_run_restored_while_its_experiment_expires_keeps_its_reference(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the indexer's read of the run and its writes. Without the reference nobody finds the
    run by its id."""
    stored_settings.put("ttl_policy", POLICY)
    experiment_id = store.api.new_experiment("e")
    set_ttl = expiry._set_ttl_of_run

    def late(*arguments: Any) -> None:
        store.api.post("runs/restore", run_id=run_id)
        set_ttl(*arguments)

    with following(store) as stream:
        run_id = furnish(store, experiment_id)
        assert indexer.app.index(stream.fresh()) is None
        store.api.post("experiments/delete", experiment_id=experiment_id)
        monkeypatch.setattr(expiry, "_set_ttl_of_run", late)
        assert indexer.app.index(stream.fresh()) is None
        monkeypatch.setattr(expiry, "_set_ttl_of_run", set_ttl)
        assert indexer.app.index(stream.fresh()) is None
    end_times = ends(store, experiment_id, run_id)
    assert (end_times["RUN#REF"], end_times[f"R#{run_id}"]) == (None, None)


def test_a_restored_experiment_keeps_its_runs_wherever_the_indexer_was_cut(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The indexer is cut while it sets the TTLs, and the experiment restored before it goes on."""
    stored_settings.put("ttl_policy", POLICY)
    update, cut_at, count = table.update, 0, 0

    def cut(*arguments: Any) -> Any:
        nonlocal count
        count += 1
        if count == cut_at:
            raise errors.TemporarilyUnavailable("cut")
        return update(*arguments)

    with following(store) as stream:
        while count >= cut_at:
            cut_at, count = cut_at + 1, 0
            experiment_id = store.api.new_experiment(f"e{cut_at}")
            run_id = store.api.new_run(experiment_id)
            assert indexer.app.index(stream.fresh()) is None
            store.api.post("experiments/delete", experiment_id=experiment_id)
            records = stream.fresh()
            with monkeypatch.context() as patched:
                patched.setattr(table, "update", cut)
                assert (indexer.app.index(records) is None) == (count < cut_at)
            store.api.post("experiments/restore", experiment_id=experiment_id)
            assert indexer.app.index([*records, *stream.fresh()]) is None
            assert set(ends(store, experiment_id, run_id).values()) == {None}, cut_at
    assert cut_at > 3


@examples(15)
@given(steps=st.lists(st.sampled_from(["run", "experiment", "back", "all back"]), max_size=6))
def test_what_expires_is_what_is_deleted(shared_store: Store, steps: list[str]) -> None:
    """Whatever was deleted and restored: a run has an end just when it looks deleted."""
    store = shared_store
    stored_settings.put("ttl_policy", POLICY)
    with following(store, latest=True) as stream:
        experiment_id = store.api.new_experiment(f"e-{time.time_ns()}")
        run_id = furnish(store, experiment_id)
        calls = {
            "run": ("runs/delete", {"run_id": run_id}),
            "back": ("runs/restore", {"run_id": run_id}),
            "experiment": ("experiments/delete", {"experiment_id": experiment_id}),
            "all back": ("experiments/restore", {"experiment_id": experiment_id}),
        }
        records = stream.fresh()
        assert records
        for step in steps:
            path, fields = calls[step]
            store.api.ask("POST", path, **fields)
            records += stream.fresh()
        assert indexer.app.index(records) is None
        assert indexer.app.index(records[len(records) // 2 :]) is None
        deleted = store.api.run(run_id)["info"]["lifecycle_stage"] == "deleted"
        end_times = ends(store, experiment_id, run_id)
        assert all((end is not None) == deleted for end in end_times.values()), end_times
