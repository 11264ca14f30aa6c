"""Exports spans with OpenTelemetry's own SDK and exporter, and checks what comes back."""

from __future__ import annotations

import base64
import json
import sys
from importlib.metadata import version
from typing import Any

import requests
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Link, SpanContext, SpanKind, Status, StatusCode

URI, NAME = sys.argv[1], sys.argv[2]
Told = dict[str, Any]
WHEN = 1_700_000_000_123_456_789
ATTRIBUTES: dict[str, Any] = {
    "text": "ä\n\t\"' \N{GRINNING FACE}",
    "empty": "",
    "digits": "007",
    "flag": True,
    "count": -(2**63),
    "large": 2**53 + 1,
    "ratio": 0.1,
    "tiny": 5e-324,
    "texts": ["a", ""],
    "flags": [True, False],
    "counts": [1, 2**62],
    "ratios": [0.5, -0.0],
    "nothing": [],
    "a.b/c d": "key",
    "long": "x" * 20_000,
}


def ask(method: str, path: str, **more: Any) -> Any:
    answer = requests.request(method, f"{URI}/api/{path}", timeout=30, **more)
    assert answer.ok, (answer.status_code, answer.text)
    return answer.json()


class Kept(BatchSpanProcessor):
    """Remembers what has ended."""

    def __init__(self, exporter: OTLPSpanExporter, ended: list[ReadableSpan]) -> None:
        super().__init__(exporter, max_export_batch_size=7)
        self.ended = ended

    def on_end(self, span: ReadableSpan) -> None:
        self.ended.append(span)
        super().on_end(span)


def value(encoded: Told) -> Any:
    """What a value of OpenTelemetry's JSON says."""
    if not encoded:
        return None
    ((kind, content),) = encoded.items()
    if kind == "array_value":
        return [value(item) for item in content.get("values", [])]
    if kind == "kvlist_value":
        return attributes(content.get("values", []))
    return content


def attributes(pairs: list[Told]) -> Told:
    return {pair.get("key", ""): value(pair.get("value", {})) for pair in pairs}


def hexadecimal(text: str) -> str:
    return base64.b64decode(text).hex()


def came(span: Told) -> Told:
    span_attributes = attributes(span.get("attributes", []))
    span_attributes.pop("mlflow.traceRequestId")
    return {
        "id": hexadecimal(span["span_id"]),
        "parent": hexadecimal(span["parent_span_id"]) if "parent_span_id" in span else None,
        "name": span["name"],
        "start": int(span["start_time_unix_nano"]),
        "end": int(span["end_time_unix_nano"]),
        "status": (
            span["status"].get("code", "STATUS_CODE_UNSET"),
            span["status"].get("message", ""),
        ),
        "attributes": span_attributes,
        "events": [
            (
                event["name"],
                int(event["time_unix_nano"]),
                attributes(event.get("attributes", [])),
            )
            for event in span.get("events", [])
        ],
        "links": [
            (
                hexadecimal(link["trace_id"]),
                hexadecimal(link["span_id"]),
                attributes(link.get("attributes", [])),
            )
            for link in span.get("links", [])
        ],
    }


def plain(mapping: Any) -> Any:
    return json.loads(json.dumps(dict(mapping or {})))


def went(span: ReadableSpan) -> Told:
    context = span.context
    assert context is not None
    return {
        "id": f"{context.span_id:016x}",
        "parent": f"{span.parent.span_id:016x}" if span.parent else None,
        "name": span.name,
        "start": span.start_time,
        "end": span.end_time,
        "status": (f"STATUS_CODE_{span.status.status_code.name}", span.status.description or ""),
        "attributes": plain(span.attributes),
        "events": [(event.name, event.timestamp, plain(event.attributes)) for event in span.events],
        "links": [
            (
                f"{link.context.trace_id:032x}",
                f"{link.context.span_id:016x}",
                plain(link.attributes),
            )
            for link in span.links
        ],
    }


def make(tracer: trace.Tracer) -> None:
    """Two traces: one of many spans, one that failed and points at the first."""
    with tracer.start_as_current_span("root", kind=SpanKind.SERVER, attributes=ATTRIBUTES) as root:
        first = root.get_span_context()
        root.add_event("told", {"s": "é", "i": 1, "f": 0.5, "b": True, "l": ["p", "q"]}, WHEN)
        for number in range(20):
            with tracer.start_as_current_span(f"child {number}") as child:
                child.set_attribute("number", number)
                child.add_event("tick", timestamp=WHEN + number)
                tracer.start_span("leaf", kind=SpanKind.CLIENT, start_time=WHEN).end(WHEN + number)
        root.set_status(Status(StatusCode.OK))
    elsewhere = SpanContext(1 << 100 | 7, 9, is_remote=True)
    links = [Link(first, {"why": "follows", "n": 3}), Link(elsewhere)]
    try:
        with tracer.start_as_current_span("fails", links=links):
            raise ValueError("wanted")
    except ValueError:
        pass


def check(experiment: str, ended: list[ReadableSpan]) -> None:
    by_trace: dict[str, list[Told]] = {}
    for span in ended:
        assert span.context is not None
        by_trace.setdefault(f"tr-{span.context.trace_id:032x}", []).append(went(span))
    assert sorted(map(len, by_trace.values())) == [1, 41]
    for trace_id, spans in by_trace.items():
        answer = ask("GET", "3.0/mlflow/traces/get", params={"trace_id": trace_id})["trace"]
        back = sorted(map(came, answer["spans"]), key=lambda item: str(item["id"]))
        for received, other in zip(
            back, sorted(spans, key=lambda item: str(item["id"])), strict=True
        ):
            different = {
                key: (received[key], other[key]) for key in received if received[key] != other[key]
            }
            assert not different, (received["name"], different)
        info = answer["trace_info"]
        assert info["state"] == ("OK" if len(spans) > 1 else "ERROR"), info
        assert info["tags"]["team"] == "red", info
        owner = info["trace_location"]["mlflow_experiment"]["experiment_id"]
        assert owner == experiment, owner


def main() -> None:
    body = {"name": NAME}
    experiment = ask("POST", "2.0/mlflow/experiments/create", json=body)["experiment_id"]
    for compression in (Compression.NoCompression, Compression.Gzip, Compression.Deflate):
        exporter = OTLPSpanExporter(
            f"{URI}/v1/traces",
            headers={"x-mlflow-experiment-id": experiment},
            compression=compression,
        )
        ended: list[ReadableSpan] = []
        provider = TracerProvider(resource=Resource.create({"service.name": "svc", "team": "red"}))
        provider.add_span_processor(Kept(exporter, ended))
        make(provider.get_tracer("one", "1.0"))
        assert provider.force_flush()
        check(experiment, ended)
        provider.shutdown()
    sys.stdout.write(f"ok {version('opentelemetry-sdk')}\n")


main()
