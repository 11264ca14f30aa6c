"""Decodes and encodes AWS's binary event streams, which Amazon Bedrock uses."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterator, Mapping
from struct import pack, unpack_from
from typing import Any, Final
from zlib import crc32

from botocore.eventstream import EventStreamBuffer, ParserError

from mlcore.errors import FailureTraits, GatewayCallFailed
from mlcore.providers import transport
from mlcore.providers.credential_redactor import CredentialRedactor
from mlcore.providers.proxied import BinaryEvent

Json = dict[str, Any]

CONTENT_TYPE: Final = "application/vnd.amazon.eventstream"
CHUNK: Final = "chunk"
"""The type of the events of InvokeModelWithResponseStream. Each holds an event of the model's own
stream in Base64."""

_STATUSES: Final = {
    "modelTimeoutException": 408,
    "serviceUnavailableException": 503,
    "throttlingException": 429,
    "validationException": 400,
}
"""HTTP statuses of exceptions inside a stream; all others become 502."""
_NOT_EXECUTED: Final = ("serviceUnavailableException", "throttlingException")
_PRELUDE_BYTES: Final = 12
_OVERHEAD_BYTES: Final = 16
_STRING: Final = 7
"""The type of a header whose value is a text."""


def events(parts: Iterator[bytes], redactor: CredentialRedactor) -> Iterator[tuple[str, Json]]:
    """Decodes a binary event stream of Amazon Bedrock and yields (type, content) of each event.
    Raises the errors of :func:`messages`."""
    return ((event.kind, event.data) for event in messages(parts, redactor))


def messages(parts: Iterator[bytes], redactor: CredentialRedactor) -> Iterator[BinaryEvent]:
    """Yields the messages of a binary event stream of AWS, each with its encoded form. In both,
    ``redactor`` has replaced the endpoint's credentials. Raises GatewayCallFailed if the stream
    holds an exception, or cannot be decoded."""
    rest = bytearray()
    for part in parts:
        rest += part
        while len(rest) >= _PRELUDE_BYTES:
            length = unpack_from("!I", rest)[0]
            if not _OVERHEAD_BYTES <= length <= transport.MAX_ANSWER_BYTES:
                raise _undecodable("length")
            if len(rest) < length:
                break
            yield _event(bytes(rest[:length]), redactor)
            del rest[:length]
    if rest:
        raise _undecodable("end")


def exception(error: GatewayCallFailed, otherwise: str) -> bytes:
    """Encodes an error as the last message of a Bedrock event stream.

    Args:
        otherwise: the exception type to use if the provider has given none.
    """
    kind = str(error.provider_fields.get("__type") or otherwise)
    headers = {
        ":exception-type": kind[:1].lower() + kind[1:],
        ":content-type": "application/json",
        ":message-type": "exception",
    }
    message = error.provider_fields.get("message") or error.message
    return _message(headers, json.dumps({"message": message}).encode())


def _event(content: bytes, redactor: CredentialRedactor) -> BinaryEvent:
    buffer = EventStreamBuffer()
    buffer.add_data(content)
    try:
        message = next(buffer)
    except (ParserError, StopIteration, ValueError) as error:
        raise _undecodable(type(error).__name__) from None
    headers: Any = message.headers
    if headers.get(":message-type") != "event":
        raise _failure(headers, message.payload)
    try:
        data = transport.parse(message.payload) if message.payload else {}
    except ValueError as error:
        raise _undecodable(type(error).__name__) from None
    kind = str(headers.get(":event-type"))
    if not isinstance(data, dict):
        raise _undecodable("event")
    sent = redactor.value(data) if redactor.may_occur_in(message.payload) else data
    shown = sent
    if kind == CHUNK:
        sent, shown = _chunk(sent, redactor)
    names = {name: redactor.text(str(value)) for name, value in headers.items()}
    if sent != data or names != headers:
        content = _message(names, json.dumps(sent).encode())
    return BinaryEvent(content, redactor.text(kind), shown)


def _chunk(data: Json, redactor: CredentialRedactor) -> tuple[Json, Json]:
    """Returns a chunk without credentials, and the event in it; an empty one if it is no JSON
    object."""
    try:
        inner = base64.b64decode(data.get("bytes", ""), validate=True)
    except (TypeError, ValueError, binascii.Error) as error:
        raise _undecodable(type(error).__name__) from None
    try:
        event = transport.parse(inner)
    except ValueError:
        event = None
    redacted = event
    if redactor.may_occur_in(inner):
        redacted = redactor.value(event)
        plain = redactor.content(inner) if event is None else json.dumps(redacted).encode()
        if redacted != event or event is None:
            data = {**data, "bytes": base64.b64encode(plain).decode()}
    return data, redacted if isinstance(redacted, dict) else {}


def _message(headers: Mapping[str, str], payload: bytes) -> bytes:
    encoded = b""
    for name, value in headers.items():
        text = value.encode()
        encoded += pack("!B", len(name)) + name.encode() + pack("!BH", _STRING, len(text)) + text
    prelude = pack("!II", _OVERHEAD_BYTES + len(encoded) + len(payload), len(encoded))
    head = prelude + pack("!I", crc32(prelude)) + encoded + payload
    return head + pack("!I", crc32(head))


def _undecodable(what: str) -> GatewayCallFailed:
    return GatewayCallFailed(502, f"The provider's stream cannot be decoded ({what}).")


def _failure(headers: dict[str, Any], payload: bytes) -> GatewayCallFailed:
    """Returns the error for an exception message in a stream. Throttling is marked as repeatable:
    if it is the first message, the model has not worked on the request."""
    kind = str(headers.get(":exception-type") or headers.get(":error-code"))
    try:
        content = transport.parse(payload)
    except ValueError:
        content = None
    message = content.get("message") if isinstance(content, dict) else headers.get(":error-message")
    is_refusal = kind in _NOT_EXECUTED
    return GatewayCallFailed(
        _STATUSES.get(kind, 502),
        f"{kind}: {message}" if message else kind,
        traits=FailureTraits(is_answer=True, is_repeatable=is_refusal, is_unavailable=is_refusal),
        provider_fields={"__type": kind[:1].upper() + kind[1:], "message": str(message or kind)},
    )
