"""Stored spans in the JSON of OpenTelemetry's protobuf spans, as MLflow's server answers them."""

from __future__ import annotations

import base64
from typing import Any

from mlcore.spans.attributes import json_value
from mlcore.spans.stored import StoredSpan


def span(entity: StoredSpan) -> dict[str, Any]:
    found: dict[str, Any] = {
        "trace_id": entity["trace_id"],
        "span_id": entity["span_id"],
    }
    if entity.get("parent_span_id"):
        found["parent_span_id"] = entity["parent_span_id"]
    if entity["name"]:
        found["name"] = entity["name"]
    if entity["start_time_unix_nano"]:
        found["start_time_unix_nano"] = entity["start_time_unix_nano"]
    if entity.get("end_time_unix_nano"):
        found["end_time_unix_nano"] = entity["end_time_unix_nano"]
    attributes = [_key_value(key, json_value(value)) for key, value in entity["attributes"].items()]
    if attributes:
        found["attributes"] = attributes
    events = [_event(event) for event in entity.get("events") or ()]
    if events:
        found["events"] = events
    links = list(filter(None, map(_link, entity.get("links") or ())))
    if links:
        found["links"] = links
    found["status"] = _status(entity["status"])
    return found


def _event(event: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if event["time_unix_nano"]:
        found["time_unix_nano"] = event["time_unix_nano"]
    if event["name"]:
        found["name"] = event["name"]
    attributes = [_key_value(key, value) for key, value in (event.get("attributes") or {}).items()]
    if attributes:
        found["attributes"] = attributes
    return found


def _link(link: dict[str, Any]) -> dict[str, Any] | None:
    """None for a link with ids that OpenTelemetry's format does not hold."""
    try:
        trace_id = int(link["trace_id"].removeprefix("tr-"), 16).to_bytes(16, "big")
        span_id = int(link["span_id"], 16).to_bytes(8, "big")
    except (OverflowError, ValueError):
        return None
    found: dict[str, Any] = {"trace_id": _base64(trace_id), "span_id": _base64(span_id)}
    attributes = [_key_value(key, value) for key, value in (link.get("attributes") or {}).items()]
    if attributes:
        found["attributes"] = attributes
    return found


def _status(status: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if status.get("message"):
        found["message"] = status["message"]
    if status["code"] in ("STATUS_CODE_OK", "STATUS_CODE_ERROR"):
        found["code"] = status["code"]
    return found


def _key_value(key: str, value: Any) -> dict[str, Any]:
    found: dict[str, Any] = {"key": key} if key else {}
    if value is not None:
        found["value"] = _any(value)
    return found


def _any(value: Any) -> dict[str, Any]:
    if value is None:
        return {}
    if isinstance(value, bool):
        return {"bool_value": value}
    if isinstance(value, str):
        return {"string_value": value.encode(errors="replace").decode()}
    if isinstance(value, int):
        if -(2**63) <= value < 2**63:
            return {"int_value": value}
        return {"string_value": str(value)}
    if isinstance(value, float):
        return {"double_value": value}
    if isinstance(value, list):
        items = [_any(item) for item in value]
        return {"array_value": {"values": items} if items else {}}
    pairs = [_key_value(str(key), item) for key, item in value.items()]
    return {"kvlist_value": {"values": pairs} if pairs else {}}


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()
