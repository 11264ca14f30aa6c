"""Decodes AWS's binary event streams, which Amazon Bedrock uses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from botocore.eventstream import EventStreamBuffer, ParserError

from mlcore.errors import GatewayCallFailed
from mlcore.providers import transport
from mlcore.providers.credential_redactor import CredentialRedactor

Json = dict[str, Any]

_STATUSES: Final = {
    "modelTimeoutException": 408,
    "serviceUnavailableException": 503,
    "throttlingException": 429,
    "validationException": 400,
}
"""HTTP statuses of exceptions inside a stream; all others become 502."""


def events(parts: Iterator[bytes], redactor: CredentialRedactor) -> Iterator[tuple[str, Json]]:
    """Decodes a binary event stream and yields (type, content) of each event, without the
    credentials of the redactor. Raises GatewayCallFailed if the stream holds an exception, or
    cannot be decoded."""
    buffer = EventStreamBuffer()
    for part in parts:
        buffer.add_data(part)
        yield from _complete_messages(buffer, redactor)


def _complete_messages(
    buffer: EventStreamBuffer, redactor: CredentialRedactor
) -> Iterator[tuple[str, Json]]:
    try:
        for message in buffer:
            headers: Any = message.headers
            if headers.get(":message-type") != "event":
                raise _failure(headers, message.payload)
            content = transport.parse(message.payload)
            if redactor.may_occur_in(message.payload):
                content = redactor.value(content)
            if isinstance(content, dict):
                yield str(headers.get(":event-type")), content
    except (ParserError, ValueError) as error:
        raise GatewayCallFailed(
            502, f"The provider's stream cannot be decoded ({type(error).__name__})."
        ) from None


def _failure(headers: dict[str, Any], payload: bytes) -> GatewayCallFailed:
    exception_type = str(headers.get(":exception-type") or headers.get(":error-code"))
    try:
        content = transport.parse(payload)
    except ValueError:
        content = None
    message = content.get("message") if isinstance(content, dict) else headers.get(":error-message")
    return GatewayCallFailed(
        _STATUSES.get(exception_type, 502),
        f"{exception_type}: {message}" if message else exception_type,
    )
