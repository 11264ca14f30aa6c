"""Requests to move runs: what is refused, who may, who reads the files afterwards, what it costs,
and what the system tables show."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest

import artifacts.app
from indexer.lifecycle import file_removals
from lander import app as lander
from mlcore import file_removal_queue
from mlcore.artifacts.local_folder_store import Folder
from mlcore.auth.permissions import EXPERIMENT, Grant
from mlcore.environment import AUTHENTICATION
from mlcore.http import lambda_handler
from mlcore.repos.removal import permanent_deletion
from mlcore.repos.runs.core import moving, runs
from mlcore.repos.traces import links
from mlcore.repos.users import grants, users
from runs import app
from runs import messages as m
from tests.contract.api import JSON, Answer, called
from tests.contract.conftest import Store, enable_workspaces, forget
from tests.contract.file_world import files
from tests.contract.index_state import deliver
from tests.contract.lake import Tables, tables
from tests.contract.logins import ADMIN, called_as, named
from tests.contract.removals import remove_run
from tests.contract.streams import following

__all__ = ["files", "tables"]

ROUTE = "/api/3.0/mlflow-serverless/runs/move"
ARTIFACTS = "/api/2.0/mlflow-artifacts/artifacts"
NUMBERS = itertools.count()


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moving, "QUIET_SECONDS", -1)


def move(experiment: Any, *run_ids: Any, **more: Any) -> Answer:
    return called(
        app.handler, "POST", ROUTE, {"run_ids": run_ids, "experiment_id": experiment, **more}
    )


def experiments(store: Store, count: int = 2) -> list[str]:
    return [store.api.new_experiment(f"move requests {next(NUMBERS)}") for _ in range(count)]


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"run_ids": []}, 400),
        ({"run_ids": None}, 400),
        ({"run_ids": "{run}"}, 400),
        ({"run_ids": [None]}, 400),
        ({"run_ids": [["{run}"]]}, 400),
        ({"run_ids": ["{run}"] * (m.MAX_MOVED_RUNS + 1)}, 400),
        ({"run_ids": ["{run}", "0" * 26]}, 404),
        ({"experiment_id": None}, 400),
        ({"experiment_id": ["{target}"]}, 400),
        ({"experiment_id": "999999"}, 404),
        ({"experiment_id": "x#y"}, 400),
        ({"experimentId": "{source}"}, 400),
        ({"experiment_id": "{deleted}"}, 400),
    ],
)
def test_a_bad_request_moves_nothing(store: Store, fields: dict[str, Any], status: int) -> None:
    source, target, deleted = experiments(store, 3)
    run_id = store.api.new_run(source)
    store.api.post("experiments/delete", experiment_id=deleted)
    texts = {"run": run_id, "target": target, "source": source, "deleted": deleted}
    wanted = json.dumps({"run_ids": [run_id], "experiment_id": target, **fields})
    for name, value in texts.items():
        wanted = wanted.replace(f"{{{name}}}", value)
    before = store.items()
    answer = called(app.handler, "POST", ROUTE, json.loads(wanted))
    assert answer.status == status, answer.body
    assert store.items() == before


def test_runs_that_something_else_names_are_refused(store: Store) -> None:
    """And none of the others in the request moves."""
    source, target = experiments(store)
    free = store.api.new_run(source)
    refused = {
        name: store.api.new_run(source)
        for name in ("deleted", "output", "logged model", "trace", "kubeflow")
    }
    store.api.post("runs/delete", run_id=refused["deleted"])
    model = {"model_id": "m-1", "step": 0}
    store.api.post("runs/outputs", run_id=refused["output"], models=[model])
    store.api.post(
        "logged-models", experiment_id=source, name="m", source_run_id=refused["logged model"]
    )
    links.put(refused["trace"], ["tr-1"])
    update = {"Key": {"PK": {"S": f"EXP#{source}"}, "SK": {"S": f"R#{refused['kubeflow']}"}}}
    store.direct.update_item(
        TableName=store.table,
        **update,
        UpdateExpression="SET #n = :n",
        ExpressionAttributeNames={"#n": "number"},
        ExpressionAttributeValues={":n": {"N": "7"}},
    )
    before = store.items()
    for name, run_id in refused.items():
        answer = move(target, free, run_id)
        assert answer.status == 400, (name, answer)
        assert run_id in answer.body["message"]
        assert store.items() == before
    assert move(target, free).status == 200


def test_a_run_that_was_just_written_to_is_refused(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, target = experiments(store)
    run_id = store.api.new_run(source)
    monkeypatch.setattr(moving, "QUIET_SECONDS", 60)
    before = store.items()
    answer = move(target, run_id)
    assert (answer.status, answer.code) == (400, "INVALID_STATE")
    assert "60 seconds" in answer.body["message"]
    assert move(source, run_id).status == 200
    assert store.items() == before


def test_a_run_does_not_leave_its_workspace(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    source, _ = experiments(store)
    run_id = store.api.new_run(source)
    enable_workspaces(monkeypatch, "other")
    other = type(store.api)("other")
    target = other.new_experiment("there")
    for workspace in ("default", "other"):
        headers = {**JSON, "x-mlflow-workspace": workspace}
        body = {"run_ids": [run_id], "experiment_id": target}
        before = store.items()
        assert called(app.handler, "POST", ROUTE, body, headers).status == 404
        assert store.items() == before


@pytest.mark.parametrize(
    ("on_source", "on_target", "status"),
    [
        ("EDIT", "EDIT", 200),
        ("EDIT", "READ", 403),
        ("READ", "EDIT", 403),
        ("EDIT", "", 403),
        ("", "EDIT", 403),
        ("MANAGE", "NO_PERMISSIONS", 403),
    ],
)
def test_only_those_who_may_edit_both_experiments_move(
    store: Store, monkeypatch: pytest.MonkeyPatch, on_source: str, on_target: str, status: int
) -> None:
    monkeypatch.setenv("DEFAULT_PERMISSION", "NO_PERMISSIONS")
    source, target = experiments(store)
    own, _ = experiments(store)
    run_id, own_run = store.api.new_run(source), store.api.new_run(own)
    name = f"mover {next(NUMBERS)}"
    users.create(name, "", is_admin=False)
    granted = ((source, on_source), (target, on_target), (own, "MANAGE"))
    for experiment, level in granted:
        if level:
            grants.put(users.get(name), "default", Grant(EXPERIMENT, experiment, level))
    monkeypatch.setenv(AUTHENTICATION, "basic")
    handler = lambda_handler(app.RPCS)

    def ask(text: str) -> tuple[int, str]:
        return called_as(named(name), handler, "POST", ROUTE, text)

    before = store.items()
    texts = [
        f'{{"run_ids":["{own_run}","{run_id}"],"experiment_id":"{target}"}}',
        f'{{"runIds":["{run_id}"],"experimentId":"{target}"}}',
        f'{{"run_ids":["{own_run}"],"run_ids":["{run_id}"],"experiment_id":"{target}"}}',
        f'{{"run_ids":["{run_id}"],"experiment_id":"{own}","experiment_id":"{target}"}}',
    ]
    for text in texts if status == 403 else ():
        assert ask(text)[0] in (400, 403), text
        assert store.items() == before
    plain = f'{{"run_ids":["{run_id}"],"experiment_id":"{target}"}}'
    answer = ask(plain)
    assert answer[0] == status
    if not on_source:
        assert answer == ask(plain.replace(run_id, "0" * 26))


def test_rights_on_the_run_and_its_files_follow_the_experiment(
    store: Store, files: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also in processes that had cached the old experiment, and back again."""
    monkeypatch.setenv("DEFAULT_PERMISSION", "NO_PERMISSIONS")
    first, second = experiments(store)
    moved, staying = store.api.new_run(first), store.api.new_run(first)
    for run_id in (moved, staying):
        files.put(f"{first}/{run_id}/artifacts/a/f", b"x")
    readers = {}
    for experiment in (first, second):
        name = f"reader {next(NUMBERS)}"
        users.create(name, "", is_admin=False)
        grants.put(users.get(name), "default", Grant(EXPERIMENT, experiment, "EDIT"))
        readers[experiment] = named(name)
    monkeypatch.setenv(AUTHENTICATION, "basic")
    of_runs = lambda_handler(app.RPCS)
    of_files = lambda_handler(artifacts.app.RPCS, artifacts.app.PLAIN_ROUTES)
    point = {"run_id": moved, "key": "m", "value": 1, "timestamp": 1, "step": 1}
    store.api.post("runs/log-metric", **point)

    def statuses(experiment: str, run_id: str) -> set[int]:
        query = f"run_id={run_id}"
        logged = json.dumps({**point, "run_id": run_id})
        requests = [
            (of_runs, "GET", "/api/2.0/mlflow/runs/get", query),
            (of_runs, "GET", "/api/2.0/mlflow/metrics/get-history", f"{query}&metric_key=m"),
            (of_runs, "POST", "/api/2.0/mlflow/runs/log-metric", logged),
            (of_files, "GET", "/api/2.0/mlflow/artifacts/list", query),
            (of_files, "GET", "/get-artifact", f"{query}&path=a/f"),
            (of_files, "GET", f"{ARTIFACTS}/{first}/{run_id}/artifacts/a/f", ""),
            (of_files, "PUT", f"{ARTIFACTS}/{first}/{run_id}/artifacts/a/f", "y"),
            (of_files, "GET", ARTIFACTS, f"path={first}/{run_id}/artifacts/a"),
        ]
        results = set()
        for stale in (None, first, second):
            for handler, method, path, sent in requests:
                forget()
                if stale is not None and run_id == moved:
                    runs.remember(run_id, stale)
                results.add(called_as(readers[experiment], handler, method, path, sent)[0])
        return results

    assert (statuses(first, moved), statuses(second, moved)) == ({200}, {403})
    for there, elsewhere in ((second, first), (first, second), (second, first)):
        assert (
            called_as(
                ADMIN,
                of_runs,
                "POST",
                ROUTE,
                json.dumps({"run_ids": [moved], "experiment_id": there}),
            )[0]
            == 200
        )
        assert statuses(there, moved) == {200}
        assert statuses(elsewhere, moved) == {403}
        assert statuses(first, staying) == {200}
        assert statuses(second, staying) == {403}
        tree = called_as(readers[first], of_files, "DELETE", f"{ARTIFACTS}/{first}", "")[0]
        assert tree == 403


