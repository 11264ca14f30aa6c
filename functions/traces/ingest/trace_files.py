"""Parses the files ``traces.json`` in which MLflow's clients send spans, in all forms that client
versions have used."""

from __future__ import annotations

import base64
from typing import Any

from mlcore.spans.attribute_values import json_value
from mlcore.spans.names import SPAN_TRACE_ID
from mlcore.spans.stored_span import StoredSpan
from mlcore.wire.json_text import parse_json_bytes

_CODES = {"OK": "STATUS_CODE_OK", "ERROR": "STATUS_CODE_ERROR", "UNSET": "STATUS_CODE_UNSET"}


def parse(data: bytes) -> list[StoredSpan] | None:
    """Returns the spans in a file ``traces.json``, root spans first, then by start; None if the
    file has another format."""
    try:
        content = parse_json_bytes(data, lone_surrogates=True)
        return sorted((_checked(_stored(span)) for span in content["spans"]), key=sort_key)
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError):
        return None


def sort_key(span: StoredSpan) -> tuple[bool, int]:
    """Returns the key by which spans are sorted: root spans first, then by start."""
    return span["parent_span_id"] is not None, span["start_time_unix_nano"]


def _checked(span: StoredSpan) -> StoredSpan:
    """Returns a span whose parts have the types that the responses need: clients may send any file.
    Raises KeyError, TypeError or ValueError otherwise."""
    links = span.get("links") or []
    texts = [span["name"], span["status"].get("message") or ""]
    texts += [event["name"] for event in span["events"]]
    texts += [link[name] for link in links for name in ("trace_id", "span_id")]
    maps = [span["attributes"]]
    maps += [part.get("attributes") or {} for part in (*span["events"], *links)]
    if not all(isinstance(text, str) for text in texts):
        raise ValueError
    if not all(isinstance(attributes, dict) for attributes in maps):
        raise ValueError
    return span


def _stored(span: dict[str, Any]) -> StoredSpan:
    if "context" in span:
        return _from_version_2(span)
    identified = {
        name: _base64(span[name], size)
        for name, size in (("trace_id", 16), ("span_id", 8), ("parent_span_id", 8))
    }
    code = span["status"]["code"]
    end = span.get("end_time_unix_nano")
    return {
        **span,
        **identified,
        "start_time_unix_nano": int(span["start_time_unix_nano"]),
        "end_time_unix_nano": int(end) if end else None,
        "status": {**span["status"], "code": _CODES.get(code, code)},
        "events": [
            {**event, "time_unix_nano": int(event["time_unix_nano"])}
            for event in span.get("events") or ()
        ],
    }


def _from_version_2(span: dict[str, Any]) -> StoredSpan:
    context = span["context"]
    trace_id = json_value(span["attributes"].get(SPAN_TRACE_ID)) or ""
    return {
        "trace_id": _hex_to_base64(context["trace_id"] or trace_id.removeprefix("tr-"), 16),
        "span_id": _hex_to_base64(context["span_id"], 8),
        "parent_span_id": _hex_to_base64(span["parent_id"], 8) if span["parent_id"] else None,
        "name": span["name"],
        "start_time_unix_nano": int(span["start_time"]),
        "end_time_unix_nano": int(span["end_time"]) if span["end_time"] else None,
        "events": [
            {
                "name": event["name"],
                "time_unix_nano": int(event["timestamp"]),
                "attributes": event["attributes"],
            }
            for event in span["events"]
        ],
        "status": {
            "code": _CODES.get(span["status_code"], "STATUS_CODE_UNSET"),
            "message": span["status_message"],
        },
        "attributes": span["attributes"],
        "links": span.get("links") or [],
    }


def _base64(text: str | None, size: int) -> str | None:
    """Returns an id of ``size`` bytes in Base64; None for an empty id. One version of the client
    wrote ids in hexadecimal; they are converted."""
    if not text:
        return None
    try:
        if len(base64.b64decode(text, validate=True)) == size:
            return text
    except ValueError:
        pass
    return _hex_to_base64(text.removeprefix("tr-"), size)


def _hex_to_base64(text: str, size: int) -> str:
    return base64.b64encode(int(text, 16).to_bytes(size, "big")).decode()
