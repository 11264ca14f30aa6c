"""The official client of the Model Context Protocol at the local runner: an administrator reads
everything, a user what she may read, a key what its scope covers."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import requests
from mlflow import MlflowClient

from tests.e2e import clients
from tests.servers import ADMIN, start_product, stopped

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(240)]

SCRIPT = Path(__file__).with_name("mcp_script.py")


Post = Callable[..., Any]


def _span(trace_id: str, words: str) -> dict[str, Any]:
    return {
        "traceId": trace_id.removeprefix("tr-"),
        "spanId": "0" * 15 + "1",
        "name": "asked",
        "startTimeUnixNano": "1767607200000000000",
        "endTimeUnixNano": "1767607201000000000",
        "attributes": [{"key": "mlflow.spanInputs", "value": {"stringValue": json.dumps(words)}}],
    }


def _fill(client: MlflowClient, post: Post, whose: str, experiment: str) -> dict[str, str]:
    experiment_id = client.create_experiment(experiment)
    run_id = client.create_run(experiment_id).info.run_id
    for step, value in enumerate((0.5, 0.25)):
        client.log_metric(run_id, "loss", value, step=step)
    client.create_registered_model(f"{whose}-model")
    client.create_model_version(f"{whose}-model", "s3://bucket/model", run_id)
    client.register_prompt(f"{whose}-prompt", f"{whose} {{{{question}}}}")
    trace_id = f"tr-{uuid4().hex}"
    location = {"type": "MLFLOW_EXPERIMENT", "mlflow_experiment": {"experiment_id": experiment_id}}
    info = {
        "trace_id": trace_id,
        "trace_location": location,
        "request_time": "2026-01-05T10:00:00Z",
        "request_preview": f"{whose} words",
        "state": "OK",
    }
    post("3.0/mlflow/traces", trace={"trace_info": info})
    post(
        "v1/traces",
        {"x-mlflow-experiment-id": experiment_id},
        resourceSpans=[{"scopeSpans": [{"spans": [_span(trace_id, f"{whose} words")]}]}],
    )
    return {
        f"{whose}_experiment": experiment_id,
        f"{whose}_run": run_id,
        f"{whose}_trace": trace_id,
    }


def test_the_official_client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with stopped(start_product(tmp_path, "--auth", MLFLOW_AUTH_ADMIN_PASSWORD=ADMIN[1])) as server:
        for name, value in zip(("USERNAME", "PASSWORD"), ADMIN, strict=True):
            monkeypatch.setenv(f"MLFLOW_TRACKING_{name}", value)
        monkeypatch.setenv("MLFLOW_TRACKING_URI", server.url)
        client = MlflowClient(server.url, server.url)

        def post(path: str, headers: Mapping[str, str] | None = None, **fields: Any) -> Any:
            url = f"{server.url}/{path if path.startswith('v1/') else f'api/{path}'}"
            answer = requests.post(url, json=fields, headers=headers, auth=ADMIN, timeout=60)
            assert answer.ok, (path, answer.text)
            return answer.json()

        facts = {
            **_fill(client, post, "open", "of all"),
            **_fill(client, post, "closed", "of few"),
        }
        post("2.0/mlflow/users/create", username="ann", password=ADMIN[1])
        for resource_type, resource_id in (
            ("experiment", facts["closed_experiment"]),
            ("registered_model", "closed-model"),
            ("prompt", "closed-prompt"),
        ):
            post(
                "3.0/mlflow/users/permissions/grant",
                username="ann",
                permission="DENY",
                resource_type=resource_type,
                resource_id=resource_id,
            )
        keys = {
            scope: post("3.0/mlflow-serverless/keys", name="agent", scopes=[scope])["token"]
            for scope in ("read", "sql", f"experiment:{facts['open_experiment']}")
        }
        arguments = (server.url, ADMIN[1], json.dumps(facts), json.dumps(keys))
        clients.run_script(SCRIPT, clients.MCP, tmp_path, *arguments)
