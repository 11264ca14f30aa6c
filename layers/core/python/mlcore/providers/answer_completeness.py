"""Tells whether a model provider's answer has been read to its end."""

from __future__ import annotations

from typing import Final

from urllib3 import BaseHTTPResponse

_HTTP_1_1: Final = 11


def is_complete(response: BaseHTTPResponse) -> bool:
    """Whether an answer whose last read returned nothing is certainly complete: it was as long as
    its header said, or was sent in chunks. (If a chunk is missing, reading raises an error.) False
    for an answer that is shorter, or that has no length and ends when its connection is closed."""
    is_chunked: bool = getattr(response, "chunked", False)
    return is_chunked or getattr(response, "length_remaining", None) == 0


def is_read(response: BaseHTTPResponse) -> bool:
    """Whether a model provider's answer has been read to its end and its connection stays open for
    another request."""
    is_last = response.headers.get("Connection", "").lower() == "close"
    return not is_last and response.version == _HTTP_1_1 and response.connection is None
