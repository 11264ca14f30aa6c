"""Reads OpenTelemetry's ExportTraceServiceRequest from protobuf's wire format.

Unknown fields are skipped. If a field that is not repeated occurs several times, the last value
counts. A message split over several occurrences of a field is not merged (except a resource): no
encoder writes it so.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import unpack_from
from typing import Any

from traces.ingest.otlp import DEEPEST, Event, InvalidExport, Link, ResourceSpans, Span

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
Field = tuple[int, int, Any]
"""A field's number, wire type and value: an int, or a memoryview of the bytes."""


def read(data: bytes) -> list[ResourceSpans]:
    """Returns the spans of an OTLP export request in protobuf, by resource. Raises InvalidExport if
    the data is not in this format."""
    try:
        return [_resource_spans(value) for value in _messages(memoryview(data), 1)]
    except (IndexError, UnicodeDecodeError, ValueError) as error:
        raise InvalidExport from error


def _fields(data: memoryview) -> Iterator[Field]:
    position, end = 0, len(data)
    while position < end:
        tag, position = _varint(data, position)
        number, kind = tag >> 3, tag & 7
        if not number:
            raise InvalidExport
        value: Any
        if kind == _VARINT:
            value, position = _varint(data, position)
        elif kind == _BYTES:
            size, position = _varint(data, position)
            value = data[position : position + size]
            if len(value) != size:
                raise InvalidExport
            position += size
        elif kind == _FIXED64:
            value = data[position : position + 8]
            position += 8
        elif kind == _FIXED32:
            value = data[position : position + 4]
            position += 4
        else:
            raise InvalidExport
        if position > end:
            raise InvalidExport
        yield number, kind, value


def _varint(data: memoryview, position: int) -> tuple[int, int]:
    value = data[position]
    position += 1
    if value < 128:
        return value, position
    value &= 127
    shift = 7
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value & 0xFFFFFFFFFFFFFFFF, position
        shift += 7
        if shift > 63:
            raise InvalidExport


def _messages(data: memoryview, field: int) -> Iterator[memoryview]:
    return (value for number, kind, value in _fields(data) if (number, kind) == (field, _BYTES))


def _resource_spans(data: memoryview) -> ResourceSpans:
    resource: dict[str, Any] = {}
    spans: list[Span] = []
    for number, kind, value in _fields(data):
        if kind != _BYTES:
            continue
        if number == 1:
            resource.update(map(_key_value, _messages(value, 1)))
        elif number == 2:
            spans.extend(map(_span, _messages(value, 2)))
    return ResourceSpans(resource, spans)


def _span(data: memoryview) -> Span:
    times = {7: 0, 8: 0}
    single: dict[int, memoryview] = {}
    attributes: dict[str, Any] = {}
    events: list[Event] = []
    links: list[Link] = []
    span_kind = 0
    for number, kind, value in _fields(data):
        if kind == _BYTES:
            if number == 9:
                key, content = _key_value(value)
                attributes[key] = content
            elif number == 11:
                events.append(_event(value))
            elif number == 13:
                links.append(_link(value))
            else:
                single[number] = value
        elif kind == _FIXED64:
            times[number] = _uint64(value)
        elif (number, kind) == (6, _VARINT):
            span_kind = value
    nothing = memoryview(b"")
    return Span(
        bytes(single.get(1, nothing)),
        bytes(single.get(2, nothing)),
        bytes(single.get(4, nothing)),
        str(single.get(5, nothing), "utf-8"),
        times[7],
        times[8],
        attributes,
        events,
        links,
        *_status(single.get(15, nothing)),
        span_kind,
    )


def _event(data: memoryview) -> Event:
    time, name, attributes = 0, "", {}
    for number, kind, value in _fields(data):
        if (number, kind) == (1, _FIXED64):
            time = _uint64(value)
        elif (number, kind) == (2, _BYTES):
            name = str(value, "utf-8")
        elif (number, kind) == (3, _BYTES):
            key, content = _key_value(value)
            attributes[key] = content
    return Event(name, time, attributes)


def _link(data: memoryview) -> Link:
    trace_id = span_id = b""
    attributes = {}
    for number, kind, value in _fields(data):
        if kind != _BYTES:
            continue
        if number == 1:
            trace_id = bytes(value)
        elif number == 2:
            span_id = bytes(value)
        elif number == 4:
            key, content = _key_value(value)
            attributes[key] = content
    return Link(trace_id, span_id, attributes)


def _status(data: memoryview) -> tuple[int, str]:
    code, message = 0, ""
    for number, kind, value in _fields(data):
        if (number, kind) == (2, _BYTES):
            message = str(value, "utf-8")
        elif (number, kind) == (3, _VARINT):
            code = value
    return code, message


def _key_value(data: memoryview, depth: int = 0) -> tuple[str, Any]:
    key, content = "", None
    for number, kind, value in _fields(data):
        if (number, kind) == (1, _BYTES):
            key = str(value, "utf-8")
        elif (number, kind) == (2, _BYTES):
            content = _any(value, depth)
    return key, content


def _any(data: memoryview, depth: int) -> Any:
    if depth > DEEPEST:
        raise InvalidExport
    content: Any = None
    for number, kind, value in _fields(data):
        if kind == _BYTES:
            if number == 1:
                content = str(value, "utf-8")
            elif number == 5:
                content = [_any(item, depth + 1) for item in _messages(value, 1)]
            elif number == 6:
                content = dict(_key_value(item, depth + 1) for item in _messages(value, 1))
            elif number == 7:
                content = bytes(value)
        elif kind == _VARINT:
            if number == 2:
                content = bool(value)
            elif number == 3:
                content = value - (1 << 64) if value >> 63 else value
        elif (number, kind) == (4, _FIXED64):
            (content,) = unpack_from("<d", value)
    return content


def _uint64(data: memoryview) -> int:
    return int.from_bytes(data, "little")
