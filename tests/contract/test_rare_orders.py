"""Requests that meet others, or late records of the stream, in orders that are rare: what was
answered stays true."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mlcore import errors
from mlcore.entities.lifecycle_stages import ACTIVE
from mlcore.entities.logged_models import LoggedModel
from mlcore.entities.mcp_servers import MCPServer
from mlcore.entities.runs import RUNNING, Run
from mlcore.entities.users import Role, User
from mlcore.optimistic_retry import WriteConflict
from mlcore.process_cache import ProcessCache
from mlcore.repos import mcp_servers
from mlcore.repos.experiments import experiments
from mlcore.repos.logged_models import logged_models
from mlcore.repos.removal import permanent_deletion
from mlcore.repos.runs.core import creations, runs
from mlcore.repos.users import roles, users
from mlcore.repos.users.roles import RoleNameTaken
from mlcore.repos.users.users import UserExists
from tests.contract.artifact_folder import artifacts_in
from tests.contract.conftest import Store, forget
from tests.contract.index_state import deliver
from tests.contract.interleaved_calls import Act, meetings
from tests.contract.removals import remove_model, remove_run
from tests.contract.streams import following
from tests.contract.trace_calls import export, info, span, start, tell, whole

NUMBERS = itertools.count()


@pytest.fixture(autouse=True)
def _files(tmp_path: Path) -> Iterator[None]:
    with artifacts_in(tmp_path):
        yield


def name() -> str:
    return f"n{next(NUMBERS)}"


def imported_run(run_id: str, experiment_id: str) -> None:
    run = Run(
        run_id=run_id,
        experiment_id=experiment_id,
        run_name="imported",
        user_id="",
        status=RUNNING,
        start_time=1,
        end_time=None,
        artifact_uri=f"mlflow-artifacts:/{experiment_id}/{run_id}/artifacts",
        lifecycle_stage=ACTIVE,
        metrics={},
        params={},
        tags={},
    )
    creations.create(run, experiments.get(experiment_id, "default").experiment)


def imported_model(model_id: str, experiment_id: str) -> None:
    model = LoggedModel(
        model_id=model_id,
        experiment_id=experiment_id,
        name="imported",
        artifact_location=f"mlflow-artifacts:/{experiment_id}/models/{model_id}/artifacts",
        creation_time=1,
        last_update_time=1,
        status="LOGGED_MODEL_READY",
        lifecycle_stage=ACTIVE,
        model_type="",
        source_run_id="",
        params={},
        tags={},
    )
    logged_models.create(model, "default")


def logged_trace(trace_id: str, experiment_id: str) -> None:
    assert export(experiment_id, [span(trace_id.removeprefix("tr-"), 1)]).status == 200
    tell("POST", "3.0/traces", start(experiment_id, trace_id, state="OK"))


def experiment_of_trace(trace_id: str) -> str:
    assert len(whole(trace_id)["spans"]) == 1
    where: str = info(trace_id)["trace_location"]["mlflow_experiment"]["experiment_id"]
    return where


def remove_trace(trace_id: str, experiment_id: str) -> None:
    which = {"experiment_id": experiment_id, "request_ids": [trace_id]}
    assert tell("POST", "3.0/traces/delete-traces", which) == {"traces_deleted": 1}


KINDS: dict[str, tuple[Callable[[str, str], None], Callable[[str, str], None], Any]] = {
    "run": (
        imported_run,
        remove_run,
        lambda run_id: runs.load(run_id, "default").experiment.experiment_id,
    ),
    "logged model": (
        imported_model,
        remove_model,
        lambda model_id: logged_models.load(model_id, "default").item.experiment_id,
    ),
    "trace": (logged_trace, remove_trace, experiment_of_trace),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("where", ["elsewhere", "in its place"])
@pytest.mark.parametrize("late", [False, True])
def test_what_was_removed_is_made_again(store: Store, kind: str, where: str, late: bool) -> None:
    """Imported or logged again at once, and found by processes that knew its former experiment,
    whenever the records of the removal come."""
    make, remove, experiment_of = KINDS[kind]
    first = store.api.new_experiment(name())
    second = store.api.new_experiment(name()) if where == "elsewhere" else first
    item_id = f"tr-{next(NUMBERS):032x}"
    with following(store, latest=True) as stream:
        make(item_id, first)
        remove(item_id, first)
        records = stream.fresh()
        if not late:
            assert deliver(records) == len(records)
        make(item_id, second)
        if late:
            assert deliver(records) == len(records)
        for cached in ((), ("place of a run", "place of a logged model", "place of a trace")):
            forget()
            for noun in cached:
                places: ProcessCache[str, str] = ProcessCache(noun)
                places.put(item_id, first)
            try:
                found = experiment_of(item_id)
            except errors.RunMoved:  # the request is executed again
                found = experiment_of(item_id)
            assert found == second
        records = stream.fresh()
        assert deliver(records) == len(records)
        forget()
        assert experiment_of(item_id) == second


@pytest.mark.parametrize("kind", ["run", "logged model"])
def test_what_is_restored_while_it_is_removed(store: Store, kind: str) -> None:
    """It is either restored, and whole, or gone."""
    api = store.api
    experiment = api.new_experiment(name())
    made: list[str] = []

    def prepare() -> tuple[Act, Act]:
        if kind == "run":
            item_id = api.new_run(experiment)
            point = {"key": "loss", "value": 1, "timestamp": 1, "step": 1}
            api.post("runs/log-batch", run_id=item_id, metrics=[point])
            api.post("runs/delete", run_id=item_id)
            restore: Act = lambda: api.post("runs/restore", run_id=item_id)  # noqa: E731
            remove: Act = lambda: permanent_deletion.run(experiment, item_id, "default")  # noqa: E731
        else:
            item_id = f"m-{next(NUMBERS):032x}"
            imported_model(item_id, experiment)
            logged_models.delete(logged_models.load(item_id, "default"))
            restore = lambda: logged_models.restore(logged_models.load(item_id, "default"))  # noqa: E731
            remove = lambda: permanent_deletion.logged_model(experiment, item_id, "default")  # noqa: E731
        made.append(item_id)
        return remove, restore

    kept = 0
    for _, restored in meetings(prepare):
        forget()
        if isinstance(restored, Exception):
            text = str(store.items())
            assert made[-1] not in text, restored
        elif kind == "run":
            kept += 1
            assert api.run(made[-1])["info"]["lifecycle_stage"] == ACTIVE
            assert api.history(made[-1], "loss") == [(1, 1, 1.0)]
        else:
            kept += 1
            assert logged_models.load_active(made[-1], "default")
    assert 0 < kept < len(made)


@pytest.mark.parametrize("is_active", [False, True])
def test_an_experiment_that_is_restored_while_it_is_removed(
    store: Store, *, is_active: bool
) -> None:
    """It is restored whole, or it is gone and the restoration was refused. The deletion of a
    workspace removes active experiments, too: then nothing is restored."""
    made: list[tuple[str, str]] = []

    def prepare() -> tuple[Act, Act]:
        experiment_id = store.api.new_experiment(name())
        made.append((experiment_id, store.api.new_run(experiment_id)))
        if not is_active:
            store.api.post("experiments/delete", experiment_id=experiment_id)

        def remove() -> Any:
            return permanent_deletion.experiment(experiment_id, only_deleted=not is_active)

        def restore() -> Any:
            return store.api.ask("POST", "experiments/restore", experiment_id=experiment_id)

        return remove, restore

    outcomes = set()
    for removed, restored in meetings(prepare):
        forget()
        experiment_id, run_id = made[-1]
        there = store.api.ask("GET", "experiments/get", experiment_id=experiment_id)
        run = store.api.ask("GET", "runs/get", run_id=run_id)
        is_refused = isinstance(removed, permanent_deletion.NoLongerDeleted)
        assert (there.status, run.status) == ((200, 200) if is_refused else (404, 404)), removed
        assert restored.status == 200 if is_refused else restored.code != "INTERNAL_ERROR"
        if is_refused:
            assert there.body["experiment"]["lifecycle_stage"] == "active"
        elif not is_active:
            assert restored.code in {"INVALID_STATE", "RESOURCE_DOES_NOT_EXIST"}
        outcomes.add(is_refused)
    assert outcomes == ({False} if is_active else {True, False})


def test_a_user_who_is_made_while_a_former_one_is_deleted(store: Store) -> None:
    made: list[str] = []

    def prepare() -> tuple[Act, Act]:
        username = name()
        made.append(username)
        users.create(username, "hash", is_admin=False)
        profile = users.get_profile(username)
        return (
            lambda: users.delete(profile),
            lambda: users.create(username, "other", is_admin=False),
        )

    for deleted, created in meetings(prepare):
        assert deleted is None
        listed = [profile.user for profile in users.find_all() if profile.user.username == made[-1]]
        assert listed == ([created] if isinstance(created, User) else [])
        assert isinstance(created, User | UserExists)


def test_a_deletion_that_comes_late_deletes_no_later_user(store: Store) -> None:
    users.create("ann", "hash", is_admin=False)
    former = users.get_profile("ann")
    users.delete(former)
    made = users.create("ann", "hash", is_admin=False)
    users.delete(former)
    assert [profile.user for profile in users.find_all()] == [made]


def test_a_role_that_is_renamed_while_it_is_deleted(store: Store) -> None:
    """Leaves no name that nobody can use."""
    made: list[Role] = []

    def prepare() -> tuple[Act, Act]:
        role = roles.create(name(), "default", None)
        made.append(role)
        return (
            lambda: roles.delete(role.role_id),
            lambda: roles.update(role.role_id, f"{role.name}x", None),
        )

    for deleted, _ in meetings(prepare):
        assert deleted is None
        for free in (made[-1].name, f"{made[-1].name}x"):
            assert isinstance(roles.create(free, "default", None), Role), RoleNameTaken


def test_a_late_write_changes_no_later_server(store: Store) -> None:
    """An MCP server that was deleted and created again since it was read; both are at their first
    revision."""
    for late in (mcp_servers.write, mcp_servers.delete):
        server_name = name()
        mcp_servers.write(server_of(server_name, created_at=1))
        former = mcp_servers.find("default", server_name)
        assert former is not None
        mcp_servers.delete(former)
        mcp_servers.write(server_of(server_name, created_at=2))
        later = mcp_servers.find("default", server_name)
        with pytest.raises(WriteConflict):
            late(former)
        assert mcp_servers.find("default", server_name) == later


def server_of(server_name: str, created_at: int) -> MCPServer:
    return MCPServer(
        *("default", server_name, None, None, None, {}, {}),
        versions={},
        endpoints={},
        created_by=None,
        last_updated_by=None,
        created_at=created_at,
        last_updated_at=created_at,
    )
