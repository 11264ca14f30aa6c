"""Calls Kubeflow's API of the product as API Gateway would; knows paths and no rules."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlencode

import kubeflow.app
from mlcore.db import capacity
from tests.contract.api import Answer, Failed

V1 = "v1"
OLD = "v1alpha3"
TYPES = {str: "String", int: "Int", float: "Double", bool: "Bool"}


def typed(value: Any) -> dict[str, Any]:
    """A custom property."""
    word = TYPES[type(value)]
    shown = str(value) if type(value) is int else value
    return {"metadataType": f"Metadata{word}Value", f"{word.lower()}_value": shown}


def properties(**values: Any) -> dict[str, Any]:
    return {name: typed(value) for name, value in values.items()}


class KubeflowApi:
    """``ask`` answers whatever comes; the verbs insist on success and give the body."""

    def __init__(self, api: str = OLD, workspace: str = "") -> None:
        self._api = api
        self._headers = {"content-type": "application/json", "host": "localhost"}
        if workspace:
            self._headers["x-mlflow-workspace"] = workspace

    def event(self, method: str, path: str, body: Any, query: dict[str, Any]) -> dict[str, Any]:
        text = body if isinstance(body, str) else json.dumps(body)
        return {
            "version": "2.0",
            "rawPath": path if path.startswith("/") else f"/api/model_registry/{self._api}/{path}",
            "rawQueryString": urlencode(query),
            "headers": self._headers,
            "requestContext": {"http": {"method": method}, "requestId": "test"},
            "isBase64Encoded": False,
            **({} if body is None else {"body": text}),
        }

    def raw(self, method: str, path: str, body: Any = None, **query: Any) -> dict[str, Any]:
        answer: dict[str, Any] = kubeflow.app.handler(self.event(method, path, body, query), None)
        return answer

    def ask(self, method: str, path: str, body: Any = None, **query: Any) -> Answer:
        answered = self.raw(method, path, body, **query)
        text = answered["body"]
        return Answer(answered["statusCode"], json.loads(text) if text else {}, len(text))

    def _succeed(self, method: str, path: str, body: Any = None, **query: Any) -> dict[str, Any]:
        answer = self.ask(method, path, body, **query)
        if answer.status >= 300:
            raise Failed(f"{method} {path}: {answer}")
        return answer.body

    def get(self, path: str, **query: Any) -> dict[str, Any]:
        return self._succeed("GET", path, None, **query)

    def post(self, path: str, **fields: Any) -> dict[str, Any]:
        return self._succeed("POST", path, fields)

    def patch(self, path: str, **fields: Any) -> dict[str, Any]:
        return self._succeed("PATCH", path, fields)

    def delete(self, path: str) -> None:
        self._succeed("DELETE", path)

    def items(self, path: str, **query: Any) -> list[dict[str, Any]]:
        """All pages of a list, as the client reads them: until the first token comes again."""
        results: list[dict[str, Any]] = []
        token = ""
        while True:
            page = self.get(path, **({"nextPageToken": token} if token else {}), **query)
            assert page["size"] == len(page["items"])
            results += page["items"]
            token = page["nextPageToken"]
            if not token:
                return results

    @property
    def round_trips(self) -> int:
        """Of the last call."""
        last = capacity.last_measurement()
        assert last is not None
        return last.round_trips

    def model(self, name: str, **fields: Any) -> dict[str, Any]:
        return self.post("registered_models", name=name, **fields)

    def version(self, model: str, name: str, **fields: Any) -> dict[str, Any]:
        return self.post("model_versions", name=name, registeredModelId=model, **fields)

    def artifact(self, version: str, **fields: Any) -> dict[str, Any]:
        body = {"artifactType": "model-artifact", **fields}
        return self.post(f"model_versions/{version}/artifacts", **body)
