"""Removals of workspaces that are killed, repeated, or meet other requests."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mlcore.auth.permissions import ANY, EXPERIMENT, WORKSPACE, Grant
from mlcore.entities.mcp_servers import MCPServer, MCPServerVersion
from mlcore.entities.mcp_servers import VersionState as ServerVersionState
from mlcore.entities.skills import (
    GIT,
    Skill,
    SkillIdentity,
    SkillSource,
    SkillVersion,
    VersionState,
)
from mlcore.entities.workspaces import Workspace
from mlcore.environment import AUTHENTICATION
from mlcore.http import lambda_handler
from mlcore.repos import mcp_servers, skills, webhooks
from mlcore.repos.removal import workspace_moves
from mlcore.repos.users import grants, roles, users
from mlcore.repos.workspaces import workspaces as repo
from tests.contract import route_environment
from tests.contract.api import Api
from tests.contract.conftest import Store, enable_workspaces
from tests.contract.interleaved_calls import meetings
from tests.contract.logged_runs import killed_at
from tests.contract.logins import ADMIN, Logins, called_as
from tests.contract.workspace_calls import V3, ask, world
from tests.doubles.fixtures import Doubles
from workspaces import removal
from workspaces.app import RPCS
from workspaces.service import DEFAULT_ROLES

__all__ = ["world"]

NUMBERS = itertools.count()
MADE = 1_700_000_000_000
VERSIONS = ("1.0.0", "1.1.0", "2.0.0")


def named() -> str:
    return f"team-{next(NUMBERS)}"


def new_experiment(workspace: str) -> Any:
    return ask("POST", "/api/2.0/mlflow/experiments/create", {"name": workspace}, workspace)


def granted(username: str, workspace: str) -> list[Grant]:
    held = users.get_profile(username).grants
    return [each.grant for each in held if each.workspace == workspace]


def test_rights_stay_in_a_workspace_that_stays(world: Store) -> None:
    """In which something is created while its removal checks that it is empty."""
    users.create("ann", "", is_admin=False)
    made: list[str] = []

    def prepare() -> tuple[Callable[[], Any], Callable[[], Any]]:
        workspace = named()
        made.append(workspace)
        repo.create(Workspace(workspace, None))
        grants.put(users.get("ann"), workspace, Grant(EXPERIMENT, "7", "EDIT"))
        roles.create("readers", workspace, None)
        return lambda: ask("DELETE", f"{V3}/{workspace}"), lambda: new_experiment(workspace)

    stayed = 0
    for removed, created in meetings(prepare):
        workspace = made[-1]
        is_here = repo.find(workspace) is not None
        assert created.status == (200 if is_here else 404)
        assert removed.status == (400 if is_here else 204), removed
        assert granted("ann", workspace) == ([Grant(EXPERIMENT, "7", "EDIT")] if is_here else [])
        assert (roles.find_named(workspace, "readers") is not None) == is_here
        stayed += is_here
    assert 0 < stayed < len(made)


@pytest.mark.parametrize("mode", ["RESTRICT", "CASCADE", "SET_DEFAULT"])
def test_a_removal_that_is_sent_twice_at_once(world: Store, mode: str) -> None:
    users.create("ann", "", is_admin=False)

    def prepare() -> tuple[Callable[[], Any], Callable[[], Any]]:
        workspace = named()
        repo.create(Workspace(workspace, None))
        grants.put(users.get("ann"), workspace, Grant(EXPERIMENT, "7", "EDIT"))
        roles.create("readers", workspace, None)
        if mode != "RESTRICT":
            furnish(workspace)

        def remove() -> Any:
            return ask("DELETE", f"{V3}/{workspace}", mode=mode)

        return remove, remove

    for answers in meetings(prepare):
        statuses = sorted(answer.status for answer in answers)
        assert statuses in ([204, 204], [204, 404]), answers


def furnish(workspace: str) -> None:
    """Named entities of the kinds that move one by one."""
    events = [{"entity": "REGISTERED_MODEL", "action": "CREATED"}]
    hook = {"name": workspace, "url": "https://127.0.0.1/x", "events": events}
    assert ask("POST", "/api/2.0/mlflow/webhooks", hook, workspace).status == 200
    made = new_experiment(workspace)
    assert made.status == 200
    logged = {"experiment_id": made.body["experiment_id"], "name": workspace}
    assert ask("POST", "/api/2.0/mlflow/logged-models", logged, workspace).status == 200
    model = {"name": workspace}
    where = "/api/2.0/mlflow/registered-models/create"
    assert ask("POST", where, model, workspace).status == 200
    server = MCPServer(
        *(workspace, workspace, None, None, None, {}, {"a": VERSIONS[0]}),
        versions={version: ServerVersionState("active", MADE) for version in VERSIONS},
        endpoints={},
        created_by=None,
        last_updated_by=None,
        created_at=MADE,
        last_updated_at=MADE,
    )
    versions = [
        MCPServerVersion(
            *(workspace, workspace, version, {}, None, None, None, {}, None, None, MADE, MADE)
        )
        for version in VERSIONS
    ]
    mcp_servers.write(server, puts=versions)
    identity, source = SkillIdentity("", workspace), SkillSource(GIT, "git@x", None, None, None)
    numbers = range(1, 4)
    skill = Skill(
        *(workspace, identity, None, None, {}, {"a": 1}),
        versions={n: VersionState("active", GIT, source.fingerprint()) for n in numbers},
        last_number=3,
        created_by=None,
        last_updated_by=None,
        created_at=MADE,
        last_updated_at=MADE,
    )
    skills.write(
        skill,
        puts=[
            SkillVersion(workspace, identity, n, source, {}, None, None, MADE, MADE, "active")
            for n in numbers
        ],
    )


def logged_models(experiment_id: str) -> list[int]:
    """The status of the answer with each logged model that the default workspace finds."""
    where = "/api/2.0/mlflow/logged-models"
    listed = ask("POST", f"{where}/search", {"experiment_ids": [experiment_id]}, "").body["models"]
    return [ask("GET", f"{where}/{each['info']['model_id']}", None, "").status for each in listed]


def moved(name: str) -> dict[str, Any]:
    """What the default workspace has of a workspace that was moved into it."""
    server, server_versions = mcp_servers.find_with_versions("default", name)
    skill, skill_versions = skills.find_with_versions("default", SkillIdentity("", name))
    assert server is not None
    assert skill is not None
    by_name = {"experiment_name": name}
    experiment = ask("GET", "/api/2.0/mlflow/experiments/get-by-name", None, "", **by_name)
    return {
        "webhooks": [hook.name for hook in webhooks.of_workspace("default") if hook.name == name],
        "server": (sorted(server.versions), server.aliases),
        "server versions": sorted(version.version for version in server_versions),
        "skill": (sorted(skill.versions), skill.aliases, skill.last_number),
        "skill versions": sorted(version.number for version in skill_versions),
        "experiment": experiment.status,
        "logged models": logged_models(experiment.body["experiment"]["experiment_id"]),
        "model": ask("GET", "/api/2.0/mlflow/registered-models/get", None, "", name=name).status,
    }


@pytest.fixture
def few_versions_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that what has three versions is deleted in several transactions."""
    monkeypatch.setattr(mcp_servers, "_VERSIONS_AT_ONCE", 1)
    monkeypatch.setattr(skills, "_VERSIONS_AT_ONCE", 1)


