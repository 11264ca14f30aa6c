"""Fills a stock server with everything that an import has to bring over."""

from __future__ import annotations

import json
import math
import warnings
from typing import Any

import pytest
import urllib3

pytest.importorskip("mlflow")

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import mlflow
    from mlflow import entities
    from mlflow.tracing.client import TracingClient

VALUES = (0.5, math.nan, math.inf, -math.inf, -0.0, 1e-300)
POINTS = 40


def fill(url: str, *, runs: int, models: int, traces: int, points: int = POINTS) -> None:
    """Some of it with the client, most of it by bulk requests; ``points`` of each metric."""
    client = mlflow.MlflowClient(url)
    first = client.create_experiment("first", tags={"kind": "a", "näme": "ü"})
    second = client.create_experiment("second/with a path")
    gone = client.create_experiment("gone", artifact_location="s3://elsewhere/gone")
    made = [_run(client, (first, second)[number % 2], number, points) for number in range(runs)]
    client.delete_run(made[1])
    client.delete_run(_run(client, gone, 0, points))
    client.delete_experiment(gone)
    _logged_models(client, first, made[0])
    _registry(client, made, models)
    _traces(url, client, first, made[0], traces)
    _gateway(url, first)
    _mcp_server(url)


def call(url: str, path: str, **fields: Any) -> Any:
    return _posted(f"{url}/api/2.0/mlflow/{path}", fields)


def _posted(address: str, fields: Any) -> Any:
    answer = urllib3.request("POST", address, json=fields, retries=False, timeout=60)
    assert answer.status in (200, 201), answer.data
    return answer.json()


def _gateway(url: str, experiment: str) -> None:
    def made(path: str, **fields: Any) -> Any:
        (entity,) = _posted(f"{url}/api/3.0/mlflow/{path}", fields).values()
        return entity

    secret = made(
        "gateway/secrets/create",
        secret_name="the key",
        secret_value={"api_key": "sk-live-0123456789"},
        provider="openai",
        auth_config={"api_version": "1"},
        created_by="ann",
    )
    model = made(
        "gateway/model-definitions/create",
        name="the model",
        secret_id=secret["secret_id"],
        provider="openai",
        model_name="gpt",
    )
    linked = {"model_definition_id": model["model_definition_id"], "weight": 0.5}
    endpoint_id = made(
        "gateway/endpoints/create",
        name="judge",
        model_configs=[
            {**linked, "linkage_type": "PRIMARY"},
            {**linked, "linkage_type": "FALLBACK", "fallback_order": 0},
        ],
        fallback_config={"strategy": "SEQUENTIAL", "max_attempts": 1},
        routing_strategy="REQUEST_BASED_TRAFFIC_SPLIT",
    )["endpoint_id"]
    tag = {"endpoint_id": endpoint_id, "key": "k", "value": "ü"}
    _posted(f"{url}/api/3.0/mlflow/gateway/endpoints/set-tag", tag)
    judge = {
        "name": "asks",
        "instructions_judge_pydantic_data": {"model": "gateway:/judge", "instructions": "{{ x }}"},
    }
    scorer = _posted(
        f"{url}/api/3.0/mlflow/scorers/register",
        {"experiment_id": experiment, "name": "asks", "serialized_scorer": json.dumps(judge)},
    )
    guardrail = made(
        "gateway/guardrails/create",
        name="polite",
        scorer_id=scorer["scorer_id"],
        scorer_version=scorer["version"],
        stage="BEFORE",
        action="SANITIZATION",
        action_endpoint_id=endpoint_id,
    )
    used = {"endpoint_id": endpoint_id, "guardrail_id": guardrail["guardrail_id"]}
    made("gateway/guardrails/add-to-endpoint", **used, execution_order=1)
    made(
        "gateway/budgets/create",
        budget_unit="USD",
        budget_amount=1.5,
        duration={"unit": "DAYS", "value": 3},
        target_scope="ENDPOINT",
        target_value=endpoint_id,
        budget_action="REJECT",
    )


def _mcp_server(url: str) -> None:
    name = "com.example/weather"
    servers = f"{url}/api/3.0/mlflow/mcp-servers"
    for number, more in (
        ("1.0.0", {"status": "active", "tools": [{"name": "ask"}]}),
        ("2.0.0", {}),
    ):
        server_json = {"name": name, "version": number, "description": f"weather {number}"}
        made = {"server_json": server_json, "source": "git", **more}
        _posted(f"{servers}/{name}/versions", made)
    _posted(f"{servers}/{name}/versions/1.0.0/tags", {"key": "k", "value": "ü"})
    _posted(f"{servers}/{name}/tags", {"key": "k", "value": "v"})
    _posted(f"{servers}/{name}/aliases", {"alias": "stable", "version": "1.0.0"})
    for target in ({"server_alias": "stable"}, {"server_version": "2.0.0"}):
        address = {"url": "https://8.8.8.8/mcp", "transport_type": "sse", **target}
        _posted(f"{servers}/{name}/endpoints", address)


