"""AWS's binary form of a stream of events, in which Amazon Bedrock streams."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from botocore.eventstream import EventStreamBuffer, ParserError

from mlcore.errors import GatewayCallFailed

Json = dict[str, Any]

_STATUSES: Final = {
    "modelTimeoutException": 408,
    "serviceUnavailableException": 503,
    "throttlingException": 429,
    "validationException": 400,
}
"""Of exceptions that come once a stream has begun; all others are 502."""


def events(parts: Iterator[bytes]) -> Iterator[tuple[str, Json]]:
    """The events of a stream, each with its type.

    Raises:
        GatewayCallFailed: it holds an exception, or is no such stream.
    """
    buffer = EventStreamBuffer()
    for part in parts:
        buffer.add_data(part)
        yield from _whole_ones(buffer)


def _whole_ones(buffer: EventStreamBuffer) -> Iterator[tuple[str, Json]]:
    try:
        for message in buffer:
            headers: Any = message.headers
            if headers.get(":message-type") != "event":
                raise _failure(headers, message.payload)
            content = json.loads(message.payload)
            if isinstance(content, dict):
                yield str(headers.get(":event-type")), content
    except (ParserError, ValueError) as error:
        raise GatewayCallFailed(
            502, f"The provider's stream is not understood ({type(error).__name__})."
        ) from None


def _failure(headers: dict[str, Any], payload: bytes) -> GatewayCallFailed:
    kind = str(headers.get(":exception-type") or headers.get(":error-code"))
    try:
        told = json.loads(payload)
    except ValueError:
        told = None
    said = told.get("message") if isinstance(told, dict) else headers.get(":error-message")
    return GatewayCallFailed(_STATUSES.get(kind, 502), f"{kind}: {said}" if said else kind)
