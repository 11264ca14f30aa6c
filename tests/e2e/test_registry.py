"""The model registry and prompts with the clients that have them, and the calls of older ones."""

from __future__ import annotations

import importlib
import json
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.e2e.clients import CURRENT, run_script
from tests.servers import Server

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]
SCRIPTS = Path(__file__).parent


@pytest.mark.parametrize(
    ("script", "version"),
    [
        *(("registry_script.py", version) for version in ("2.9.2", "2.22.1", "3.1.4", CURRENT)),
        *(("prompt_script.py", version) for version in ("2.22.1", "3.1.4", CURRENT)),
    ],
)
def test_client(product: Server, script: str, version: str, tmp_path: Path) -> None:
    run_script(
        SCRIPTS / script, version, tmp_path, product.url, f"registry-{version}-{uuid4().hex}"
    )


MODEL = """
import mlflow


class Doubled(mlflow.pyfunc.PythonModel):
    def predict(self, context, model_input, params=None):
        return [2 * value for value in model_input]


mlflow.models.set_model(Doubled())
"""


@pytest.mark.filterwarnings("ignore::FutureWarning")  # stages are deprecated since 2.9
@pytest.mark.filterwarnings("ignore::UserWarning")  # the model has no signature
def test_a_model_is_logged_registered_and_loaded(tracking_uri: str, tmp_path: Path) -> None:
    mlflow = importlib.import_module("mlflow")  # after the fixture has set its environment
    mlflow.set_tracking_uri(tracking_uri)
    code = tmp_path / "model.py"
    code.write_text(MODEL, encoding="utf-8")
    name = f"pyfunc {uuid4().hex}"
    mlflow.set_experiment(name)
    with mlflow.start_run():
        logged = mlflow.pyfunc.log_model(
            name="net", python_model=str(code), registered_model_name=name, pip_requirements=[]
        )
    client = mlflow.MlflowClient()
    client.set_registered_model_alias(name, "champion", "1")
    client.transition_model_version_stage(name, "1", "Production")
    version = client.get_model_version(name, "1")
    assert version.source == f"models:/{logged.model_id}"
    tag = client.get_logged_model(logged.model_id).tags["mlflow.modelVersions"]
    # From the server and from the client.
    assert {(entry["name"], int(entry["version"])) for entry in json.loads(tag)} == {(name, 1)}, tag
    for reference in ("1", "latest", "Production"):
        assert mlflow.pyfunc.load_model(f"models:/{name}/{reference}").predict([1, 2]) == [2, 4]
    for uri in (f"models:/{name}@champion", logged.model_uri):
        assert mlflow.pyfunc.load_model(uri).predict([3]) == [6]


def _preview(product: Server, method: str, path: str, **body: Any) -> tuple[int, dict[str, Any]]:
    request = urllib.request.Request(
        f"{product.url}/api/2.0/preview/mlflow/{path}",
        method=method,
        data=json.dumps(body).encode(),
        headers={"Content-Type": "application/json", "User-Agent": "mlflow-python-client/1.30.0"},
    )
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def test_calls_of_clients_before_2(product: Server) -> None:
    """Below another path; reads are GETs with a body."""
    name = f"preview {uuid4().hex}"
    make = _preview(product, "POST", "registered-models/create", name=name)
    assert (make[0], make[1]["registered_model"]["name"]) == (200, name)
    version = {"name": name, "version": "1"}
    status, made = _preview(
        product, "POST", "model-versions/create", name=name, source="s3://bucket/path"
    )
    assert status == 200, made
    assert version.items() <= made["model_version"].items()
    stage = {**version, "stage": "Staging", "archive_existing_versions": True}
    for method, path, body in (
        ("PATCH", "registered-models/update", {"name": name, "description": "d"}),
        ("GET", "registered-models/get", {"name": name}),
        ("GET", "registered-models/search", {"filter": f"name = '{name}'"}),
        ("POST", "registered-models/set-tag", {"name": name, "key": "k", "value": "v"}),
        ("DELETE", "registered-models/delete-tag", {"name": name, "key": "k"}),
        ("POST", "model-versions/transition-stage", stage),
        ("GET", "registered-models/get-latest-versions", {"name": name, "stages": ["Staging"]}),
        ("POST", "registered-models/get-latest-versions", {"name": name}),
        ("PATCH", "model-versions/update", {**version, "description": "d"}),
        ("GET", "model-versions/get", version),
        ("GET", "model-versions/get-download-uri", version),
        ("GET", "model-versions/search", {"filter": f"name = '{name}'"}),
        ("POST", "model-versions/set-tag", {**version, "key": "k", "value": "v"}),
        ("DELETE", "model-versions/delete-tag", {**version, "key": "k"}),
        ("POST", "registered-models/rename", {"name": name, "new_name": f"{name} 2"}),
        ("DELETE", "model-versions/delete", {"name": f"{name} 2", "version": "1"}),
        ("DELETE", "registered-models/delete", {"name": f"{name} 2"}),
    ):
        status, answer = _preview(product, method, path, **body)
        assert status == 200, (method, path, answer)
    status, answer = _preview(product, "GET", "registered-models/get", name=name)
    assert (status, answer["error_code"]) == (404, "RESOURCE_DOES_NOT_EXIST")
