"""Where a deployment keeps files in a bucket, Kubeflow's API shows where: what reads files itself
knows no URI of MLflow's."""

from __future__ import annotations

from typing import Any

import pytest

from tests.contract.conftest import Store, enable_workspaces
from tests.contract.kubeflow_api import KubeflowApi

BUCKET = "files-of-ours"


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ARTIFACT_FOLDER", raising=False)
    monkeypatch.setenv("ARTIFACT_BUCKET", BUCKET)


def logged(store: Store, name: str) -> tuple[str, str]:
    """A model version whose source is a logged model: (its source, the model's location)."""
    api = store.api
    made = api.post("logged-models", experiment_id="0", name="net")["model"]["info"]
    source = f"models:/{made['model_id']}"
    api.post("registered-models/create", name=name)
    fields = {"name": name, "source": source, "model_id": made["model_id"]}
    version = api.post("model-versions/create", **fields)["model_version"]
    assert version["source"] == source
    return source, made["artifact_uri"]


def source_of(store: Store, name: str, version: str = "1") -> str:
    answer = store.api.get("model-versions/get", name=name, version=version)
    return str(answer["model_version"]["source"])


def artifact_of(kubeflow: KubeflowApi, name: str) -> dict[str, Any]:
    model = kubeflow.get("registered_model", name=name)
    (version,) = kubeflow.items(f"registered_models/{model['id']}/versions")
    (artifact,) = kubeflow.items(f"model_versions/{version['id']}/artifacts")
    return artifact


def test_a_logged_model_is_shown_where_it_is(store: Store, bucket: None) -> None:
    kubeflow = KubeflowApi()
    source, location = logged(store, "m")
    assert location.startswith("mlflow-artifacts:/")
    expected = f"s3://{BUCKET}/{location.removeprefix('mlflow-artifacts:/')}"
    artifact = artifact_of(kubeflow, "m")
    assert artifact["uri"] == expected
    path = f"model_artifacts/{artifact['id']}"
    assert kubeflow.get(path) == artifact
    assert kubeflow.items("model_artifacts", filterQuery=f"uri = '{expected}'") == [artifact]
    assert kubeflow.items("model_artifacts", filterQuery=f"uri = '{source}'") == []
    # A client writes back all that it has read.
    assert kubeflow.patch(path, uri=expected, description="d")["uri"] == expected
    assert source_of(store, "m") == source
    model = kubeflow.get("registered_model", name="m")
    version = kubeflow.get("model_version", name="1", parentResourceId=model["id"])
    kubeflow.artifact(version["id"], id=artifact["id"], name=artifact["name"], uri=expected)
    assert source_of(store, "m") == source
    # What it says anew is what is there from then on, also if it was shown before.
    assert kubeflow.patch(path, uri="s3://elsewhere/x")["uri"] == "s3://elsewhere/x"
    assert source_of(store, "m") == "s3://elsewhere/x"
    assert kubeflow.patch(path, uri=expected)["uri"] == expected
    assert source_of(store, "m") == expected


def test_a_proxied_location_is_shown_where_it_is(store: Store, bucket: None) -> None:
    kubeflow = KubeflowApi()
    model = kubeflow.model("m")["id"]
    version = kubeflow.version(model, "v")["id"]
    proxied = "mlflow-artifacts:/1/run/artifacts/net"
    shown = f"s3://{BUCKET}/1/run/artifacts/net"
    made = kubeflow.artifact(version, name="a", uri=proxied)
    assert made["uri"] == shown == kubeflow.get(f"artifacts/{made['id']}")["uri"]
    assert source_of(store, "m") == proxied
    document = kubeflow.artifact(version, artifactType="doc-artifact", name="d", uri=proxied)
    assert document["uri"] == shown
    alone = kubeflow.post("model_artifacts", name="alone", uri=proxied)
    assert alone["uri"] == shown == kubeflow.get(f"artifacts/{alone['id']}")["uri"]
    assert kubeflow.patch(f"model_artifacts/{alone['id']}", uri=shown)["uri"] == shown


def test_what_is_not_ours_is_shown_as_it_is(
    store: Store, bucket: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody learns by it of places that paths cannot name: other workspaces, the product's own."""
    kubeflow = KubeflowApi()
    version = kubeflow.version(kubeflow.model("m")["id"], "v")["id"]
    for number, uri in enumerate(
        (
            "s3://elsewhere/x",
            f"s3://{BUCKET}/1/x",
            "hf://org/model",
            "mlflow-artifacts:/../secret",
            "mlflow-artifacts:/1/%2e%2e/%2e%2e/secret",
            "mlflow-artifacts:/.internal/history/1",
            "mlflow-artifacts:/workspaces/team-b/1/x",
            "models:/m-unknown",
            "models:/m/1",
            "dbfs:/x",
            "https://elsewhere/x",
            "",
        )
    ):
        made = kubeflow.artifact(version, name=f"a{number}", uri=uri)
        assert made["uri"] == uri == kubeflow.get(f"artifacts/{made['id']}")["uri"]
    enable_workspaces(monkeypatch, "team-a")
    inside = KubeflowApi(workspace="team-a")
    version = inside.version(inside.model("m")["id"], "v")["id"]
    made = inside.artifact(version, name="a", uri="mlflow-artifacts:/1/x")
    assert made["uri"] == f"s3://{BUCKET}/workspaces/team-a/1/x"
    made = inside.artifact(version, name="b", uri="mlflow-artifacts:/workspaces/team-b/1/x")
    assert made["uri"] == "mlflow-artifacts:/workspaces/team-b/1/x"


def test_a_laptop_shows_what_is_stored(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARTIFACT_FOLDER", "/tmp/none")
    source, _ = logged(store, "m")
    assert artifact_of(KubeflowApi(), "m")["uri"] == source
