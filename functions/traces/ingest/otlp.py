"""The spans of OpenTelemetry's protocol, independent of their encoding."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

DEEPEST: Final = 100
"""The deepest nesting of a value; protobuf's own limit. A deeper one could be stored, but not be
returned: the functions that convert values are recursive."""


class Event(NamedTuple):
    name: str
    time: int
    attributes: dict[str, Any]


class Link(NamedTuple):
    trace_id: bytes
    span_id: bytes
    attributes: dict[str, Any]


class Span(NamedTuple):
    """A span of an OTLP request. Times are in nanoseconds since the epoch, 0 for none. Attribute
    values are JSON values or bytes."""

    trace_id: bytes
    span_id: bytes
    parent_span_id: bytes
    name: str
    start: int
    end: int
    attributes: dict[str, Any]
    events: list[Event]
    links: list[Link]
    status: int
    """The code of the span's status: 0 unset, 1 OK, 2 error."""
    message: str
    kind: int
    """The kind of the span: 1 internal, 2 server, 3 client, 4 producer, 5 consumer; any other means
    internal."""


class ResourceSpans(NamedTuple):
    """The spans that one resource, such as a service, made."""

    resource: dict[str, Any]
    spans: list[Span]


class InvalidExport(ValueError):
    """Raised if the data is not an OTLP export request."""