@pytest.mark.usefixtures("few_versions_at_once")
def test_a_killed_move_to_the_default_workspace_is_completed(world: Store) -> None:
    for request in itertools.count():
        workspace = named()
        repo.create(Workspace(workspace, None))
        furnish(workspace)
        with killed_at(request, []) as arrived:
            ask("DELETE", f"{V3}/{workspace}", mode="SET_DEFAULT")
        is_killed = repo.find(workspace) is not None
        again = ask("DELETE", f"{V3}/{workspace}", mode="SET_DEFAULT")
        assert again.status == (204 if is_killed else 404), (request, arrived[-3:], again)
        assert moved(workspace) == {
            "webhooks": [workspace],
            "server": (list(VERSIONS), {"a": VERSIONS[0]}),
            "server versions": list(VERSIONS),
            "skill": ([1, 2, 3], {"a": 1}, 3),
            "skill versions": [1, 2, 3],
            "experiment": 200,
            "logged models": [200],
            "model": 200,
        }, request
        assert repo.find(workspace) is None
        if not is_killed:
            assert request > 20
            return


def test_a_move_that_meets_a_taken_name_leaves_the_logged_models(world: Store) -> None:
    """Of an experiment whose name somebody takes after the check: they stay with it."""
    workspace = named()
    repo.create(Workspace(workspace, None))
    experiment_id = new_experiment(workspace).body["experiment_id"]
    where = "/api/2.0/mlflow/logged-models"
    made = ask("POST", where, {"experiment_id": experiment_id, "name": "m"}, workspace).body
    model = f"{where}/{made['model']['info']['model_id']}"
    taken = ask("POST", "/api/2.0/mlflow/experiments/create", {"name": workspace}, "default")
    assert taken.status == 200
    with pytest.raises(workspace_moves.NameTakenInTarget):
        workspace_moves.experiment(experiment_id, "default")
    shown = [ask("GET", model, None, each).status for each in (workspace, "default")]
    assert shown == [200, 404]


