"""Requests to Kubeflow's API that meet the deletion of their workspace, which moves everything to
the default one."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest

from mlcore.optimistic_retry import retry_on_conflict
from mlcore.repos.removal import workspace_moves
from tests.contract.conftest import Store
from tests.contract.interleaved_calls import Act, meetings
from tests.contract.kubeflow_api import KubeflowApi
from tests.contract.workspace_calls import V3, ask, world

__all__ = ["world"]

names = itertools.count()
REGISTRY = "/api/2.0/mlflow"


class Scene:
    """A model with a version and an experiment with a run, in a workspace of their own."""

    def __init__(self) -> None:
        self.workspace = f"team-{next(names)}"
        assert ask("POST", V3, {"name": self.workspace}).status == 201
        self.api = KubeflowApi(workspace=self.workspace)
        self.model = self.api.model(self.workspace)["id"]
        self.version = self.api.version(self.model, "1")["id"]
        body = {"name": self.workspace, "externalId": f"old {self.workspace}"}
        self.experiment = self.api.post("experiments", **body)["id"]
        self.run = self.api.post("experiment_runs", name="r", experimentId=self.experiment)["id"]

    def of_mlflow(self, path: str, **fields: Any) -> None:
        assert ask("POST", f"{REGISTRY}/{path}", fields, self.workspace).status == 200

    def named(self, path: str) -> Act:
        body = {"externalId": self.workspace}
        return lambda: self.api.ask("PATCH", path, body).status

    def made(self, path: str, **fields: Any) -> Act:
        body = {"name": "new", "externalId": self.workspace, **fields}
        return lambda: self.api.ask("POST", path, body).status

    def listed(self, path: str) -> Act:
        return lambda: self.api.ask("GET", path).status


def list_runs(scene: Scene) -> Act:
    scene.of_mlflow("runs/create", experiment_id=scene.experiment, run_name="mlflow")
    return scene.listed("experiment_runs")


def list_versions(scene: Scene) -> Act:
    scene.of_mlflow("model-versions/create", name=scene.workspace, source="s3://e/x")
    return scene.listed(f"registered_models/{scene.model}/versions")


def list_models(scene: Scene) -> Act:
    scene.of_mlflow("registered-models/create", name=f"{scene.workspace} 2")
    return scene.listed("registered_models")


ACTS: dict[str, tuple[str, Callable[[Scene], Act]]] = {
    "make run": (
        "experiment_run",
        lambda scene: scene.made("experiment_runs", experimentId=scene.experiment),
    ),
    "make version": (
        "model_version",
        lambda scene: scene.made("model_versions", registeredModelId=scene.model),
    ),
    "list runs": ("", list_runs),
    "list versions": ("", list_versions),
    "list models": ("", list_models),
    "name run": ("experiment_run", lambda scene: scene.named(f"experiment_runs/{scene.run}")),
    "name version": (
        "model_version",
        lambda scene: scene.named(f"model_versions/{scene.version}"),
    ),
    "name experiment": ("experiment", lambda scene: scene.named(f"experiments/{scene.experiment}")),
    "name model": (
        "registered_model",
        lambda scene: scene.named(f"registered_models/{scene.model}"),
    ),
}
INDEXED = ("gsi1pk", "gsi2pk", "gsi4pk")
KINDS = ("registered_models", "model_versions", "experiments", "experiment_runs")


@pytest.mark.parametrize(
    ("named", "first"), [*((named, "act") for named in ACTS), ("name experiment", "move")]
)
def test_what_meets_a_move_is_moved_or_refused(world: Store, named: str, first: str) -> None:
    """And nothing names the deleted workspace afterwards."""
    scenes: list[Scene] = []
    kind, act = ACTS[named]
    here = KubeflowApi()

    def prepare() -> tuple[Act, Act]:
        scene = Scene()
        scenes.append(scene)

        def move() -> int:
            return ask("DELETE", f"{V3}/{scene.workspace}", mode="SET_DEFAULT").status

        def move_experiment() -> int:
            def attempt() -> None:
                workspace_moves.experiment(scene.experiment, "default")

            retry_on_conflict("experiment", attempt)
            return 204

        return (act(scene), move) if first == "act" else (move_experiment, act(scene))

    wrong: list[Any] = []
    for answers in meetings(prepare):
        status, removed = answers if first == "act" else reversed(answers)
        assert removed == 204, removed
        if first == "move":
            assert ask("DELETE", f"{V3}/{scenes[-1].workspace}", mode="SET_DEFAULT").status == 204
        assert status in {200, 201, 404}, status
        if kind and status != 404:
            external = scenes[-1].workspace
            if here.ask("GET", kind, None, externalId=external).status != 200:
                wrong.append((external, "was", status, "and is not found"))
    items = world.direct.scan(TableName=world.table)["Items"]
    wrong += [
        (path, entity["id"], "is listed, but missing")
        for path in KINDS
        for entity in here.items(path)
        if here.ask("GET", f"{path}/{entity['id']}").status != 200
    ]
    locks = [item["PK"]["S"].split("#") for item in items if item["type"]["S"] == "external_id"]
    wrong += [
        (lock, "is held by an entity without it")
        for lock in locks
        if here.get(lock[2], externalId=lock[3]).get("externalId") != lock[3]
    ]
    wrong += [
        (item["PK"]["S"], item["SK"]["S"], name, value["S"])
        for item in items
        for name, value in item.items()
        if (name == "workspace" and value["S"].startswith("team-"))
        or (name in INDEXED and value["S"].split("#")[1].startswith("team-"))
        or (name == "PK" and value["S"].startswith(("EXTERNALID#team-", "CONTEXTNAME#team-")))
    ]
    assert not wrong, wrong


@pytest.mark.usefixtures("world")
def test_versions_of_a_model_get_their_numbers_together() -> None:
    """Each is numbered on condition that the model has stayed, which a transaction asks once."""
    scene = Scene()
    for _ in range(3):
        scene.of_mlflow("model-versions/create", name=scene.workspace, source="s3://e/x")
    versions = scene.api.get(f"registered_models/{scene.model}/versions")["items"]
    assert len({version["id"] for version in versions}) == 4
