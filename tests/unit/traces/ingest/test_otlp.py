"""Both readers of export requests read what OpenTelemetry's own classes wrote."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import number_of
from tests.unit.traces.ingest.otlp_values import (
    VALUES,
    trace_service,
    written,
)
from traces.ingest import otlp, otlp_json, otlp_protobuf

json_format = pytest.importorskip("google.protobuf.json_format")

ATTRIBUTES = st.dictionaries(st.text(max_size=6), VALUES, max_size=4)
TIMES = st.integers(0, 2**64 - 1)

SPANS = st.builds(
    otlp.Span,
    trace_id=st.binary(min_size=16, max_size=16),
    span_id=st.binary(min_size=8, max_size=8),
    parent_span_id=st.sampled_from([b"", b"12345678"]),
    name=st.text(max_size=10),
    start=TIMES,
    end=TIMES,
    attributes=ATTRIBUTES,
    events=st.lists(st.builds(otlp.Event, st.text(max_size=5), TIMES, ATTRIBUTES), max_size=2),
    links=st.lists(
        st.builds(
            otlp.Link,
            st.binary(min_size=16, max_size=16),
            st.binary(min_size=8, max_size=8),
            ATTRIBUTES,
        ),
        max_size=2,
    ),
    status=st.sampled_from([0, 1, 2]),
    kind=st.integers(0, 5),
    message=st.text(max_size=5),
)
REQUESTS = st.lists(
    st.builds(otlp.ResourceSpans, ATTRIBUTES, st.lists(SPANS, max_size=3)), max_size=3
)


def in_hexadecimal(value: Any) -> Any:
    """Protobuf's JSON with ids as OpenTelemetry's JSON has them."""
    if isinstance(value, list):
        return [in_hexadecimal(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        key: base64.b64decode(item).hex()
        if key in ("traceId", "spanId", "parentSpanId")
        else in_hexadecimal(item)
        for key, item in value.items()
    }


@settings(deadline=None)
@given(REQUESTS)
def test_protobuf(request: list[otlp.ResourceSpans]) -> None:
    assert otlp_protobuf.read(written(request).SerializeToString()) == request


@settings(deadline=None)
@given(REQUESTS)
def test_json(request: list[otlp.ResourceSpans]) -> None:
    messagetodict = json_format.MessageToDict(written(request))
    assert otlp_json.read(json.dumps(in_hexadecimal(messagetodict)).encode()) == request


@given(st.binary(max_size=60))
def test_other_bytes_are_malformed_or_read(data: bytes) -> None:
    for read in (otlp_protobuf.read, otlp_json.read):
        try:
            assert isinstance(read(data), list)
        except otlp.InvalidExport:
            continue


@settings(deadline=None, max_examples=number_of(30))
@given(REQUESTS, st.data())
def test_cut_requests_are_malformed_or_read(
    request: list[otlp.ResourceSpans], data: st.DataObject
) -> None:
    whole = written(request).SerializeToString()
    cut = whole[: data.draw(st.integers(0, len(whole)))]
    try:
        oracle = trace_service.ExportTraceServiceRequest.FromString(cut)
    except Exception:
        oracle = None
    try:
        read = otlp_protobuf.read(cut)
    except otlp.InvalidExport:
        assert oracle is None
    else:
        assert oracle is None or len(read) == len(oracle.resource_spans)
