"""What Kubeflow's entities leave: experiments that are deleted while MLflow's clients rename them,
deletions that are killed, and runs that are removed for good."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

import indexer.app
from mlcore.db import keys
from mlcore.db.table import table
from mlcore.optimistic_retry import retry_on_conflict
from mlcore.repos.kubeflow import experiments
from tests.contract import route_environment
from tests.contract.api import Api
from tests.contract.conftest import Store, forget
from tests.contract.interleaved_calls import Act, meetings
from tests.contract.kubeflow_api import KubeflowApi
from tests.contract.route_world import World
from tests.contract.workspace_calls import V3, ask, world
from tests.doubles.faulty import Fault
from tests.doubles.fixtures import Doubles

__all__ = ["world"]

KUBEFLOW_PARTITIONS = ("CONTEXT#", "EXTERNALID#", "ARTIFACT#")


def test_a_name_is_free_after_its_experiment(store: Store) -> None:
    numbers = itertools.count()
    made: list[tuple[str, str]] = []

    def prepare() -> tuple[Act, Act]:
        name = f"name {next(numbers)}"
        experiment_id = store.api.new_experiment(name)
        made.append((name, experiment_id))

        def remove() -> Any:
            retry_on_conflict(
                "experiment",
                lambda: experiments.delete(experiments.get(int(experiment_id), "default")),
            )

        def rename() -> Any:
            fields = {"experiment_id": experiment_id, "new_name": f"new {name}"}
            return store.api.post("experiments/update", **fields)

        return remove, rename

    for removed, _ in meetings(prepare):
        assert removed is None
        name, _ = made[-1]
        for free in (name, f"new {name}"):
            store.api.new_experiment(free)
    assert len(made) > 2


def external_ids_in(doubles: Doubles) -> set[str]:
    items = doubles.direct.scan(TableName=doubles.table)["Items"]
    return {item["PK"]["S"] for item in items if item["type"]["S"] == "external_id"}


def filled_model(api: KubeflowApi, name: str) -> dict[str, Any]:
    """A model, two versions and an artifact of each, all with the same external ids each time."""
    model = api.model(name, externalId="model")
    for number in "12":
        version = api.version(model["id"], number, externalId=f"version {number}")
        fields = {"name": "a", "uri": "s3://elsewhere/x", "externalId": f"artifact {number}"}
        api.artifact(version["id"], **fields)
    return model


@pytest.mark.parametrize("through", ["Kubeflow", "MLflow"])
@pytest.mark.parametrize("whole", [True, False])
def test_a_killed_deletion_locks_no_external_id(
    broken: tuple[Api, Doubles], through: str, *, whole: bool
) -> None:
    """Each external id can be used again, whether the model was deleted or one of its versions."""
    mlflow, doubles = broken
    api = KubeflowApi()

    def delete(model: dict[str, Any], first_version: str) -> int:
        fields = {"name": model["name"]}
        if through == "MLflow" and whole:
            return mlflow.ask("DELETE", "registered-models/delete", **fields).status
        if through == "MLflow":
            return mlflow.ask("DELETE", "model-versions/delete", version="1", **fields).status
        path = f"registered_models/{model['id']}" if whole else f"model_versions/{first_version}"
        return api.ask("DELETE", path).status

    for nth in itertools.count(1):
        name = f"model {nth}"
        model = filled_model(api, name)
        listed = api.items(f"registered_models/{model['id']}/versions")
        first = next(version["id"] for version in listed if version["name"] == "1")
        forget()
        doubles.faulty.arm(Fault.DEAD_AFTER, nth)
        delete(model, first)
        doubles.faulty.heal()
        died = doubles.faulty.fired
        forget()
        if mlflow.ask("GET", "registered-models/get", name=name).status == 200:
            delete(model, first)
        if not whole:
            other = api.model(f"other {nth}")
            version = api.version(other["id"], "1", externalId="version 1")
            fields = {"name": "a", "uri": "s3://elsewhere/x", "externalId": "artifact 1"}
            api.artifact(version["id"], **fields)
            for each in (name, other["name"]):
                mlflow.ask("DELETE", "registered-models/delete", name=each)
        if not died:
            break
    filled_model(api, "last")
    assert len(external_ids_in(doubles)) == 5


def removed(item: dict[str, Any]) -> dict[str, Any]:
    """The stream's record of an item that was deleted."""
    keys = {name: item[name] for name in ("PK", "SK")}
    return {"dynamodb": {"Keys": keys, "OldImage": item, "SequenceNumber": "1"}}


