"""Calls of the artifact function in a workspace, on a folder."""

from __future__ import annotations

import base64
import json
from typing import Any, NamedTuple
from urllib.parse import urlencode, urlsplit

import pytest

import artifacts.app
import experiments.app
import runs.app
from mlcore.artifacts.local_folder_store import Folder

PROXY = "/api/2.0/mlflow-artifacts/"
MLFLOW = "/api/2.0/mlflow/"
LIST = "/api/2.0/mlflow/artifacts/list"


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Service:
    """The functions, called in a workspace, and the folder behind them."""

    def __init__(self, folder: Folder) -> None:
        self.folder = folder
        self.workspace = "default"

    def ask(
        self,
        method: str,
        path: str,
        body: bytes | str | None = None,
        function: Any = artifacts.app,
        query: Any = None,
        **headers: Any,
    ) -> Answer:
        named = {"host": "h:1", "content-type": "application/json", **headers}
        if self.workspace != "default":
            named["x-mlflow-workspace"] = self.workspace
        event: dict[str, Any] = {
            "rawPath": path,
            "rawQueryString": urlencode(query or {}),
            "headers": named,
            "requestContext": {"http": {"method": method}, "requestId": "test"},
            "isBase64Encoded": isinstance(body, bytes),
            "body": base64.b64encode(body).decode() if isinstance(body, bytes) else body,
        }
        answer = function.handler(event, None)
        text = answer["body"]
        content = base64.b64decode(text) if answer["isBase64Encoded"] else text.encode()
        return Answer(answer["statusCode"], answer["headers"], content)

    def post(self, path: str, fields: Any, function: Any = artifacts.app) -> Answer:
        return self.ask("POST", path, json.dumps(fields), function)

    def run(self, name: str, **more: str) -> tuple[str, str]:
        """The id of a new run, and its place in the store. A location was chosen before there were
        workspaces, which allow none."""
        with pytest.MonkeyPatch.context() as before:
            if more:
                before.delenv("MLFLOW_ENABLE_WORKSPACES")
            made = self.post(
                "/api/2.0/mlflow/experiments/create", {"name": name, **more}, experiments.app
            )
        info = self.post("/api/2.0/mlflow/runs/create", made.json, runs.app).json["run"]["info"]
        return info["run_id"], urlsplit(info["artifact_uri"]).path.lstrip("/")

    def list_run(self, run_id: str) -> Answer:
        return self.ask("GET", LIST, query={"run_id": run_id})
