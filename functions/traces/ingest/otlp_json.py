"""Reads OpenTelemetry's ExportTraceServiceRequest from JSON: protobuf's JSON, but with ids in
hexadecimal."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterable
from typing import Any, Final

from traces.ingest.otlp import Event, Link, Malformed, ResourceSpans, Span

_STATUS: Final = {"STATUS_CODE_UNSET": 0, "STATUS_CODE_OK": 1, "STATUS_CODE_ERROR": 2}


def read(data: bytes) -> list[ResourceSpans]:
    """The spans of a request, by resource.

    Raises:
        Malformed: the data is not of this format.
    """
    try:
        request = json.loads(data)
        return [_resource_spans(entry) for entry in _list(request, "resourceSpans")]
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise Malformed from error


def _get(message: dict[str, Any], name: str) -> Any:
    """A field by its JSON name, or by its name in protobuf."""
    value = message.get(name)
    if value is None:
        snake = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
        value = message.get(snake)
    return value


def _list(message: dict[str, Any], name: str) -> list[Any]:
    value = _get(message, name)
    if value is None:
        return []
    if not isinstance(value, list):
        raise Malformed
    return value


def _text(message: dict[str, Any], name: str) -> str:
    value = _get(message, name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise Malformed
    value.encode()
    return value


def _resource_spans(entry: dict[str, Any]) -> ResourceSpans:
    resource = entry.get("resource") or {}
    spans = [_span(span) for scope in _list(entry, "scopeSpans") for span in _list(scope, "spans")]
    return ResourceSpans(_attributes(resource), spans)


def _span(entry: dict[str, Any]) -> Span:
    status = entry.get("status") or {}
    return Span(
        _id(entry, "traceId"),
        _id(entry, "spanId"),
        _id(entry, "parentSpanId"),
        _text(entry, "name"),
        _uint64(_get(entry, "startTimeUnixNano")),
        _uint64(_get(entry, "endTimeUnixNano")),
        _attributes(entry),
        [
            Event(_text(event, "name"), _uint64(_get(event, "timeUnixNano")), _attributes(event))
            for event in _list(entry, "events")
        ],
        [
            Link(_id(link, "traceId"), _id(link, "spanId"), _attributes(link))
            for link in _list(entry, "links")
        ],
        _code(status.get("code")),
        _text(status, "message"),
    )


def _code(value: Any) -> int:
    if value is None:
        return 0
    return _STATUS[value] if value in _STATUS else _int64(value)


def _id(entry: dict[str, Any], name: str) -> bytes:
    """Hexadecimal under the JSON name, base64 under the one in protobuf."""
    value = entry.get(name)
    if value:
        return bytes.fromhex(value)
    return _base64(_text(entry, name))


def _base64(value: str) -> bytes:
    try:
        return base64.b64decode(value.replace("-", "+").replace("_", "/") + "=" * (-len(value) % 4))
    except binascii.Error as error:
        raise Malformed from error


def _attributes(entry: dict[str, Any]) -> dict[str, Any]:
    return _key_values(_list(entry, "attributes"))


def _key_values(entries: Iterable[dict[str, Any]]) -> dict[str, Any]:
    return {_text(entry, "key"): _any(entry.get("value")) for entry in entries}


def _any(value: dict[str, Any] | None) -> Any:
    if not value:
        return None
    if len(value) > 1:
        value = {name: content for name, content in value.items() if content is not None}
    for name, content in value.items():
        if content is None:
            return None
        match name:
            case "stringValue" | "string_value":
                return _text(value, "stringValue")
            case "boolValue" | "bool_value":
                if not isinstance(content, bool):
                    raise Malformed
                return content
            case "intValue" | "int_value":
                return _int64(content)
            case "doubleValue" | "double_value":
                return float(content)
            case "arrayValue" | "array_value":
                return [_any(item) for item in _list(content, "values")]
            case "kvlistValue" | "kvlist_value":
                return _key_values(_list(content, "values"))
            case "bytesValue" | "bytes_value":
                return _base64(content)
    return None


def _int64(value: Any) -> int:
    if isinstance(value, bool) or (isinstance(value, float) and not value.is_integer()):
        raise Malformed
    number = int(value)
    if not -(2**63) <= number < 2**63:
        raise Malformed
    return number


def _uint64(value: Any) -> int:
    if value is None:
        return 0
    if isinstance(value, bool) or (isinstance(value, float) and not value.is_integer()):
        raise Malformed
    number = int(value)
    if not 0 <= number < 2**64:
        raise Malformed
    return number
