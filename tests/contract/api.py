"""Calls the product's Lambda handlers as API Gateway would; knows paths and no rules."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple
from urllib.parse import urlencode

import experiments.app
import logged_models.app
import registry.app
import runs.app
from mlcore.db import capacity

_DOMAINS = {
    "experiments": experiments.app.handler,
    "datasets": experiments.app.handler,
    "logged-models": logged_models.app.handler,
    "registered-models": registry.app.handler,
    "model-versions": registry.app.handler,
}
_OF_THE_UI = {"experiments/search-datasets", "metrics/get-history-bulk"}


class Answer(NamedTuple):
    status: int
    body: dict[str, Any]
    size: int
    """Bytes of the body as sent."""
    headers: Mapping[str, str] = MappingProxyType({})

    @property
    def code(self) -> str:
        return str(self.body.get("error_code", ""))


JSON: Mapping[str, str] = {"content-type": "application/json", "host": "localhost"}


def called(
    handler: Callable[[dict[str, Any], Any], dict[str, Any]],
    method: str,
    path: str,
    body: Any = None,
    headers: Mapping[str, str] = JSON,
    **query: Any,
) -> Answer:
    """What a function answers; of a GET there is no body."""
    event: dict[str, Any] = {
        "version": "2.0",
        "rawPath": path,
        "rawQueryString": urlencode(query, doseq=True),
        "headers": headers,
        "requestContext": {"http": {"method": method}, "requestId": "test"},
        "isBase64Encoded": False,
    }
    if method != "GET":
        event["body"] = json.dumps(body or {})
    answered = handler(event, None)
    text = answered["body"]
    headers = answered["headers"]
    return Answer(answered["statusCode"], json.loads(text), len(text.encode()), headers)


class Failed(AssertionError):
    """A call that had to succeed did not."""


class Api:
    """``ask`` answers whatever comes; ``get`` and ``post`` insist on success and give the body.

    ``cost`` is what the last call of this thread cost.
    """

    def __init__(self, workspace: str = "") -> None:
        self._headers = dict(JSON)
        if workspace:
            self._headers["x-mlflow-workspace"] = workspace

    def ask(self, method: str, path: str, **fields: Any) -> Answer:
        api = "ajax-api" if path in _OF_THE_UI else "api"
        handler = _DOMAINS.get(path.partition("/")[0], runs.app.handler)
        full_path = f"/{api}/2.0/mlflow/{path}"
        if method == "GET":
            return called(handler, method, full_path, None, self._headers, **fields)
        return called(handler, method, full_path, fields, self._headers)

    def post(self, path: str, **fields: Any) -> dict[str, Any]:
        return self._succeed(path, self.ask("POST", path, **fields))

    def get(self, path: str, **fields: Any) -> dict[str, Any]:
        return self._succeed(path, self.ask("GET", path, **fields))

    @property
    def cost(self) -> capacity.Measurement:
        last = capacity.last_measurement()
        assert last is not None
        return last

    @staticmethod
    def _succeed(path: str, answer: Answer) -> dict[str, Any]:
        if answer.status != 200:
            raise Failed(f"{path}: {answer.status} {str(answer.body)[:500]}")
        return answer.body

    # -- what most tests need ----------------------------------------------------------------------

    def new_experiment(self, name: str, **fields: Any) -> str:
        experiment_id: str = self.post("experiments/create", name=name, **fields)["experiment_id"]
        return experiment_id

    def new_run(self, experiment_id: str = "0", **fields: Any) -> str:
        created = self.post("runs/create", experiment_id=experiment_id, start_time=1, **fields)
        run_id: str = created["run"]["info"]["run_id"]
        return run_id

    def end(self, run_id: str) -> None:
        """Nobody goes on with the run."""
        self.post("runs/update", run_id=run_id, status="FINISHED", end_time=1)

    def run(self, run_id: str) -> dict[str, Any]:
        run: dict[str, Any] = self.get("runs/get", run_id=run_id)["run"]
        return run

    def data(self, run_id: str) -> dict[str, dict[str, Any]]:
        """The run's metrics (value, timestamp, step), params and tags by key, without its name."""
        data = self.run(run_id)["data"]
        tags = {tag["key"]: tag.get("value", "") for tag in data.get("tags", ())}
        tags.pop("mlflow.runName", None)
        return {
            "metrics": {
                m["key"]: (m["value"], m["timestamp"], m["step"]) for m in data.get("metrics", ())
            },
            "params": {p["key"]: p.get("value", "") for p in data.get("params", ())},
            "tags": tags,
        }

    def history(self, run_id: str, key: str, page: int | None = None) -> list[tuple[Any, ...]]:
        """All pages of a metric's history as (timestamp, step, value)."""
        results: list[tuple[Any, ...]] = []
        token = ""
        while True:
            fields: dict[str, Any] = {"run_id": run_id, "metric_key": key}
            if token:
                fields["page_token"] = token
            if page is not None:
                fields["max_results"] = page
            answer = self.get("metrics/get-history", **fields)
            results += [(m["timestamp"], m["step"], m["value"]) for m in answer.get("metrics", ())]
            token = answer.get("next_page_token", "")
            if not token:
                return results


def pairs(texts: dict[str, str]) -> list[dict[str, str]]:
    """Params or tags as requests list them."""
    return [{"key": key, "value": value} for key, value in texts.items()]
