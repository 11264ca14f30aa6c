"""How much a client says that a trace has; what is here of it may be less."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from mlcore.spans.names import SIZE_STATS

FILE_BYTES: Final = 4_000_000
"""Of a file that clients can send through Lambda in one request."""


def spans_told(metadata: Mapping[str, str]) -> int:
    """0 if nothing is told."""
    return _number(metadata, "num_spans")


def fits_a_file(metadata: Mapping[str, str]) -> bool:
    return _number(metadata, "total_size_bytes") <= FILE_BYTES


def _number(metadata: Mapping[str, str], name: str) -> int:
    try:
        found = json.loads(metadata.get(SIZE_STATS, "{}")).get(name)
    except (AttributeError, ValueError, RecursionError):
        return 0
    return found if isinstance(found, int) else 0
