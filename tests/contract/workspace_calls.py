"""Requests that name a workspace, to all functions that have workspaces."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

import pytest

import artifacts.app
import evaluation.app
import experiments.app
import logged_models.app
import registry.app
import runs.app
import traces.app
import ui.app
import webhooks.app
import workspaces.app
from mlcore import artifacts as port
from mlcore.webhooks.environment import webhook_settings
from tests.contract.conftest import Store, enable_workspaces

V3 = "/api/3.0/mlflow/workspaces"


APPS = (
    ("/api/3.0/mlflow/workspaces", workspaces.app.handler),
    ("/api/2.0/mlflow/experiments", experiments.app.handler),
    ("/ajax-api/2.0/mlflow/experiments", experiments.app.handler),
    ("/api/2.0/mlflow/logged-models", logged_models.app.handler),
    ("/api/2.0/mlflow/registered-models", registry.app.handler),
    ("/api/2.0/mlflow/model-versions", registry.app.handler),
    ("/api/2.0/mlflow/webhooks", webhooks.app.handler),
    ("/api/2.0/mlflow-artifacts", artifacts.app.handler),
    ("/api/2.0/mlflow/artifacts", artifacts.app.handler),
    ("/get-artifact", artifacts.app.handler),
    ("/api/3.0/mlflow/traces", traces.app.handler),
    ("/api/2.0/mlflow/traces", traces.app.handler),
    ("/v1/traces", traces.app.handler),
    ("/api/3.0/mlflow/datasets", evaluation.app.handler),
    ("/api/3.0/mlflow/scorers", evaluation.app.handler),
    ("/api/3.0/mlflow/label-schemas", evaluation.app.handler),
    ("/api/3.0/mlflow/review-queues", evaluation.app.handler),
    ("/api/3.0/mlflow/issues", evaluation.app.handler),
    ("/graphql", ui.app.handler),
    ("/", runs.app.handler),
)


class Answer(NamedTuple):
    status: int
    text: str

    @property
    def body(self) -> dict[str, Any]:
        return json.loads(self.text)


def ask(method: str, path: str, body: Any = None, workspace: str = "", /, **query: Any) -> Answer:
    headers = {"content-type": "application/json", "host": "localhost"}
    if workspace:
        headers["x-mlflow-workspace"] = workspace
    event: dict[str, Any] = {
        "version": "2.0",
        "rawPath": path,
        "rawQueryString": urlencode(query, doseq=True),
        "headers": headers,
        "requestContext": {"http": {"method": method}, "requestId": "test"},
        "isBase64Encoded": False,
    }
    if body is not None:
        event["body"] = body if isinstance(body, str) else json.dumps(body)
    handler = next(handler for begin, handler in APPS if path.startswith(begin))
    answered = handler(event, None)
    return Answer(answered["statusCode"], answered["body"])


@pytest.fixture
def world(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    monkeypatch.setenv("ARTIFACT_FOLDER", str(tmp_path / "artifacts"))
    monkeypatch.setenv("INDEX_LAG_MS", "0")
    monkeypatch.setenv("MLFLOW_WEBHOOK_ALLOW_PRIVATE_IPS", "true")
    port.store.cache_clear()
    webhook_settings.cache_clear()
    enable_workspaces(monkeypatch)
    yield store
    port.store.cache_clear()
    webhook_settings.cache_clear()
