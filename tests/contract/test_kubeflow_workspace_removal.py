"""What Kubeflow's API shows of a workspace that was deleted: all of it in the default workspace, or
nothing; and nothing in a later workspace of the same name."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from mlcore.db import keys
from mlcore.db.keys.kubeflow import KUBEFLOW_PATTERNS
from mlcore.repos.removal import workspace_moves
from mlcore.repos.workspaces import workspaces
from tests.contract.conftest import Store
from tests.contract.interleaved_calls import Act, meetings
from tests.contract.kubeflow_api import KubeflowApi
from tests.contract.logged_runs import killed_at
from tests.contract.workspace_calls import V3, ask, world

__all__ = ["world"]

SHARED = "same"
OF_KUBEFLOW = {pattern.name for pattern in KUBEFLOW_PATTERNS}
"""Types of the items that only Kubeflow's API needs."""


def furnish(workspace: str, name: str) -> list[str]:
    """Creates one entity of each kind. Returns the paths that show them."""
    api = KubeflowApi(workspace=workspace)
    model = api.model(name, externalId=f"m {name}")["id"]
    version = api.version(model, "1", externalId=f"v {name}")["id"]
    artifact = api.artifact(version, name="a", uri="s3://e/x", externalId=f"a {name}")["id"]
    experiment = api.post("experiments", name=name, externalId=f"e {name}")["id"]
    fields = {"experimentId": experiment, "externalId": f"r {name}"}
    run = api.post("experiment_runs", name="r", **fields)["id"]
    metric = {"artifactType": "metric", "name": "loss", "value": 1.0}
    api.post(f"experiment_runs/{run}/artifacts", **metric)
    environment = api.post("serving_environments", name=name, externalId=f"s {name}")["id"]
    body = {"registeredModelId": model, "servingEnvironmentId": environment}
    service = api.post("inference_services", name="s", **body)["id"]
    api.post(f"inference_services/{service}/serves", modelVersionId=version, name="x")
    return [
        f"registered_models/{model}",
        f"registered_models/{model}/versions",
        f"registered_model?externalId=m {name}",
        f"model_versions/{version}",
        f"model_versions/{version}/artifacts",
        f"artifacts/{artifact}",
        f"artifact?externalId=a {name}",
        f"experiments/{experiment}",
        f"experiment?externalId=e {name}",
        f"experiment_runs/{run}",
        f"experiments/{experiment}/experiment_runs",
        f"serving_environments/{environment}",
        f"serving_environment?name={name}",
        f"serving_environments/{environment}/inference_services",
        f"inference_services/{service}",
        f"inference_services/{service}/serves",
    ]


LISTS = (
    *("registered_models", "model_versions", "artifacts", "experiments", "experiment_runs"),
    *("serving_environments", "inference_services"),
)


def shown(workspace: str, paths: list[str]) -> list[Any]:
    api = KubeflowApi(workspace=workspace)
    answers = []
    for path in paths:
        plain, _, query = path.partition("?")
        pairs = dict([query.split("=")] if query else [])
        answers.append(api.ask("GET", plain, None, **pairs)[:2])
    return [strip(answer) for answer in answers]


def strip(value: Any) -> Any:
    """Without times of change, which a move counts as one."""
    if isinstance(value, dict):
        return {k: strip(v) for k, v in value.items() if k != "lastUpdateTimeSinceEpoch"}
    return [strip(each) for each in value] if isinstance(value, list | tuple) else value


def listed(workspace: str) -> set[str]:
    api = KubeflowApi(workspace=workspace)
    return {
        f"{path}/{item['id']}"
        for path in LISTS
        for item in api.items(path)
        if item["name"] != "Default"
    }


@pytest.mark.parametrize("mode", ["SET_DEFAULT", "CASCADE"])
def test_nothing_stays_behind(world: Store, mode: str) -> None:
    """Not even if the deletion is killed and repeated."""
    for request in itertools.count(0, 7):
        name = f"team-{request}"
        assert ask("POST", V3, {"name": name}).status == 201
        paths = furnish(name, name)
        before, lists = shown(name, paths), listed(name)
        assert {status for status, _ in before} == {200}
        refused = ask("DELETE", f"{V3}/{name}", mode="RESTRICT")
        assert refused.status == 400
        with killed_at(request, []):
            ask("DELETE", f"{V3}/{name}", mode=mode)
        is_killed = workspaces.find(name) is not None
        assert ask("DELETE", f"{V3}/{name}", mode=mode).status == (204 if is_killed else 404)
        if mode == "SET_DEFAULT":
            assert shown("default", paths) == before, request
            assert lists <= listed("default")
        else:
            assert listed("default") == set()
            items = world.direct.scan(TableName=world.table)["Items"]
            assert not {item["type"]["S"] for item in items} & OF_KUBEFLOW, request
        assert ask("POST", V3, {"name": name}).status == 201
        assert listed(name) == set(), request
        assert {status for status, body in shown(name, paths) if body.get("items", True)} <= {404}
        if not is_killed:
            break