def test_a_killed_creation_is_completed_with_its_roles(
    world: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(AUTHENTICATION, "basic")
    handler = lambda_handler(RPCS)
    for request in itertools.count():
        workspace = named()
        sent = json.dumps({"name": workspace})
        with killed_at(request, []) as arrived:
            called_as(ADMIN, handler, "POST", V3, sent)
        status, text = called_as(ADMIN, handler, "POST", V3, sent)
        is_complete = len(arrived) < request
        assert status in ([400] if is_complete else [201, 400]), text
        for name, level, _ in DEFAULT_ROLES:
            role = roles.find_named(workspace, name)
            assert role is not None, request
            granted_by_role = [entry.grant for entry in role.permissions]
            assert granted_by_role == [Grant(WORKSPACE, ANY, level)], request
        if is_complete:
            return


@pytest.mark.parametrize("mode", ["CASCADE", "SET_DEFAULT"])
def test_a_removal_misses_nothing_that_the_indexes_lack(
    broken: tuple[Api, Doubles], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    """The global indexes never follow: what was created or renamed is deleted, or moved."""
    route_environment.prepare(monkeypatch, tmp_path)
    monkeypatch.setenv("INDEX_LAG_MS", "0")
    enable_workspaces(monkeypatch, "team")
    registry = "/api/2.0/mlflow/registered-models"
    experiment_id = new_experiment("team").body["experiment_id"]
    for name in ("kept", "renamed"):
        assert ask("POST", f"{registry}/create", {"name": name}, "team").status == 200
    renamed = {"name": "renamed", "new_name": "new"}
    assert ask("POST", f"{registry}/rename", renamed, "team").status == 200
    refused = ask("DELETE", f"{V3}/team", None, "", mode="RESTRICT")
    assert (refused.status, "still contains 2" in refused.text) == (400, True)
    assert ask("DELETE", f"{V3}/team", None, "", mode=mode).status in {200, 204}
    shown = [
        ask("GET", "/api/2.0/mlflow/experiments/get", None, "", experiment_id=experiment_id),
        *(ask("GET", f"{registry}/get", None, "", name=name) for name in ("kept", "new")),
    ]
    assert {each.status for each in shown} == {404 if mode == "CASCADE" else 200}
    _, doubles = broken
    items = doubles.direct.scan(TableName=doubles.table)["Items"]
    assert not [item for item in items if item["PK"]["S"] == "WORKSPACE#team"]


def test_a_role_does_not_outlive_its_workspace(
    world: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A role that is created when the roles of the workspace are deleted already would give rights
    in the next workspace of the name."""
    monkeypatch.setenv(AUTHENTICATION, "basic")
    workspace, answers = named(), list[int]()
    repo.create(Workspace(workspace, None))
    fields = {"name": "late", "workspace": workspace}

    def created() -> int:
        return Logins().ask(ADMIN, "POST", "3.0/mlflow/roles/create", **fields).status

    original = removal._delete_grants

    def then_create(name: str) -> None:
        original(name)
        answers.append(created())

    monkeypatch.setattr(removal, "_delete_grants", then_create)
    assert ask("DELETE", f"{V3}/{workspace}", None, "", mode="CASCADE").status == 204
    assert answers == [400]
    assert roles.find_named(workspace, "late") is None
    assert created() == 400
    repo.create(Workspace(workspace, None))
    assert created() == 200