def test_files_of_a_moved_run_stay_when_its_old_experiment_is_removed(
    store: Store, files: Folder
) -> None:
    """And are removed with the run."""
    first, second = experiments(store)
    moved, staying = store.api.new_run(first), store.api.new_run(first)
    for run_id in (moved, staying):
        files.put(f"{first}/{run_id}/artifacts/f", b"x")
    assert move(second, moved).status == 200
    store.api.post("experiments/delete", experiment_id=first)
    permanent_deletion.experiment(first)
    assert files.get(f"{first}/{moved}/artifacts/f") == b"x"
    assert files.get(f"{first}/{staying}/artifacts/f") is None
    assert store.api.run(moved)["info"]["experiment_id"] == second
    remove_run(moved, second)
    assert files.get(f"{first}/{moved}/artifacts/f") is None
    assert not [item for item in store.items() if moved in str(item)]


def test_the_budget(store: Store) -> None:
    source, target = experiments(store)
    run_id = store.api.new_run(source)
    point = {"key": "m", "value": 1, "timestamp": 1, "step": 1}
    store.api.post("runs/log-batch", run_id=run_id, metrics=[point], params=[], tags=[])
    assert move(target, run_id).status == 200
    assert store.api.cost.round_trips <= 12
    assert store.api.cost.write_units <= 29


