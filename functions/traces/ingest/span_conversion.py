"""Converts spans of OpenTelemetry's protocol to the form in which MLflow stores them: a JSON object
in which each attribute's value is JSON text."""

from __future__ import annotations

import base64
from typing import Final

from mlcore.spans.attribute_values import json_text, json_value
from mlcore.spans.names import SPAN_TRACE_ID, SPAN_TRACE_TAG, SYSTEM_TAGS
from mlcore.spans.stored_span import INTERNAL, StoredSpan, base64_id
from mlcore.wire.json_text import load_json
from traces.conventions.translation import translate
from traces.ingest import otlp

_STATUS: Final = {1: "STATUS_CODE_OK", 2: "STATUS_CODE_ERROR"}
_KINDS: Final = {
    2: "SPAN_KIND_SERVER",
    3: "SPAN_KIND_CLIENT",
    4: "SPAN_KIND_PRODUCER",
    5: "SPAN_KIND_CONSUMER",
}


class Inconvertible(ValueError):
    """Raised if a span has no id, or an id longer than OpenTelemetry allows."""


def to_stored(span: otlp.Span, service: str | None = None) -> StoredSpan:
    """Converts a span of OpenTelemetry's protocol to the form in which MLflow stores it.

    Args:
        service: the name to store as ``service.name`` if it is a root span; None for none.

    Raises:
        Inconvertible: the span has no id, or an id that is too long.
    """
    if not span.trace_id or not span.span_id:
        raise Inconvertible
    trace_id = trace_id_of(span)
    parent = _number(span.parent_span_id)
    attributes = {key: json_text(value) for key, value in span.attributes.items()}
    attributes[SPAN_TRACE_ID] = json_text(trace_id)
    if not parent:
        for key in SYSTEM_TAGS:
            attributes.pop(SPAN_TRACE_TAG + key, None)
        if service:
            attributes["service.name"] = json_text(service)
    stored_span: StoredSpan = {
        "trace_id": _base64(_number(span.trace_id), 16),
        "span_id": _base64(_number(span.span_id), 8),
        "parent_span_id": _base64(parent, 8) if parent else None,
        "name": span.name,
        "kind": _KINDS.get(span.kind, INTERNAL),
        "start_time_unix_nano": span.start,
        "end_time_unix_nano": span.end,
        "events": [
            {"name": event.name, "time_unix_nano": event.time, "attributes": event.attributes}
            for event in span.events
        ],
        "status": {
            "code": _STATUS.get(span.status, "STATUS_CODE_UNSET"),
            "message": span.message if span.status == 2 else "",
        },
        "attributes": {key: _encoded_once(value) for key, value in attributes.items()},
        "links": [
            {
                "trace_id": f"tr-{_number(link.trace_id):032x}",
                "span_id": f"{_number(link.span_id):016x}",
                "attributes": {
                    key: base64.b64encode(value).decode() if isinstance(value, bytes) else value
                    for key, value in link.attributes.items()
                }
                or None,
            }
            for link in span.links
        ],
    }
    translate(stored_span["attributes"], stored_span["events"])
    return stored_span


def trace_id_of(span: otlp.Span) -> str:
    return f"tr-{_number(span.trace_id):032x}"


def _encoded_once(value: str) -> str:
    """Undoes the JSON encoding of a value that was already JSON text when it arrived."""
    inner = json_value(value)
    if isinstance(inner, str):
        try:
            if isinstance(load_json(inner), str | dict | list):
                return inner
        except ValueError:
            pass
    return value


def _number(data: bytes) -> int:
    return int.from_bytes(data, "big")


def _base64(number: int, length: int) -> str:
    try:
        return base64_id(number, length)
    except OverflowError:
        raise Inconvertible from None
