"""Traces that are sent to the product and to the stock server alike."""

from __future__ import annotations

import base64
import http.client
import json
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import pytest

json_format = pytest.importorskip("google.protobuf.json_format")


trace_service = pytest.importorskip("opentelemetry.proto.collector.trace.v1.trace_service_pb2")


START = 1_700_000_000_000_000_000


ID = "ID-OF-THE-EXPERIMENT"


CHANGING = ("create_time", "last_update_time", "assessment_id", "overrides", "next_page_token")


class Side:
    """One of the two servers, with an experiment of its own."""

    def __init__(self, url: str, name: str) -> None:
        self.url = url
        self._address = urlsplit(url).netloc
        made = self.ask("POST", "/api/2.0/mlflow/experiments/create", {"name": name})[1]
        self.experiment_id: str = made["experiment_id"]

    def ask(
        self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None
    ) -> tuple[int, Any, str]:
        """Status, body and content type; bytes are sent as they are."""
        own = getattr(self, "experiment_id", "")
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        sent = {"Content-Type": "application/json", **(headers or {})}
        connection = http.client.HTTPConnection(self._address, timeout=30)
        try:
            connection.request(
                method,
                path.replace(ID, own),
                data.replace(ID.encode(), own.encode()) if data else None,
                {name: value.replace(ID, own) for name, value in sent.items()},
            )
            answered = connection.getresponse()
            text = answered.read().decode()
        finally:
            connection.close()
        if own:
            text = re.sub(rf'("experiment_id": ?"|:/|id=){own}(?=["/ ])', rf"\1{ID}", text)
        try:
            content = json.loads(text)
        except ValueError:
            content = text
        return answered.status, content, answered.headers.get("content-type", "").split(";")[0]


def comparable(value: Any) -> Any:
    """Without what changes; lists of keys and values in one order."""
    if isinstance(value, list):
        comparables = [comparable(item) for item in value]
        pairs = bool(comparables) and all(
            isinstance(item, dict) and set(item) == {"key", "value"} for item in comparables
        )
        return sorted(comparables, key=str) if pairs else comparables
    if not isinstance(value, dict):
        return value
    return {
        key: "*" if key in CHANGING else comparable(item)
        for key, item in value.items()
        if key not in ("sqlstate", "error_class")
    }


class Two:
    def __init__(self, stock: str, product: str) -> None:
        name = f"traces {new_id()}"
        self.stock, self.product = Side(stock, name), Side(product, name)

    def same(
        self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None
    ) -> None:
        stock = self.stock.ask(method, path, body, headers)
        ours = self.product.ask(method, path, body, headers)
        assert comparable(list(ours)) == comparable(list(stock)), (method, path, body)

    def reads(self, trace_id: str) -> None:
        for path in (
            f"/api/3.0/mlflow/traces/{trace_id}",
            f"/api/3.0/mlflow/traces/get?trace_id={trace_id}&allow_partial=true",
            f"/api/3.0/mlflow/traces/batchGet?trace_ids={trace_id}",
            f"/api/2.0/mlflow/traces/{trace_id}/info",
            f"/ajax-api/2.0/mlflow/get-trace-artifact?request_id={trace_id}",
        ):
            self.same("GET", path)
        self.same("POST", "/api/3.0/mlflow/traces/batchGetInfos", {"trace_ids": [trace_id]})

    def export(self, spans: list[Any], resource: Any = (), **headers: str) -> None:
        request = {
            "resourceSpans": [
                {"resource": {"attributes": list(resource)}, "scopeSpans": [{"spans": spans}]}
            ]
        }
        message = json_format.ParseDict(
            in_base64(request), trace_service.ExportTraceServiceRequest()
        )
        self.same(
            "POST",
            "/v1/traces",
            message.SerializeToString(),
            {"x-mlflow-experiment-id": ID, "Content-Type": "application/x-protobuf", **headers},
        )


def in_base64(value: Any) -> Any:
    if isinstance(value, list):
        return [in_base64(item) for item in value]
    if not isinstance(value, dict):
        return value
    ids = ("traceId", "spanId", "parentSpanId")
    return {
        key: base64.b64encode(bytes.fromhex(item)).decode() if key in ids else in_base64(item)
        for key, item in value.items()
    }


@pytest.fixture(scope="module")
def two(stock_url: str, product_url: str) -> Two:
    return Two(stock_url, product_url)


def new_id(digits: int = 32) -> str:
    return uuid4().hex[:digits]


def attribute(key: str, value: Any) -> Any:
    return {"key": key, "value": value}


def text(key: str, value: Any) -> Any:
    return attribute(key, {"stringValue": value if isinstance(value, str) else json.dumps(value)})


def span(
    trace: str, number: int, parent: int = 0, at: int = 0, *attributes: Any, **more: Any
) -> Any:
    results = {
        "traceId": trace,
        "spanId": f"{number:016x}",
        "name": f"span {number}",
        "startTimeUnixNano": START + at * 1_000_000,
        "endTimeUnixNano": START + (at + 500) * 1_000_000,
        "attributes": list(attributes),
        **more,
    }
    return {**results, "parentSpanId": f"{parent:016x}"} if parent else results


VALUES = [
    attribute("int", {"intValue": 5}),
    attribute("zero", {"intValue": 0}),
    attribute("no", {"boolValue": False}),
    attribute("double", {"doubleValue": 2.0}),
    attribute("large", {"doubleValue": 1e300}),
    attribute("none", {}),
    attribute("list", {"arrayValue": {"values": [{"intValue": 1}, {"arrayValue": {}}, {}]}}),
    attribute("map", {"kvlistValue": {"values": [text("ü", "ö")]}}),
    attribute("bytes", {"bytesValue": "AQID"}),
    text("json", [1, 2]),
    text("number", "12"),
    text("quoted", '"12"'),
    text("empty", ""),
]


TOLD = {
    "trace_location": {"type": "MLFLOW_EXPERIMENT", "mlflow_experiment": {"experiment_id": ID}},
    "request_time": "2023-11-14T22:13:20.123Z",
    "execution_duration": "1.234s",
    "state": "OK",
    "request_preview": "rp",
    "client_request_id": "cr",
    "trace_metadata": {
        "m": "v" * 300,
        "mlflow.trace.sizeStats": '{"num_spans": 4}',
        "mlflow.trace.tokenUsage": json.dumps(
            {"input_tokens": 1, "output_tokens": "2", "total_tokens": 3, "o": 4}
        ),
        "mlflow.trace.session": "told",
    },
    "tags": {"t": "u", "long": "x" * 5000, "mlflow.traceName": "given"},
}