def _run(client: Any, experiment: str, number: int, points: int) -> str:
    run = client.create_run(experiment, start_time=1000 + number, run_name=f"run {number}")
    run_id: str = run.info.run_id
    logged = [
        entities.Metric(key, VALUES[(step + number) % len(VALUES)], 5000 + step // 3, step % 7)
        for key in ("loss", "val/accuracy")
        for step in range(points)
    ]
    client.log_batch(
        run_id,
        logged,
        [entities.Param(f"p{index}", f"{number}.{index}") for index in range(5)],
        [entities.RunTag("note", f"né {number}"), entities.RunTag("long", "x" * 3000)],
    )
    if number % 4 == 0:
        dataset = entities.Dataset("rows", f"d{number % 8}", "http", '{"url": "http://data"}')
        tag = entities.InputTag("mlflow.data.context", "training")
        client.log_inputs(run_id, [entities.DatasetInput(dataset, [tag])])
    if number % 10 == 0 and not run.info.artifact_uri.startswith("s3:"):
        client.log_text(run_id, "words " * number, "texts/a b ü.txt")
        client.log_text(run_id, "", "empty.txt")
    if number % 5:
        status = ("FINISHED", "FAILED", "KILLED")[number % 3]
        client.set_terminated(run_id, status, end_time=9000 + number)
    return run_id


def _logged_models(client: Any, experiment: str, run_id: str) -> None:
    for number in range(3):
        model = client.create_logged_model(
            experiment,
            name=f"model-{number}",
            source_run_id=run_id,
            params={"depth": str(number)},
            tags={"a": "b"},
            model_type="forest",
        )
        for step in range(4):
            client.log_metric(
                run_id,
                "acc",
                step / 3,
                step=step,
                timestamp=step,
                model_id=model.model_id,
                dataset_name="rows",
                dataset_digest="d0",
            )
        client.log_outputs(run_id, [entities.LoggedModelOutput(model.model_id, number)])
        client.finalize_logged_model(model.model_id, "READY" if number else "FAILED")
    client.log_inputs(run_id, models=[entities.LoggedModelInput(model.model_id)])


def _registry(client: Any, made: list[str], models: int) -> None:
    for number in range(models):
        name = f"model {number}'s"
        client.create_registered_model(name, {"team": "x"}, f"the {number}th")
        for run_id in made[:4]:
            source = f"{client.get_run(run_id).info.artifact_uri}/model"
            client._get_registry_client().create_model_version(
                name, source, run_id, tags={"from": run_id}, description=f"of {run_id}"
            )
        client.delete_model_version(name, "2")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            client.transition_model_version_stage(name, "1", "Production")
            client.transition_model_version_stage(name, "3", "Archived")
        client.set_registered_model_alias(name, "champion", "3")
        client.set_registered_model_alias(name, "old", "1")
    client.register_prompt("greeting", "hello {{name}}", tags={"tone": "kind"})
    client.register_prompt("greeting", "good day {{name}}")


def _traces(url: str, client: Any, experiment: str, run_id: str, traces: int) -> None:
    for number in range(traces):
        trace_id = f"{number + 1:032x}"
        spans = [_span(trace_id, index) for index in range(3)]
        body = {"resourceSpans": [{"resource": {}, "scopeSpans": [{"spans": spans}]}]}
        answer = urllib3.request(
            "POST",
            f"{url}/v1/traces",
            body=json.dumps(body).encode(),
            headers={
                "content-type": "application/json",
                "x-mlflow-experiment-id": experiment,
            },
            timeout=60,
        )
        assert answer.status == 200, answer.data
    tracing = TracingClient(url)
    for number in range(0, traces, 10):
        trace_id = f"tr-{number + 1:032x}"
        client.set_trace_tag(trace_id, "topic", f"t{number}")
        source = entities.AssessmentSource("HUMAN", "me")
        made = tracing.log_assessment(
            trace_id,
            entities.Feedback(name="good", value=0.5, rationale="so so", source=source),
        )
        tracing.log_assessment(
            trace_id,
            entities.Feedback(
                name="good",
                value=True,
                source=source,
                overrides=made.assessment_id,
                metadata={"mlflow.assessment.sourceRunId": run_id},
            ),
        )
        tracing.log_assessment(
            trace_id, entities.Expectation(name="facts", value={"a": [1, None]}, source=source)
        )
        tracing.log_assessment(
            trace_id,
            entities.Feedback(
                name="broken",
                error=entities.AssessmentError("TIMEOUT", "too slow", "at line 1"),
                source=source,
            ),
        )


def _span(trace_id: str, number: int) -> dict[str, Any]:
    begin = 1_700_000_000_000_000_000 + int(trace_id, 16) * 1_000_000_007
    attributes = [
        {"key": "n", "value": {"intValue": str(number)}},
        {"key": "mlflow.spanType", "value": {"stringValue": '"LLM"'}},
        {"key": "x", "value": {"doubleValue": 0.1}},
        {"key": "list", "value": {"arrayValue": {"values": [{"boolValue": True}]}}},
        {
            "key": "mlflow.chat.tokenUsage",
            "value": {"stringValue": '{"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}'},
        },
    ]
    span = {
        "traceId": trace_id,
        "spanId": f"{number + 1:016x}",
        "name": f"step {number}",
        "startTimeUnixNano": str(begin + number),
        "endTimeUnixNano": str(begin + 10_000_000 - number),
        "attributes": attributes,
        "status": {"code": "STATUS_CODE_ERROR", "message": "no"} if number == 2 else {},
        "events": [{"name": "e", "timeUnixNano": str(begin + 5), "attributes": attributes[:1]}],
    }
    return {**span, "parentSpanId": f"{1:016x}"} if number else span
