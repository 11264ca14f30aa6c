"""JSON that is nested deeply inside of texts that clients store: of span attributes, tags and
bodies. Whatever is accepted can be read afterwards, and the rest is refused with 400."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

import mcp_servers.app
from tests.contract.api import JSON, Api
from tests.contract.conftest import Store
from tests.contract.trace_calls import ask, export, info, span, start, tell

DEPTHS: Final = (150, 250, 400, 700, 930, 950, 960, 970, 980, 5000)
"""Around the limit of a JSON value, that of Python's recursion, and beyond both."""
TRACE: Final = "0" * 31 + "7"


def lists(depth: int) -> str:
    return "[" * depth + "]" * depth


def objects(depth: int) -> str:
    return '{"a":' * depth + "1" + "}" * depth


def test_attributes_of_spans(store: Store) -> None:
    texts = [made(depth) for depth in DEPTHS for made in (lists, objects)]
    attributes = {f"k{number}": text for number, text in enumerate(texts)}
    named: Any = {"mlflow__spanInputs": texts[-6], "mlflow__spanOutputs": texts[-8], **attributes}
    assert export("0", [span(TRACE, 1, **named)]).status == 200
    trace = tell("GET", "3.0/traces/get", trace_id=f"tr-{TRACE}")["trace"]
    read = {each["key"]: each["value"] for each in trace["spans"][0]["attributes"]}
    assert read.keys() >= attributes.keys()
    for key, text in attributes.items():
        is_parsed = text.count("[") + text.count("{") <= 200
        assert ("string_value" in read[key]) is not is_parsed, key


@pytest.mark.parametrize("form", ["arrayValue", "kvlistValue"])
def test_values_of_spans(store: Store, form: str) -> None:
    for depth in (*range(90, 110, 3), 150, 200, 230, 5000):
        value: Any = {"intValue": "1"}
        if depth < 1000:
            for _ in range(depth):
                item = value if form == "arrayValue" else {"key": "a", "value": value}
                value = {form: {"values": [item]}}
        attributes = [{"key": "deep", "value": value}]
        sent = span(f"{depth:032x}", 1)
        event = {"name": "e", "timeUnixNano": "1", "attributes": attributes}
        status = export("0", [{**sent, "attributes": attributes, "events": [event]}]).status
        assert status == (400 if 100 < depth < 1000 else 200), depth
        if status == 200:
            trace = tell("GET", "3.0/traces/get", trace_id=f"tr-{depth:032x}")["trace"]
            assert len(trace["spans"]) == 1


def test_metadata_of_traces(store: Store) -> None:
    for number, depth in enumerate(DEPTHS[:-1]):
        metadata = {"mlflow.trace.tokenUsage": lists(depth), "mlflow.trace.cost": objects(depth)}
        begun = ask("POST", "3.0/traces", start("0", f"tr-{number}", trace_metadata=metadata))
        assert begun.status in {200, 400}, depth
        if begun.status == 200:
            assert info(f"tr-{number}")["trace_id"] == f"tr-{number}"


def test_expectations(store: Store) -> None:
    tell("POST", "3.0/traces", start("0", "tr-e"))
    for depth in DEPTHS:
        serialized = {"value": lists(depth), "serialization_format": "JSON_FORMAT"}
        assessment = {
            "assessment_name": f"a{depth}",
            "source": {"source_type": "HUMAN", "source_id": "x"},
            "expectation": {"serialized_value": serialized},
        }
        answer = ask("POST", "3.0/traces/tr-e/assessments", {"assessment": assessment})
        assert answer.status == (200 if depth <= 200 else 400), depth
    assert len(info("tr-e")["assessments"]) == 1


def test_logged_models_of_runs(store: Store) -> None:
    api = Api()
    made = api.post("runs/create", experiment_id="0")["run"]["info"]["run_id"]
    fields = {"artifact_path": "m", "utc_time_created": "x", "run_id": made}
    for depth in DEPTHS:
        model = json.dumps({**fields, "flavors": {"f": "@"}}).replace('"@"', lists(depth))
        status = api.ask("POST", "runs/log-model", run_id=made, model_json=model).status
        assert status == (200 if depth < 200 else 400), depth
    for text in ("no JSON", '{"a":1}', "null", *map(lists, DEPTHS[1:-1])):
        api.post("runs/set-tag", run_id=made, key="mlflow.log-model.history", value=text)
        model = json.dumps({**fields, "flavors": {}})
        answer = api.ask("POST", "runs/log-model", run_id=made, model_json=model)
        assert answer.status == 400, text[:20]
        assert "mlflow.log-model.history" in answer.body["message"]


def test_bodies_with_any_value(store: Store) -> None:
    body = '{"name":"com.example/x","description":@,"icons":@}'
    for depth in DEPTHS:
        for made in (lists, objects):
            event = {
                "version": "2.0",
                "rawPath": "/api/3.0/mlflow/mcp-servers",
                "rawQueryString": "",
                "headers": JSON,
                "requestContext": {"http": {"method": "POST"}, "requestId": "test"},
                "isBase64Encoded": False,
                "body": body.replace("@", made(depth)),
            }
            answer = mcp_servers.app.handler(event, None)
            assert answer["statusCode"] in {400, 422}, (depth, answer["body"][:200])
            if depth > 250:
                assert "nested too deeply" in answer["body"]