def test_what_meets_a_taken_name_stays_as_it_is(world: Store) -> None:
    """A name of the default workspace that is taken after the removal's check."""
    assert ask("POST", V3, {"name": "team"}).status == 201
    paths = furnish("team", "kept")
    api, team = KubeflowApi(workspace="default"), KubeflowApi(workspace="team")
    api.model("kept")
    api.post("experiments", name="kept")
    before, lists, of_default = shown("team", paths), listed("team"), listed("default")
    key = keys.registered_model("team", "kept")
    with pytest.raises(workspace_moves.NameTakenInTarget):
        workspace_moves.registered_model(key, "default")
    experiment = team.get("experiment", name="kept")["id"]
    with pytest.raises(workspace_moves.NameTakenInTarget):
        workspace_moves.experiment(experiment, "default")
    assert shown("team", paths) == before
    assert listed("team") == lists
    assert listed("default") == of_default


def test_an_external_id_that_is_taken_is_lost(world: Store) -> None:
    kept = furnish("default", SHARED)
    before = shown("default", kept)
    assert ask("POST", V3, {"name": "team"}).status == 201
    api = KubeflowApi(workspace="team")
    moved = [
        f"experiments/{api.post('experiments', name='e', externalId=f'e {SHARED}')['id']}",
        f"registered_models/{api.model('m', externalId=f'm {SHARED}')['id']}",
        "serving_environments/"
        + api.post("serving_environments", name="s", externalId=f"s {SHARED}")["id"],
    ]
    assert ask("DELETE", f"{V3}/team", mode="SET_DEFAULT").status == 204
    for path in moved:
        entity = KubeflowApi().get(path)
        assert "externalId" not in entity
        KubeflowApi().delete(path)
    assert shown("default", kept) == before


@pytest.mark.parametrize(
    ("path", "mode", "is_elsewhere"),
    [
        ("serving_environments", "SET_DEFAULT", False),
        ("serving_environments", "SET_DEFAULT", True),
        ("serving_environments", "RESTRICT", False),
        ("artifacts", "CASCADE", False),
        ("artifacts", "RESTRICT", False),
    ],
)
def test_nothing_is_created_in_a_workspace_that_is_deleted(
    world: Store, path: str, mode: str, *, is_elsewhere: bool
) -> None:
    """Nor does an environment stay there whose name is taken in the default workspace just then."""
    names: list[str] = []
    more = {"artifactType": "model-artifact", "uri": "s3://e/x"} if path == "artifacts" else {}

    def prepare() -> tuple[Act, Act]:
        name = f"team-{len(names)}"
        names.append(name)
        assert ask("POST", V3, {"name": name}).status == 201
        if mode != "RESTRICT":
            KubeflowApi(workspace=name).post("serving_environments", name=name)
        api = KubeflowApi(workspace="default" if is_elsewhere else name)
        return (
            lambda: ask("DELETE", f"{V3}/{name}", mode=mode).status,
            lambda: api.ask("POST", path, {"name": name, **more}).status,
        )

    for removed, made in meetings(prepare):
        assert (removed, made) != (400, 404)
        assert removed in {204, 400}
        if removed == 204:
            assert ask("POST", V3, {"name": names[-1]}).status == 201
            assert listed(names[-1]) == set(), (made, len(names))


def test_an_artifact_whose_version_moves_meanwhile_is_kept_or_refused(world: Store) -> None:
    names: list[str] = []
    body = {"name": "a", "artifactType": "model-artifact", "uri": "s3://e/x"}

    def prepare() -> tuple[Act, Act]:
        name = f"team-{len(names)}"
        names.append(name)
        assert ask("POST", V3, {"name": name}).status == 201
        api = KubeflowApi(workspace=name)
        version = api.version(api.model(name)["id"], "1")["id"]
        return (
            lambda: api.ask("POST", f"model_versions/{version}/artifacts", body)[:2],
            lambda: ask("DELETE", f"{V3}/{name}", mode="SET_DEFAULT").status,
        )

    for (status, made), removed in meetings(prepare):
        assert (removed, status in {201, 404}) == (204, True)
        assert ask("POST", V3, {"name": names[-1]}).status == 201
        assert listed(names[-1]) == set(), len(names)
        if status == 201:
            assert KubeflowApi().get(f"artifacts/{made['id']}")["name"] == "a"
