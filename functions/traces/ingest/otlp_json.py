"""Reads OpenTelemetry's ExportTraceServiceRequest from JSON: protobuf's JSON mapping, except that
ids are hexadecimal."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping
from typing import Any, Final

from mlcore.wire.json_text import load_json
from traces.ingest.otlp import DEEPEST, Event, InvalidExport, Link, ResourceSpans, Span

_STATUS: Final = {"STATUS_CODE_UNSET": 0, "STATUS_CODE_OK": 1, "STATUS_CODE_ERROR": 2}
_KINDS: Final = {
    "SPAN_KIND_UNSPECIFIED": 0,
    "SPAN_KIND_INTERNAL": 1,
    "SPAN_KIND_SERVER": 2,
    "SPAN_KIND_CLIENT": 3,
    "SPAN_KIND_PRODUCER": 4,
    "SPAN_KIND_CONSUMER": 5,
}


def read(data: bytes) -> list[ResourceSpans]:
    """Returns the spans of an OTLP export request in JSON, grouped by OpenTelemetry resource.
    Raises InvalidExport if ``data`` is not in this format."""
    try:
        request = load_json(data)
        return [_resource_spans(entry) for entry in _list(request, "resourceSpans")]
    except (
        *(AttributeError, KeyError, OverflowError, RecursionError, TypeError, ValueError),
    ) as error:
        raise InvalidExport from error


def _get(message: dict[str, Any], name: str) -> Any:
    """Reads a field by its JSON name (``traceId``), or if that is absent by its protobuf name
    (``trace_id``)."""
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
        raise InvalidExport
    return value


def _text(message: dict[str, Any], name: str) -> str:
    value = _get(message, name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise InvalidExport
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
        _enum(status.get("code"), _STATUS),
        _text(status, "message"),
        _enum(_get(entry, "kind"), _KINDS),
    )


def _enum(value: Any, names: Mapping[str, int]) -> int:
    """Reads an enum: its name or its number; 0 if it is absent."""
    if value is None:
        return 0
    return names[value] if value in names else _int64(value)


def _id(entry: dict[str, Any], name: str) -> bytes:
    """Reads an id: hexadecimal under the JSON name, Base64 under the protobuf name."""
    value = entry.get(name)
    if value:
        return bytes.fromhex(value)
    return _base64(_text(entry, name))


def _base64(value: str) -> bytes:
    try:
        return base64.b64decode(value.replace("-", "+").replace("_", "/") + "=" * (-len(value) % 4))
    except binascii.Error as error:
        raise InvalidExport from error


def _attributes(entry: dict[str, Any]) -> dict[str, Any]:
    return _key_values(_list(entry, "attributes"))


def _key_values(entries: Iterable[dict[str, Any]], depth: int = 0) -> dict[str, Any]:
    return {_text(entry, "key"): _any(entry.get("value"), depth) for entry in entries}


def _any(value: dict[str, Any] | None, depth: int) -> Any:
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
                    raise InvalidExport
                return content
            case "intValue" | "int_value":
                return _int64(content)
            case "doubleValue" | "double_value":
                return float(content)
            case "arrayValue" | "array_value":
                return [_any(item, depth + 1) for item in _values(content, depth)]
            case "kvlistValue" | "kvlist_value":
                return _key_values(_values(content, depth), depth + 1)
            case "bytesValue" | "bytes_value":
                return _base64(content)
    return None


def _values(content: dict[str, Any], depth: int) -> list[Any]:
    """Returns the values within a value at this depth. Raises InvalidExport if it is too deep."""
    if depth == DEEPEST:
        raise InvalidExport
    return _list(content, "values")


def _int64(value: Any) -> int:
    if isinstance(value, bool) or (isinstance(value, float) and not value.is_integer()):
        raise InvalidExport
    number = int(value)
    if not -(2**63) <= number < 2**63:
        raise InvalidExport
    return number


def _uint64(value: Any) -> int:
    if value is None:
        return 0
    if isinstance(value, bool) or (isinstance(value, float) and not value.is_integer()):
        raise InvalidExport
    number = int(value)
    if not 0 <= number < 2**64:
        raise InvalidExport
    return number
