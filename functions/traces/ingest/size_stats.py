"""Reads the number of spans and the size that a client reports in a trace's metadata. Fewer spans
may have arrived."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from mlcore.spans.names import SIZE_STATS
from mlcore.wire.json_text import load_json

FILE_BYTES: Final = 4_000_000
"""The largest file that clients can send through Lambda in one request."""


def span_count(metadata: Mapping[str, str]) -> int:
    """Returns the number of spans that a client reports in a trace's metadata; 0 if none is
    reported."""
    return _number(metadata, "num_spans")


def fits_a_file(metadata: Mapping[str, str]) -> bool:
    """Whether the size that a client reports in a trace's metadata is small enough to send all
    spans of the trace as one file."""
    return _number(metadata, "total_size_bytes") <= FILE_BYTES


def _number(metadata: Mapping[str, str], name: str) -> int:
    try:
        number = load_json(metadata.get(SIZE_STATS, "{}")).get(name)
    except (AttributeError, ValueError):
        return 0
    return number if isinstance(number, int) else 0
