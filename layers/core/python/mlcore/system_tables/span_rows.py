"""Converts stored spans to rows of the SQL table ``spans``, without reading anything.

The columns are those of OpenTelemetry's spans, as far as MLflow stores them. Times are nanoseconds
since 1970, as there.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from mlcore.spans.stored_span import INTERNAL, StoredSpan, hexadecimal, text_of
from mlcore.wire.json_text import storable

_MOST_NANOS: Final = 2**63 - 1


class SpanRow(NamedTuple):
    """A row of ``spans``, without the columns that it shares with the row of its trace.

    Maps are sorted by key, so that equal maps compare equal.
    """

    span_id: str
    parent_span_id: str | None
    name: str
    kind: str
    start_time_unix_nano: int
    end_time_unix_nano: int | None
    attributes: dict[str, str]
    events: list[dict[str, Any]]
    links: list[dict[str, Any]]
    status: dict[str, str]


def row_of(content: str) -> SpanRow:
    """Converts a span to its row of the system table ``spans``.

    Args:
        content: the span as JSON (``mlcore/spans/stored_span.py``).
    """
    span: StoredSpan = json.loads(content)
    parent, status = span["parent_span_id"], span["status"]
    return SpanRow(
        span_id=hexadecimal(span["span_id"]),
        parent_span_id=hexadecimal(parent) if parent else None,
        name=_text(span["name"] or ""),
        kind=_text(span.get("kind") or INTERNAL),
        start_time_unix_nano=_nanos(span["start_time_unix_nano"]) or 0,
        end_time_unix_nano=_nanos(span["end_time_unix_nano"]),
        attributes={
            storable(key): _text(text_of(value))
            for key, value in sorted((span["attributes"] or {}).items())
        },
        events=[
            {
                "time_unix_nano": _nanos(event.get("time_unix_nano") or event.get("timestamp")),
                "name": _text(event["name"] or ""),
                "attributes": _texts(event.get("attributes")),
            }
            for event in span.get("events") or ()
        ],
        links=[
            {
                "trace_id": _text(link["trace_id"]),
                "span_id": _text(link["span_id"]),
                "attributes": _texts(link.get("attributes")),
            }
            for link in span.get("links") or ()
        ],
        status={
            "message": _text(status.get("message") or ""),
            "code": _text(status["code"]),
        },
    )


def _texts(values: Mapping[str, Any] | None) -> dict[str, str]:
    return {storable(key): _text(value) for key, value in sorted((values or {}).items())}


def _text(value: Any) -> str:
    """Returns a string unchanged and any other value as JSON, since imported spans may have values
    of any type."""
    return storable(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


def _nanos(value: Any) -> int | None:
    """Returns a time in the range of the tables' 64-bit integers; OpenTelemetry's times are
    unsigned and have one bit more."""
    return None if value is None else max(0, min(int(value), _MOST_NANOS))
