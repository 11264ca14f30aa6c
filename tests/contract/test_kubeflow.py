"""One store, two registries: what Kubeflow's client writes MLflow's reads, and the other way."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from mlcore.repos.kubeflow import listing
from tests.contract.api import Api, pairs
from tests.contract.conftest import Store, enable_workspaces
from tests.contract.kubeflow_api import KubeflowApi, properties, typed

MODELS = "registered-models"
VERSIONS = "model-versions"


@pytest.fixture
def kubeflow(store: Store) -> KubeflowApi:
    return KubeflowApi()


def tags(entity: dict[str, Any]) -> dict[str, str]:
    return {tag["key"]: tag["value"] for tag in entity.get("tags", ())}


def mlflow_model(api: Api, name: str) -> dict[str, Any]:
    registered_model: dict[str, Any] = api.get(f"{MODELS}/get", name=name)["registered_model"]
    return registered_model


def mlflow_version(api: Api, name: str, version: int) -> dict[str, Any]:
    answer: dict[str, Any] = api.get(f"{VERSIONS}/get", name=name, version=str(version))
    shown: dict[str, Any] = answer["model_version"]
    return shown


# ------------------------------------------------------------------ one item, two views


def test_a_model_of_kubeflows_is_there_for_mlflow(store: Store, kubeflow: KubeflowApi) -> None:
    model = kubeflow.model(
        "m", owner="ann", description="d", language=["en"], customProperties=properties(a=1, b="x")
    )
    version = kubeflow.version(
        model["id"], "v one", author="bob", customProperties=properties(c=2.5)
    )
    artifact = kubeflow.artifact(version["id"], name="m", uri="s3://elsewhere/x", state="LIVE")
    shown = mlflow_model(store.api, "m")
    assert shown["description"] == "d"
    assert tags(shown) == {
        "a": "1",
        "b": "x",
        "kubeflow.owner": "ann",
        "kubeflow.language": '["en"]',
    }
    made = mlflow_version(store.api, "m", 1)
    assert (made["source"], made["user_id"], tags(made)) == (
        "s3://elsewhere/x",
        "bob",
        {"c": "2.5"},
    )
    kubeflow.patch(
        f"artifacts/{artifact['id']}", artifactType="model-artifact", uri="s3://elsewhere/y"
    )
    assert mlflow_version(store.api, "m", 1)["source"] == "s3://elsewhere/y"
    kubeflow.artifact(version["id"], name="second", uri="s3://elsewhere/z")
    assert mlflow_version(store.api, "m", 1)["source"] == "s3://elsewhere/y"
    model_versions = store.api.get(f"{VERSIONS}/search", filter="tags.c = '2.5'")["model_versions"]
    assert [model_version["version"] for model_version in model_versions] == ["1"]


def test_a_model_of_mlflows_is_there_for_kubeflow(store: Store, kubeflow: KubeflowApi) -> None:
    store.api.post(f"{MODELS}/create", name="m", tags=pairs({"k": "v"}))
    for _ in range(2):
        store.api.post(f"{VERSIONS}/create", name="m", source="s3://elsewhere/x")
    model = kubeflow.get("registered_model", name="m")
    assert model["customProperties"] == {"k": typed("v")}
    second = kubeflow.get("model_version", name="2", parentResourceId=model["id"])
    listed = kubeflow.items(f"registered_models/{model['id']}/versions")
    assert [version["name"] for version in sorted(listed, key=lambda version: version["name"])] == [
        "1",
        "2",
    ]
    assert second in listed
    artifact = kubeflow.get("model_artifact", name="m", parentResourceId=second["id"])
    assert (artifact["uri"], artifact["state"]) == ("s3://elsewhere/x", "LIVE")
    assert kubeflow.items(f"model_versions/{second['id']}/artifacts") == [artifact]
    ids = {model["id"], *(version["id"] for version in listed)}
    assert len(ids) == 3
    for entity_id in ids:
        kubeflow.get(
            f"{'registered_models' if entity_id == model['id'] else 'model_versions'}/{entity_id}"
        )


def test_all_that_see_it_first_see_one_number(store: Store, kubeflow: KubeflowApi) -> None:
    store.api.post(f"{MODELS}/create", name="m")
    for _ in range(5):
        store.api.post(f"{VERSIONS}/create", name="m", source="s3://elsewhere/x")
    with ThreadPoolExecutor(8) as pool:
        seen = list(pool.map(lambda _: kubeflow.get("registered_model", name="m")["id"], range(8)))
        assert len(set(seen)) == 1
        path = f"registered_models/{seen[0]}/versions"
        lists = list(pool.map(lambda _: json.dumps(kubeflow.items(path)), range(8)))
        items = kubeflow.items(path)
        assert set(lists) == {json.dumps(items)}
        version = items[0]["id"]
        artifacts = list(
            pool.map(
                lambda _: json.dumps(kubeflow.items(f"model_versions/{version}/artifacts")),
                range(8),
            )
        )
    assert len(set(artifacts)) == 1


def test_names_of_versions_that_both_would_take(store: Store, kubeflow: KubeflowApi) -> None:
    model = kubeflow.model("m")
    first = kubeflow.version(model["id"], "2")
    store.api.post(f"{VERSIONS}/create", name="m", source="s3://elsewhere/x")
    names = {item["name"] for item in kubeflow.items(f"registered_models/{model['id']}/versions")}
    assert names == {"2", "mlflow-2"}
    again = kubeflow.ask("POST", "model_versions", {"name": "2", "registeredModelId": model["id"]})
    assert again.status == 409
    store.api.post(f"{VERSIONS}/create", name="m", source="s3://elsewhere/x")
    taken = kubeflow.ask("POST", "model_versions", {"name": "3", "registeredModelId": model["id"]})
    assert taken.status == 409
    model_version = kubeflow.get("model_version", name="2", parentResourceId=model["id"])
    assert model_version["id"] == first["id"]


def test_types_survive_what_mlflow_writes_elsewhere(store: Store, kubeflow: KubeflowApi) -> None:
    given = properties(i=1, d=1.0, s="1", b=True, other=7)
    model = kubeflow.model("m", customProperties=given)
    version = kubeflow.version(model["id"], "v", customProperties=given)
    store.api.post(f"{MODELS}/set-tag", name="m", key="other", value="7")
    store.api.post(f"{VERSIONS}/set-tag", name="m", version="1", key="other", value="8")
    expected = {**given, "other": typed("7")}
    assert kubeflow.get(f"registered_models/{model['id']}")["customProperties"] == expected
    expected["other"] = typed("8")
    assert kubeflow.get(f"model_versions/{version['id']}")["customProperties"] == expected
    kubeflow.patch(f"model_versions/{version['id']}", customProperties={})
    assert tags(mlflow_version(store.api, "m", 1)) == {}
    kubeflow.patch(f"model_versions/{version['id']}", description="kept?")
    assert kubeflow.get(f"model_versions/{version['id']}")["customProperties"] == {}


def test_a_structure_can_be_sent_back(kubeflow: KubeflowApi) -> None:
    struct = {"metadataType": "MetadataStructValue", "struct_value": "eyJhIjogWzFdfQ=="}
    model = kubeflow.model("m", customProperties={"s": struct})
    assert model["customProperties"] == {"s": struct}
    again = kubeflow.patch(
        f"registered_models/{model['id']}", **{"customProperties": {"s": struct}}
    )
    assert again["customProperties"] == {"s": struct}


def test_renaming_deleting_archiving_agree(store: Store, kubeflow: KubeflowApi) -> None:
    model = kubeflow.model("m", externalId="x")
    version = kubeflow.version(model["id"], "v", externalId="y")
    artifact = kubeflow.artifact(version["id"], name="a", externalId="z")
    store.api.post(f"{MODELS}/rename", name="m", new_name="n")
    assert kubeflow.get(f"registered_models/{model['id']}")["name"] == "n"
    assert kubeflow.get("registered_model", name="n")["id"] == model["id"]
    renamed = kubeflow.get("model_version", name="v", parentResourceId=model["id"])
    updated = str(mlflow_version(store.api, "n", 1)["last_updated_timestamp"])
    assert renamed == {**version, "lastUpdateTimeSinceEpoch": updated}
    kubeflow.patch(f"model_versions/{version['id']}", state="ARCHIVED")
    assert mlflow_version(store.api, "n", 1)["current_stage"] == "Archived"
    fields = {"name": "n", "version": "1", "stage": "Staging", "archive_existing_versions": False}
    store.api.post(f"{VERSIONS}/transition-stage", **fields)
    assert kubeflow.get(f"model_versions/{version['id']}")["state"] == "LIVE"
    kubeflow.patch(f"model_versions/{version['id']}", state="LIVE", description="d")
    assert mlflow_version(store.api, "n", 1)["current_stage"] == "Staging"
    assert store.api.ask("DELETE", f"{MODELS}/delete", name="n").status == 200
    for path in (f"registered_models/{model['id']}", f"model_versions/{version['id']}"):
        assert kubeflow.ask("GET", path).status == 404
    assert kubeflow.ask("GET", f"artifacts/{artifact['id']}").status == 404
    for kind, external in (("registered_model", "x"), ("model_version", "y"), ("artifact", "z")):
        assert kubeflow.ask("GET", kind, externalId=external).status == 404
    left = [item["PK"]["S"] for item in store.items()]
    assert not [pk for pk in left if pk.startswith(("CONTEXT#", "ARTIFACT#", "EXTERNALID#"))]
    assert kubeflow.model("n", externalId="x")["id"] != model["id"]


def test_experiments_and_runs_agree(store: Store, kubeflow: KubeflowApi) -> None:
    experiment = kubeflow.post("experiments", name="e", owner="o", description="d")
    assert (
        store.api.get("experiments/get-by-name", experiment_name="e")["experiment"]["experiment_id"]
        == experiment["id"]
    )
    run = kubeflow.post("experiment_runs", name="r", experimentId=experiment["id"])
    for step in (1, 2):
        fields = {"artifactType": "metric", "name": "loss", "value": step / 4}
        kubeflow.post(
            f"experiment_runs/{run['id']}/artifacts", **fields, step=step, timestamp=str(step)
        )
    param = {"artifactType": "parameter", "name": "lr", "value": "1", "parameterType": "number"}
    first = kubeflow.post(f"experiment_runs/{run['id']}/artifacts", **param)
    again = kubeflow.post(f"experiment_runs/{run['id']}/artifacts", **{**param, "value": "2"})
    assert (again["id"], again["value"]) == (first["id"], "2")
    data = {"artifactType": "dataset-artifact", "name": "ds", "digest": "abc", "source": "s"}
    kubeflow.post(f"experiment_runs/{run['id']}/artifacts", **data)
    (mlflow_run,) = store.api.post("runs/search", experiment_ids=[experiment["id"]])["runs"]
    run_id = mlflow_run["info"]["run_id"]
    assert mlflow_run["data"]["metrics"] == [
        {"key": "loss", "value": 0.5, "timestamp": 2, "step": 2, "run_id": run_id}
    ] or mlflow_run["data"]["metrics"] == [{"key": "loss", "value": 0.5, "timestamp": 2, "step": 2}]
    assert mlflow_run["data"]["params"] == [{"key": "lr", "value": "2"}]
    assert mlflow_run["inputs"]["dataset_inputs"][0]["dataset"]["digest"] == "abc"
    store.api.post("runs/log-metric", run_id=run_id, key="acc", value=1, timestamp=3, step=0)
    store.api.post("runs/log-parameter", run_id=run_id, key="p", value="q")
    listed = kubeflow.items(f"experiment_runs/{run['id']}/artifacts")
    assert [artifact["name"] for artifact in listed] == ["loss", "lr", "ds", "acc", "p"]
    assert len({artifact["id"] for artifact in listed}) == 5
    history = kubeflow.get(f"experiment_runs/{run['id']}/metric_history", name="loss")["items"]
    assert [(point["step"], point["value"]) for point in history] == [(1, 0.25), (2, 0.5)]
    assert kubeflow.get(f"experiment_runs/{run['id']}/metric_history", stepIds="2")["size"] == 1
    kubeflow.patch(f"experiment_runs/{run['id']}", state="ARCHIVED", status="FINISHED")
    shown = store.api.get("runs/get", run_id=run_id)["run"]["info"]
    assert (shown["lifecycle_stage"], shown["status"]) == ("deleted", "FINISHED")
    store.api.post("runs/restore", run_id=run_id)
    assert kubeflow.get(f"experiment_runs/{run['id']}")["state"] == "LIVE"
    kubeflow.delete(f"experiment_runs/{run['id']}")
    assert store.api.ask("GET", "runs/get", run_id=run_id).status == 404


def test_old_experiment_ids_get_numbers(store: Store, kubeflow: KubeflowApi) -> None:
    run_id = store.api.new_run()
    (run,) = kubeflow.items("experiments/0/experiment_runs")
    assert run["experimentId"] == "0"
    assert kubeflow.get(f"experiment_runs/{run['id']}") == run
    assert store.api.get("runs/get", run_id=run_id)["run"]["info"]["run_name"] == run["name"]


# ------------------------------------------------------------------ what is there alone


def test_serving(store: Store, kubeflow: KubeflowApi) -> None:
    model = kubeflow.model("m")
    version = kubeflow.version(model["id"], "v")
    environment = kubeflow.post("serving_environments", name="prod", externalId="e")
    assert kubeflow.get("serving_environment", name="prod") == environment
    assert kubeflow.get("serving_environment", externalId="e") == environment
    body = {"registeredModelId": model["id"], "servingEnvironmentId": environment["id"]}
    service = kubeflow.post("inference_services", name="s", **body)
    assert service["desiredState"] == "DEPLOYED"
    again = {**body, "name": "s"}
    assert kubeflow.ask("POST", "inference_services", again).status == 409
    assert kubeflow.ask("POST", "serving_environments", {"name": "prod"}).status == 409
    assert (
        kubeflow.get("inference_service", name="s", parentResourceId=environment["id"]) == service
    )
    path = f"inference_services/{service['id']}"
    assert kubeflow.get(f"{path}/model")["id"] == model["id"]
    assert kubeflow.get(f"{path}/version")["id"] == version["id"]
    serve = kubeflow.post(f"{path}/serves", name="one", modelVersionId=version["id"])
    assert kubeflow.items(f"{path}/serves") == [serve]
    assert kubeflow.items(f"serving_environments/{environment['id']}/inference_services") == [
        service
    ]
    for refused in (
        f"registered_models/{model['id']}",
        f"model_versions/{version['id']}",
        f"serving_environments/{environment['id']}",
    ):
        assert kubeflow.ask("DELETE", refused).status == 409
    kubeflow.patch(path, desiredState="UNDEPLOYED")
    kubeflow.delete(f"serving_environments/{environment['id']}")
    assert kubeflow.ask("GET", path).status == 404
    kubeflow.delete(f"registered_models/{model['id']}")
    assert store.api.ask("GET", f"{MODELS}/get", name="m").status == 404
    prefixes = ("CONTEXT#", "EXECUTION#", "CONTEXTNAME#", "EXTERNALID#")
    assert not [item for item in store.items() if item["PK"]["S"].startswith(prefixes)]


def test_what_serves_a_model_is_known_without_an_index(
    kubeflow: KubeflowApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A service that was made in this moment keeps its model; one number more or less does not."""
    monkeypatch.setattr(listing, "entries", lambda *_args: iter(()))
    environment = kubeflow.post("serving_environments", name="prod")["id"]
    models = [kubeflow.model(f"m{number}")["id"] for number in range(2)]
    versions = [kubeflow.version(model, "v")["id"] for model in models]
    body = {"servingEnvironmentId": environment, "modelVersionId": versions[0]}
    path = "inference_services"
    service = kubeflow.post(path, name="s", registeredModelId=models[0], **body)["id"]
    other = kubeflow.version(models[0], "other")["id"]
    kubeflow.delete(f"model_versions/{other}")
    kubeflow.delete(f"registered_models/{models[1]}")
    for kept in (f"model_versions/{versions[0]}", f"registered_models/{models[0]}"):
        assert kubeflow.ask("DELETE", kept).status == 409
    kubeflow.delete(f"{path}/{service}")
    kubeflow.delete(f"model_versions/{versions[0]}")
    kubeflow.delete(f"registered_models/{models[0]}")
    for wrong in ("", "x", None):
        fields = {**body, "name": "t", "registeredModelId": wrong}
        assert 400 <= kubeflow.ask("POST", path, fields).status < 500


