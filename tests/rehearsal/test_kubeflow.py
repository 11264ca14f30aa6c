"""Kubeflow's clients and MLflow's API over one deployed table."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.clients import KUBEFLOW, KUBEFLOW_OLD, KUBEFLOW_SCRIPT, run_script
from tests.rehearsal import signed
from tests.rehearsal.stack import Stack, basic
from tests.servers import ADMIN

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]


@pytest.mark.parametrize("client", [KUBEFLOW_OLD, KUBEFLOW])
def test_clients(stack: Stack, tmp_path: Path, client: str) -> None:
    """Their experiments are left out: a Query of a local index answers keys alone in the emulator,
    where AWS fetches the items."""
    name = f"rehearsed by {client}"
    tags = [{"key": "team", "value": "retention"}]
    stack.ask("POST", "registered-models/create", name=name, tags=tags)
    stack.ask("POST", "model-versions/create", name=name, source="s3://elsewhere/of-mlflow")
    with signed.before(stack.url, basic(ADMIN)) as url:
        run_script(KUBEFLOW_SCRIPT, client, tmp_path, url, name, "--models")
    path = f"model-versions/get?name={name} kubeflow&version=1".replace(" ", "%20")
    made = stack.ask("GET", path)["model_version"]
    assert made["source"] == "s3://elsewhere/moved"
    assert {"key": "layers", "value": "3"} in made["tags"]


def test_serving_and_deleting(stack: Stack) -> None:
    """What the clients have no words for, with the rights of the function's own role."""

    def ask(method: str, path: str, expected: int, **fields: str) -> str:
        full_path = f"/api/model_registry/v1/{path}"
        status, body, _ = stack.call(method, full_path, fields or None)
        assert status == expected, (path, status, body)
        return str(body["id"]) if status in (200, 201) else ""

    model = ask("POST", "registered_models", 201, name="rehearsed serving", externalId="x")
    version = ask("POST", "model_versions", 201, name="v", registeredModelId=model)
    environment = ask("POST", "serving_environments", 201, name="rehearsed")
    served = {"registeredModelId": model, "servingEnvironmentId": environment}
    service = ask("POST", "inference_services", 201, name="s", **served)
    ask("POST", f"inference_services/{service}/serves", 201, modelVersionId=version)
    assert ask("GET", f"inference_services/{service}/version", 200) == version
    ask("DELETE", f"registered_models/{model}", 409)
    ask("PATCH", f"inference_services/{service}", 200, desiredState="UNDEPLOYED")
    ask("DELETE", f"registered_models/{model}", 204)
    ask("DELETE", f"serving_environments/{environment}", 204)
    ask("GET", f"inference_services/{service}", 404)
    assert stack.call("GET", "/readyz/isDirty", user=None)[:2] == (200, False)
