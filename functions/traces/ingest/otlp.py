"""Spans as OpenTelemetry's protocol has them, whichever encoding they came in."""

from __future__ import annotations

from typing import Any, NamedTuple


class Event(NamedTuple):
    name: str
    time: int
    attributes: dict[str, Any]


class Link(NamedTuple):
    trace_id: bytes
    span_id: bytes
    attributes: dict[str, Any]


class Span(NamedTuple):
    """Times are nanoseconds since the epoch, 0 for none; attribute values are what JSON has, and
    bytes."""

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
    """0 unset, 1 OK, 2 error."""
    message: str


class ResourceSpans(NamedTuple):
    """Spans that one resource, such as a service, has made."""

    resource: dict[str, Any]
    spans: list[Span]


class Malformed(ValueError):
    """What came is no export request."""
