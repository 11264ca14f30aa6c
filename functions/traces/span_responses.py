"""Converts stored spans to the JSON form of OpenTelemetry's protobuf spans, which MLflow's
responses contain."""

from __future__ import annotations

import base64
from typing import Any

from mlcore.spans.attribute_values import json_value
from mlcore.spans.stored_span import INTERNAL, StoredSpan
from mlcore.wire.json_text import storable


def span(entity: StoredSpan) -> dict[str, Any]:
    message: dict[str, Any] = {
        "trace_id": entity["trace_id"],
        "span_id": entity["span_id"],
    }
    if entity.get("parent_span_id"):
        message["parent_span_id"] = entity["parent_span_id"]
    if entity["name"]:
        message["name"] = entity["name"]
    message["kind"] = entity.get("kind") or INTERNAL
    if entity["start_time_unix_nano"]:
        message["start_time_unix_nano"] = entity["start_time_unix_nano"]
    if entity.get("end_time_unix_nano"):
        message["end_time_unix_nano"] = entity["end_time_unix_nano"]
    attributes = [_key_value(key, json_value(value)) for key, value in entity["attributes"].items()]
    if attributes:
        message["attributes"] = attributes
    events = [_event(event) for event in entity.get("events") or ()]
    if events:
        message["events"] = events
    links = list(filter(None, map(_link, entity.get("links") or ())))
    if links:
        message["links"] = links
    message["status"] = _status(entity["status"])
    return message


def _event(event: dict[str, Any]) -> dict[str, Any]:
    message: dict[str, Any] = {}
    if event["time_unix_nano"]:
        message["time_unix_nano"] = event["time_unix_nano"]
    if event["name"]:
        message["name"] = event["name"]
    attributes = [_key_value(key, value) for key, value in (event.get("attributes") or {}).items()]
    if attributes:
        message["attributes"] = attributes
    return message


def _link(link: dict[str, Any]) -> dict[str, Any] | None:
    """Converts a link of a span; returns None if its ids do not fit OpenTelemetry's format."""
    try:
        trace_id = int(link["trace_id"].removeprefix("tr-"), 16).to_bytes(16, "big")
        span_id = int(link["span_id"], 16).to_bytes(8, "big")
    except (OverflowError, ValueError):
        return None
    message: dict[str, Any] = {"trace_id": _base64(trace_id), "span_id": _base64(span_id)}
    attributes = [_key_value(key, value) for key, value in (link.get("attributes") or {}).items()]
    if attributes:
        message["attributes"] = attributes
    return message


def _status(status: dict[str, Any]) -> dict[str, Any]:
    message: dict[str, Any] = {}
    if status.get("message"):
        message["message"] = status["message"]
    if status["code"] in ("STATUS_CODE_OK", "STATUS_CODE_ERROR"):
        message["code"] = status["code"]
    return message


def _key_value(key: str, value: Any) -> dict[str, Any]:
    message: dict[str, Any] = {"key": key} if key else {}
    if value is not None:
        message["value"] = _any(value)
    return message


def _any(value: Any) -> dict[str, Any]:
    if value is None:
        return {}
    if isinstance(value, bool):
        return {"bool_value": value}
    if isinstance(value, str):
        return {"string_value": storable(value)}
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