def test_a_standalone_artifact_is_moved_under_a_version(kubeflow: KubeflowApi) -> None:
    version = kubeflow.version(kubeflow.model("m")["id"], "v")
    alone = kubeflow.post("model_artifacts", name="a", uri="s3://x/y")
    assert alone["state"] == "UNKNOWN"
    moved = kubeflow.artifact(version["id"], id=alone["id"], name="a", uri="s3://x/z")
    assert moved["uri"] == "s3://x/z"
    assert kubeflow.items(f"model_versions/{version['id']}/artifacts") == [moved]
    assert kubeflow.get("model_artifact", name="a", parentResourceId=version["id"]) == moved


def test_uniqueness(kubeflow: KubeflowApi) -> None:
    model = kubeflow.model("m", externalId="x")
    other = kubeflow.model("o")
    for body in ({"name": "m"}, {"name": "new", "externalId": "x"}):
        assert kubeflow.ask("POST", "registered_models", body).status == 409
    assert (
        kubeflow.ask("PATCH", f"registered_models/{other['id']}", {"externalId": "x"}).status == 409
    )
    kubeflow.patch(f"registered_models/{model['id']}", externalId="y")
    kubeflow.patch(f"registered_models/{other['id']}", externalId="x")
    assert kubeflow.get("registered_model", externalId="x")["id"] == other["id"]
    assert kubeflow.get("registered_model", externalId="y")["id"] == model["id"]
    version = kubeflow.version(model["id"], "v:latest")
    assert kubeflow.get("model_version", name="v:latest", parentResourceId=model["id"]) == version
    fields = {"artifactType": "doc-artifact", "name": "d"}
    kubeflow.post(f"model_versions/{version['id']}/artifacts", **fields)
    again = kubeflow.ask("POST", f"model_versions/{version['id']}/artifacts", fields)
    assert again.status == 409
    changed = {"artifactType": "model-artifact"}
    artifact = kubeflow.get("artifact", name="d", parentResourceId=version["id"])
    assert kubeflow.ask("PATCH", f"artifacts/{artifact['id']}", changed).status == 400


