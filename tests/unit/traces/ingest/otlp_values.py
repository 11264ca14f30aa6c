"""Values of span attributes in OTLP, and how they are stored."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import strategies as st

from traces.ingest import otlp

trace_service = pytest.importorskip("opentelemetry.proto.collector.trace.v1.trace_service_pb2")


SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False),
    st.text(max_size=8),
    st.binary(max_size=8),
)


VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=6,
)


def _any(target: Any, value: Any) -> None:
    match value:
        case None:
            target.SetInParent()
        case bool():
            target.bool_value = value
        case int():
            target.int_value = value
        case float():
            target.double_value = value
        case str():
            target.string_value = value
        case bytes():
            target.bytes_value = value
        case list():
            target.array_value.SetInParent()
            for item in value:
                _any(target.array_value.values.add(), item)
        case dict():
            target.kvlist_value.SetInParent()
            _pairs(target.kvlist_value.values, value)


def _pairs(target: Any, values: dict[str, Any]) -> None:
    for key, value in values.items():
        pair = target.add()
        pair.key = key
        _any(pair.value, value)


def written(request: list[otlp.ResourceSpans]) -> Any:
    message = trace_service.ExportTraceServiceRequest()
    for resource, spans in request:
        of_resource = message.resource_spans.add()
        _pairs(of_resource.resource.attributes, resource)
        scope = of_resource.scope_spans.add()
        scope.scope.name = "a scope"
        for span in spans:
            made = scope.spans.add(
                trace_id=span.trace_id,
                span_id=span.span_id,
                parent_span_id=span.parent_span_id,
                name=span.name,
                kind=span.kind,
                flags=257,
                trace_state="a=b",
                start_time_unix_nano=span.start,
                end_time_unix_nano=span.end,
                dropped_attributes_count=3,
            )
            _pairs(made.attributes, span.attributes)
            for event in span.events:
                _pairs(
                    made.events.add(name=event.name, time_unix_nano=event.time).attributes,
                    event.attributes,
                )
            for link in span.links:
                added = made.links.add(trace_id=link.trace_id, span_id=link.span_id)
                _pairs(added.attributes, link.attributes)
            made.status.code = span.status
            made.status.message = span.message
    return message