@pytest.mark.parametrize("published_before", [True, False])
@pytest.mark.parametrize("first_landed", ["source", "target", "both"])
def test_the_system_tables_have_the_run_once(
    store: Store, tables: Tables, published_before: bool, first_landed: str
) -> None:
    """In its new experiment, whichever shard of the stream comes first."""
    pytest.importorskip("mltables.publisher")
    source, target = experiments(store)
    moved, staying = store.api.new_run(source), store.api.new_run(source)
    for run_id in (moved, staying):
        point = {"key": "m", "value": 1, "timestamp": 1, "step": 1}
        store.api.post("runs/log-batch", run_id=run_id, metrics=[point])
    if published_before:
        tables.follow()
    assert move(target, moved).status == 200
    records = tables.stream.fresh()
    first = f"EXP#{source if first_landed == 'source' else target}"
    parts = [
        [record for record in records if (record["dynamodb"]["Keys"]["PK"]["S"] == first) == own]
        for own in (True, False)
    ]
    for part in [records] if first_landed == "both" else parts:
        lander.handler({"Records": part}, None)
        tables.follow()
        rows = {row["run_id"]: row["experiment_id"] for row in tables.rows("runs_latest")}
        assert len(tables.rows("runs_latest")) == len(rows)
        if published_before or part is not parts[0]:
            assert rows == {moved: target, staying: source}
    points = [row["run_id"] for row in tables.rows("run_metrics_history")]
    assert sorted(points) == sorted([moved, staying])


def test_files_of_a_moved_run_go_with_its_new_experiment(
    store: Store, files: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The indexer removes them, since they are not in the folder of that experiment."""
    monkeypatch.setenv(file_removals.QUEUE, "a queue")
    areas: list[file_removal_queue.Removal] = []
    monkeypatch.setattr(file_removal_queue, "send", lambda _, removals: areas.extend(removals))
    source, target = experiments(store)
    moved, staying = store.api.new_run(source), store.api.new_run(source)
    with following(store) as stream:
        assert move(target, moved).status == 200
        records = stream.fresh()
        assert deliver(records) == len(records)
        assert areas == []
        store.api.post("experiments/delete", experiment_id=target)
        permanent_deletion.experiment(target)
        records = stream.fresh()
        assert deliver(records) == len(records)
    folders = {area.key for area in areas if not area.key.startswith(".internal")}
    assert f"{source}/{moved}/artifacts" in folders
    assert not any(staying in folder or folder == source for folder in folders)