def test_eight_clients_at_once(store: Store, kubeflow: KubeflowApi) -> None:
    with ThreadPoolExecutor(8) as pool:
        made = list(
            pool.map(lambda _: kubeflow.ask("POST", "registered_models", {"name": "m"}), range(8))
        )
        assert sorted(answer.status for answer in made) == [201] + [409] * 7
        model = next(answer.body["id"] for answer in made if answer.status == 201)

        def register(number: int) -> int:
            name = f"v{number % 10}"
            body = {"name": name, "registeredModelId": model}
            return kubeflow.ask("POST", "model_versions", body).status

        statuses = list(pool.map(register, range(40)))
    assert sorted(statuses) == [201] * 10 + [409] * 30
    model_versions = store.api.get(f"{VERSIONS}/search", filter="name = 'm'")["model_versions"]
    assert sorted(int(model_version["version"]) for model_version in model_versions) == list(
        range(1, 11)
    )
    listed = kubeflow.items(f"registered_models/{model}/versions")
    assert sorted(version["name"] for version in listed) == [f"v{number}" for number in range(10)]
    # Of those that were refused nothing is left.
    numbered = {model, *(version["id"] for version in listed)}
    contexts = {item["PK"]["S"] for item in store.items() if item["PK"]["S"].startswith("CONTEXT#")}
    assert contexts == {f"CONTEXT#{number}" for number in numbered}


def test_workspaces_see_nothing_of_one_another(
    store: Store, kubeflow: KubeflowApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    enable_workspaces(monkeypatch, "red")
    red = KubeflowApi(workspace="red")
    model = red.model("m", externalId="x")
    version = red.version(model["id"], "v")
    environment = red.post("serving_environments", name="p")
    alone = red.post("artifacts", artifactType="doc-artifact", name="d")
    for path in (
        f"registered_models/{model['id']}",
        f"model_versions/{version['id']}",
        f"serving_environments/{environment['id']}",
        f"artifacts/{alone['id']}",
    ):
        assert kubeflow.ask("GET", path).status == 404
        assert red.ask("GET", path).status == 200
    assert kubeflow.items("registered_models") == []
    assert kubeflow.items(f"registered_models/{model['id']}/versions") == []
    assert kubeflow.ask("GET", "registered_model", externalId="x").status == 404
    assert kubeflow.model("m", externalId="x")["id"] != model["id"]
    kubeflow.post("serving_environments", name="p")