@pytest.mark.parametrize("renamed", [False, True])
def test_a_repeated_deletion_clears_what_a_killed_one_left(
    broken: tuple[Api, Doubles], *, renamed: bool
) -> None:
    """Nothing but the owner of the partition stays; of a renamed model when the indexer has seen
    the deletion."""
    mlflow, doubles = broken
    api = KubeflowApi()
    for nth in itertools.count(1):
        name = f"model {nth}"
        filled_model(api, name)
        mlflow.ask("POST", "registered-models/alias", name=name, alias="a", version="1")
        if renamed:
            new = {"name": name, "new_name": f"new {nth}"}
            assert mlflow.ask("POST", "registered-models/rename", **new).status == 200
            name = f"new {nth}"
        model = table.get(keys.registered_model("default", name)) or {}
        forget()
        doubles.faulty.arm(Fault.DEAD_AFTER, nth)
        mlflow.ask("DELETE", "registered-models/delete", name=name)
        doubles.faulty.heal()
        died = doubles.faulty.fired
        forget()
        again = mlflow.ask("DELETE", "registered-models/delete", name=name)
        assert again.status in {200, 404}
        if renamed:
            assert indexer.app.index([removed(model)]) is None
        items = doubles.direct.scan(TableName=doubles.table)["Items"]
        left = {item["type"]["S"] for item in items} - {"workspace_meta", "id_counter"}
        assert left <= {"model_home"}, (nth, left)
        if not died:
            break


def test_nothing_is_left_of_a_run_that_was_removed(broken: tuple[Api, Doubles]) -> None:
    """By its TTL or for good, when the indexer has seen it."""
    mlflow, doubles = broken
    api = KubeflowApi()
    experiment = mlflow.new_experiment("of MLflow")
    fields = {"name": "r", "experimentId": experiment, "externalId": "run"}
    run = api.post("experiment_runs", **fields)
    metric = {"artifactType": "metric", "name": "loss", "value": 1.0}
    api.post(f"experiment_runs/{run['id']}/artifacts", **metric)
    items = doubles.direct.scan(TableName=doubles.table)["Items"]
    (item,) = [item for item in items if item["type"]["S"] == "run"]
    table.delete(keys.Key(item["PK"]["S"], item["SK"]["S"]))
    assert indexer.app.index([removed(item)]) is None
    items = doubles.direct.scan(TableName=doubles.table)["Items"]
    assert not [item for item in items if item["PK"]["S"].startswith(KUBEFLOW_PARTITIONS)]


def test_a_run_that_was_removed_for_good_locks_no_external_id(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    route_environment.prepare(monkeypatch, tmp_path)
    api = KubeflowApi()
    experiment = api.post("experiments", name="e", externalId="experiment")
    fields = {"experimentId": experiment["id"], "externalId": "run"}
    run = api.post("experiment_runs", name="r", **fields)
    refused = api.ask("POST", "experiment_runs", {"name": "s", **fields})
    assert refused.status == 409
    listed = store.api.post("runs/search", experiment_ids=[experiment["id"]])["runs"]
    run_id = listed[0]["info"]["run_id"]
    store.api.post("runs/delete", run_id=run_id)
    assert api.ask("POST", "experiment_runs", {"name": "s", **fields}).status == 409
    trash = {"experiment_id": experiment["id"], "run_ids": [run_id], "dry_run": False}
    status, purged = World().send("POST", "/3.0/mlflow-serverless/trash/purge", trash)
    assert status == 200, purged
    again = api.post("experiment_runs", name="s", **fields)
    assert again["id"] != run["id"]


REGISTRY = "/api/2.0/mlflow"


def _entities(workspace: str) -> dict[str, str]:
    """Creates an experiment, a model and a version; each has the external id ``same``. Returns
    their Kubeflow numbers by kind."""
    api = KubeflowApi(workspace=workspace)
    model = api.model(f"of {workspace}", externalId="same")["id"]
    return {
        "experiment": api.post("experiments", name=f"of {workspace}", externalId="same")["id"],
        "registered_model": model,
        "model_version": api.version(model, "1", externalId="same")["id"],
    }


@pytest.mark.parametrize("whole", [True, False])
def test_what_came_from_a_deleted_workspace_frees_no_external_id_of_others(
    world: Store, *, whole: bool
) -> None:
    """External ids are unique in a workspace, so a moved entity may share one."""
    assert ask("POST", V3, {"name": "team"}).status == 201
    kept, moved = _entities("default"), _entities("team")
    assert ask("DELETE", f"{V3}/team", mode="SET_DEFAULT").status == 204
    api = KubeflowApi(workspace="default")
    api.delete(f"experiments/{moved['experiment']}")
    call, more = ("registered-models", {}) if whole else ("model-versions", {"version": "1"})
    fields = {"name": "of team", **more}
    assert ask("DELETE", f"{REGISTRY}/{call}/delete", fields).status == 200
    for kind, number in kept.items():
        query = {"parentResourceId": kept["registered_model"]} if kind == "model_version" else {}
        assert api.get(kind, externalId="same", **query)["id"] == number, kind
    parent = kept["registered_model"]
    taken = {"name": "other", "externalId": "same"}
    statuses = {
        api.ask("POST", "experiments", taken).status,
        api.ask("POST", "registered_models", taken).status,
        api.ask("POST", "model_versions", {"registeredModelId": parent, **taken}).status,
    }
    assert statuses == {409}
