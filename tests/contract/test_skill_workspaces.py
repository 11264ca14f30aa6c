"""What becomes of skills when their workspace is deleted."""

from __future__ import annotations

from mlcore.entities.workspaces import Workspace
from mlcore.repos.workspaces import workspaces
from tests.contract import skill_archives as archives
from tests.contract.conftest import Store
from tests.contract.skill_api import ask
from tests.contract.skill_requests import get, send, uploaded, version
from tests.contract.workspace_calls import V3, world
from tests.contract.workspace_calls import ask as ask_workspaces

__all__ = ["world"]
TEAM = "team-a"


def _furnish() -> None:
    workspaces.create(Workspace(TEAM, None))
    for path in ("same", "@acme/same"):
        for number in range(3):
            reply = ask(version(path, ref=str(number), status="draft"), workspace=TEAM)
            assert reply.status == 200
        ask(send("POST", f"/{path}/tags", {"key": "k", "value": "v"}), workspace=TEAM)
        ask(send("POST", f"/{path}/aliases", {"alias": "prod", "version": 2}), workspace=TEAM)
        ask(send("POST", f"/{path}/versions/2/tags", {"key": "v", "value": "2"}), workspace=TEAM)
        ask(send("DELETE", f"/{path}/versions/3"), workspace=TEAM)


def _skills(store: Store, workspace: str) -> list[str]:
    return [
        item["SK"]["S"]
        for item in store.items()
        if item["type"]["S"] in ("skill", "skill_version") and workspace in item["PK"]["S"]
    ]


def test_restrict_refuses(world: Store) -> None:
    _furnish()
    answer = ask_workspaces("DELETE", f"{V3}/{TEAM}")
    assert (answer.status, answer.body["error_code"]) == (400, "INVALID_STATE")
    assert "table 'skills' still contains 2 resource(s)" in answer.body["message"]


def test_cascade_leaves_nothing(world: Store) -> None:
    _furnish()
    ask(uploaded("files", archives.archive(archives.FILES)), workspace=TEAM)
    ask(version("same"))
    before = _skills(world, "default")
    assert ask_workspaces("DELETE", f"{V3}/{TEAM}", mode="CASCADE").status == 204
    assert _skills(world, TEAM) == []
    assert _skills(world, "default") == before


def test_set_default_moves_them(world: Store) -> None:
    _furnish()
    kept = ("description", "tags", "aliases", "latest_version", "status", "creation_timestamp")
    before = {path: ask(get(f"/{path}"), workspace=TEAM).body for path in ("same", "@acme/same")}
    assert ask_workspaces("DELETE", f"{V3}/{TEAM}", mode="SET_DEFAULT").status == 204
    for path, skill in before.items():
        moved = ask(get(f"/{path}")).body
        assert {field: moved[field] for field in kept} == {field: skill[field] for field in kept}
        assert moved["workspace"] == "default"
        assert ask(get(f"/{path}/versions/2")).body["tags"] == {"v": "2"}
        assert ask(get(f"/{path}/versions/3")).status == 404
        assert ask(version(path)).body["version"] == 4
    assert _skills(world, TEAM) == []


def test_set_default_refuses_taken_names_and_uploaded_files(world: Store) -> None:
    _furnish()
    ask(version("@acme/same"))
    answer = ask_workspaces("DELETE", f"{V3}/{TEAM}", mode="SET_DEFAULT")
    assert (answer.status, answer.body["error_code"]) == (400, "INVALID_STATE")
    assert "  - skills: organization='acme', name='same'" in answer.body["message"]
    ask(send("DELETE", "/@acme/same"))
    upload = uploaded("same", archives.archive(archives.FILES), status="draft")
    assert ask(upload, workspace=TEAM).status == 200
    ask(send("DELETE", "/same/versions/4"), workspace=TEAM)
    answer = ask_workspaces("DELETE", f"{V3}/{TEAM}", mode="SET_DEFAULT")
    assert (answer.status, answer.body["error_code"]) == (400, "INVALID_STATE")
    assert "MLflow-backed skill versions" in answer.body["message"]
    assert ask(get("/same"), workspace=TEAM).status == 200
