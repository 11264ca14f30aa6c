"""Kubeflow's Python client, in both versions of its API, and MLflow's over one store."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import requests

from tests.e2e.clients import KUBEFLOW, KUBEFLOW_OLD, KUBEFLOW_SCRIPT, KUBEFLOW_V1, run_script
from tests.servers import ADMIN, Server, start_product, stopped

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]
CALLS = KUBEFLOW_SCRIPT.with_name("kubeflow_calls.py")

MODEL = """
import mlflow


class Doubled(mlflow.pyfunc.PythonModel):
    def predict(self, context, model_input, params=None):
        return [2 * value for value in model_input]


mlflow.models.set_model(Doubled())
"""


def _logged(mlflow: Any, tmp_path: Path, name: str) -> Any:
    code = tmp_path / "model.py"
    code.write_text(MODEL, encoding="utf-8")
    mlflow.set_experiment(name)
    with mlflow.start_run():
        return mlflow.pyfunc.log_model(
            name="net", python_model=str(code), registered_model_name=name, pip_requirements=[]
        )


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning")
@pytest.mark.parametrize("client", [KUBEFLOW_OLD, KUBEFLOW])
def test_both_clients(tracking_uri: str, tmp_path: Path, client: str) -> None:
    mlflow = importlib.import_module("mlflow")
    mlflow.set_tracking_uri(tracking_uri)
    name = f"kubeflow {uuid4().hex}"
    _logged(mlflow, tmp_path, name)
    registry = mlflow.MlflowClient()
    registry.set_registered_model_tag(name, "team", "retention")
    run_script(KUBEFLOW_SCRIPT, client, tmp_path, tracking_uri, name)
    made = registry.get_model_version(f"{name} kubeflow", "1")
    assert made.source == "s3://elsewhere/moved"
    assert made.tags == {"layers": "3", "accuracy": "0.5", "final": "true", "note": "text"}
    model_versions = registry.search_model_versions(
        f"name = '{name} kubeflow' and tags.layers = '3'"
    )
    assert [version.version for version in model_versions] == ["1"]
    assert registry.get_registered_model(f"{name} kubeflow").description == "described"


@pytest.mark.parametrize("client", [KUBEFLOW_OLD, KUBEFLOW])
def test_all_that_a_client_offers(tracking_uri: str, tmp_path: Path, client: str) -> None:
    name = f"calls {uuid4().hex}"

    def post(path: str, **fields: Any) -> Any:
        answer = requests.post(f"{tracking_uri}/api/2.0/mlflow/{path}", json=fields, timeout=30)
        assert answer.status_code == 200, answer.text
        return answer.json()

    experiment = post("experiments/create", name=name)["experiment_id"]
    run = post("runs/create", experiment_id=experiment, start_time=1)["run"]["info"]["run_id"]
    metric = {"key": "acc", "value": 0.75, "timestamp": 5, "step": 2}
    param = {"key": "rate", "value": "0.1"}
    post("runs/log-batch", run_id=run, metrics=[metric], params=[param])
    dataset = {"name": "table", "digest": "abc", "source_type": "http", "source": "{}"}
    post("runs/log-inputs", run_id=run, datasets=[{"tags": [], "dataset": dataset}])
    run_script(CALLS, client, tmp_path, tracking_uri, name)
    shown = requests.get(
        f"{tracking_uri}/api/2.0/mlflow/model-versions/get",
        params={"name": f"{name} model", "version": "1"},
        timeout=30,
    ).json()["model_version"]
    assert (shown["source"], shown["user_id"]) == ("s3://elsewhere/model", "somebody")
    assert shown["tags"] == [{"key": "new", "value": "1.5"}]


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning")
def test_mlflow_loads_what_kubeflow_registered(tracking_uri: str, tmp_path: Path) -> None:
    mlflow = importlib.import_module("mlflow")
    mlflow.set_tracking_uri(tracking_uri)
    name = f"loaded {uuid4().hex}"
    logged = _logged(mlflow, tmp_path, name)

    def post(path: str, **fields: Any) -> Any:
        answer = requests.post(f"{tracking_uri}{KUBEFLOW_V1}/{path}", json=fields, timeout=30)
        assert answer.status_code == 201, answer.text
        return answer.json()

    model = post("registered_models", name=f"{name} again")
    version = post("model_versions", name="v1", registeredModelId=model["id"])
    fields = {"artifactType": "model-artifact", "name": "a", "uri": logged.model_uri}
    post(f"model_versions/{version['id']}/artifacts", **fields)
    loaded = mlflow.pyfunc.load_model(f"models:/{name} again/1")
    assert loaded.predict([1, 2]) == [2, 4]


def test_a_login_and_its_rights(tmp_path: Path) -> None:
    with stopped(start_product(tmp_path, "--auth", MLFLOW_AUTH_ADMIN_PASSWORD=ADMIN[1])) as server:
        _rights(server)


def _rights(server: Server) -> None:
    mlflow_api = f"{server.url}/api/2.0/mlflow"

    def ask(method: str, path: str, login: tuple[str, str] | None, **fields: Any) -> Any:
        url = path if path.startswith("http") else f"{server.url}{KUBEFLOW_V1}/{path}"
        sent = fields if method not in ("GET", "DELETE") else None
        return requests.request(method, url, auth=login, timeout=30, json=sent)

    ann, bob = ("ann", "password-of-ann"), ("bob", "password-of-bob")
    for name, password in (ann, bob):
        fields = {"username": name, "password": password}
        assert ask("POST", f"{mlflow_api}/users/create", ADMIN, **fields).status_code == 200
    assert ask("GET", "registered_models", None).status_code == 401
    made = ask("POST", "registered_models", ann, name="m").json()
    path = f"registered_models/{made['id']}"
    assert ask("PATCH", path, bob, description="d").status_code == 403
    assert ask("GET", path, bob).status_code == 200
    fields = {"name": "m", "username": "bob", "permission": "NO_PERMISSIONS"}
    grant = f"{mlflow_api}/registered-models/permissions/create"
    assert ask("POST", grant, ann, **fields).status_code == 200
    assert ask("GET", path, bob).status_code == 403
    assert ask("GET", "registered_models", bob).json()["items"] == []
    assert ask("GET", "registered_model?name=m", bob).status_code == 403
    version = {"name": "v", "registeredModelId": made["id"]}
    assert ask("POST", "model_versions", bob, **version).status_code == 403
    there = ask("POST", "model_versions", ann, **version).json()
    assert ask("GET", f"model_versions/{there['id']}", bob).status_code == 403
    environment = ask("POST", "serving_environments", ann, name="prod").json()
    environment_path = f"serving_environments/{environment['id']}"
    assert ask("GET", environment_path, bob).status_code == 200
    assert ask("PATCH", environment_path, bob, description="d").status_code == 403
    assert ask("PATCH", environment_path, ann, description="d").status_code == 200
    service = {"registeredModelId": made["id"], "servingEnvironmentId": environment["id"]}
    assert ask("POST", "inference_services", bob, **service).status_code == 403
    assert ask("POST", "inference_services", ann, **service).status_code == 201
    assert ask("DELETE", path, bob).status_code == 403
    refused = ask("DELETE", path, ADMIN)
    assert (refused.status_code, refused.json()["code"]) == (409, "Conflict")
