"""Calls of the traces function, and spans as OpenTelemetry's JSON has them."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

import traces.app
from tests.contract.api import Answer, Failed

Fields = dict[str, Any]
START = 1_700_000_000_000_000_000


def ask(
    method: str,
    path: str,
    body: Any = None,
    headers: Mapping[str, str] | None = None,
    **query: Any,
) -> Answer:
    """``path`` begins with a version, such as ``3.0/traces``, or with a slash."""
    version, _, rest = path.partition("/")
    event: Fields = {
        "version": "2.0",
        "rawPath": path if path.startswith("/") else f"/api/{version}/mlflow/{rest}",
        "rawQueryString": urlencode(query, doseq=True),
        "headers": {
            "content-type": "application/json",
            "host": "localhost",
            "accept-encoding": "gzip, deflate",
            **(headers or {}),
        },
        "requestContext": {"http": {"method": method}, "requestId": "test"},
        "isBase64Encoded": False,
    }
    if body is not None:
        event["body"] = json.dumps(body)
    answered = traces.app.handler(event, None)
    text = answered["body"]
    if answered["isBase64Encoded"]:
        data = base64.b64decode(text)
        if answered["headers"].get("content-encoding") == "gzip":
            data = gzip.decompress(data)
        text = data.decode()
    return Answer(answered["statusCode"], json.loads(text) if text else {}, len(answered["body"]))


def tell(method: str, path: str, body: Any = None, **query: Any) -> Fields:
    answer = ask(method, path, body, **query)
    if answer.status != 200:
        raise Failed(f"{path}: {answer.status} {str(answer.body)[:500]}")
    return answer.body


def otlp_value(value: Any) -> Fields:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    return {"stringValue": value if isinstance(value, str) else json.dumps(value)}


def span(
    trace: str,
    number: int,
    parent: int | None = None,
    *,
    start: int = 0,
    end: int = 1,
    **attributes: Any,
) -> Fields:
    """A span with times in ms after START; ``a__b`` stands for the attribute ``a.b``."""
    results: Fields = {
        "traceId": trace,
        "spanId": f"{number:016x}",
        "name": f"span {number}",
        "startTimeUnixNano": str(START + start * 1_000_000),
        "endTimeUnixNano": str(START + end * 1_000_000),
        "attributes": [
            {"key": key.replace("__", "."), "value": otlp_value(value)}
            for key, value in attributes.items()
        ],
    }
    return results if parent is None else {**results, "parentSpanId": f"{parent:016x}"}


def export(
    experiment_id: str, spans: Sequence[Fields], resource: Mapping[str, Any] | None = None
) -> Answer:
    headers = {"x-mlflow-experiment-id": experiment_id}
    return ask("POST", "/v1/traces", resource_spans(spans, resource), headers)


def resource_spans(spans: Sequence[Fields], resource: Mapping[str, Any] | None = None) -> Fields:
    """The body of an export."""
    attributes = [
        {"key": key, "value": otlp_value(value)} for key, value in (resource or {}).items()
    ]
    scoped = {"resource": {"attributes": attributes}, "scopeSpans": [{"spans": list(spans)}]}
    return {"resourceSpans": [scoped]}


def start(experiment_id: str, trace_id: str, **info: Any) -> Fields:
    location = {
        "type": "MLFLOW_EXPERIMENT",
        "mlflow_experiment": {"experiment_id": experiment_id},
    }
    return {"trace": {"trace_info": {"trace_id": trace_id, "trace_location": location, **info}}}


def info(trace_id: str) -> Fields:
    trace_info: Fields = tell("GET", f"3.0/traces/{trace_id}")["trace"]["trace_info"]
    return trace_info


def whole(trace_id: str) -> Fields:
    trace: Fields = tell("GET", "3.0/traces/get", trace_id=trace_id, allow_partial="true")["trace"]
    return trace


def span_ids(spans: Iterable[Fields]) -> list[str]:
    return [base64.b64decode(item["span_id"]).hex() for item in spans]


def infos(experiment_id: str) -> list[Fields]:
    """The traces of an experiment, newest first."""
    location = {"type": "MLFLOW_EXPERIMENT", "mlflow_experiment": {"experiment_id": experiment_id}}
    page = tell("POST", "3.0/traces/search", {"locations": [location]})
    return list(page.get("traces", []))
