"""Converts stored spans to rows of ``spans``, without reading anything.

The columns are those of OpenTelemetry's spans, as far as MLflow stores them. Times are nanoseconds
since 1970, as there.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from mlcore.spans.stored import INTERNAL, StoredSpan, hexadecimal, text_of
from mlcore.system_tables.rows import storable

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
    status: dict[str, str | None]


def row_of(content: str) -> SpanRow:
    """Returns the row of a span.

    Args:
        content: the span as JSON (``mlcore/spans/stored.py``).
    """
    span: StoredSpan = json.loads(content)
    parent, status = span["parent_span_id"], span["status"]
    return SpanRow(
        span_id=hexadecimal(span["span_id"]),
        parent_span_id=hexadecimal(parent) if parent else None,
        name=storable(span["name"] or ""),
        kind=span.get("kind") or INTERNAL,
        start_time_unix_nano=_nanos(span["start_time_unix_nano"]) or 0,
        end_time_unix_nano=_nanos(span["end_time_unix_nano"]),
        attributes=_texts(
            {key: text_of(value) for key, value in (span["attributes"] or {}).items()}
        ),
        events=[
            {
                "time_unix_nano": _nanos(event.get("time_unix_nano") or event.get("timestamp")),
                "name": storable(event["name"] or ""),
                "attributes": _texts(event.get("attributes")),
            }
            for event in span.get("events") or ()
        ],
        links=[
            {
                "trace_id": link["trace_id"],
                "span_id": link["span_id"],
                "attributes": _texts(link.get("attributes")),
            }
            for link in span.get("links") or ()
        ],
        status={
            "message": storable(status.get("message") or ""),
            "code": status["code"],
        },
    )


def _texts(values: Mapping[str, Any] | None) -> dict[str, str]:
    """Returns texts unchanged, and other values as JSON."""
    return {storable(key): _text(value) for key, value in sorted((values or {}).items())}


def _text(value: Any) -> str:
    return storable(value) if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _nanos(value: Any) -> int | None:
    """Returns a time as the tables can hold it. OpenTelemetry's has no sign and one bit more."""
    return None if value is None else max(0, min(int(value), _MOST_NANOS))
