"""Responses to calls through the gateway: JSON, event streams, files, and errors. Errors of calls
have the form of MLflow's gateway, which differs from that of MLflow's API, and the fields that SDKs
read."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

from gateway_calls.error_forms import anthropic_fields, aws_name, google_fields, sdk_fields
from mlcore import errors
from mlcore.http import Request
from mlcore.http.handler import ErrorFormat
from mlcore.http.response import Response, retry_headers
from mlcore.http.routes import Route, allowed_methods
from mlcore.observability import logger
from mlcore.providers import aws_event_stream as binary
from mlcore.providers.proxied import BinaryEvent, RawAnswer

Json = dict[str, Any]

EVENTS: Final = "text/event-stream; charset=utf-8"


_NO_HEADERS: Final[Mapping[str, str]] = MappingProxyType({})


def json_response(body: Json, headers: Mapping[str, str] = _NO_HEADERS) -> Response:
    return Response(200, _to_json(body), headers=headers)


_NO_PAGE: Final[Mapping[str, str]] = {
    "content-disposition": "attachment",
    "content-security-policy": "default-src 'none'; sandbox",
}
"""A provider's file may be a page, which must not run as one of this server's."""
_MAX_WHOLE_BYTES: Final = 4 * 1024 * 1024
"""Larger answers are sent in parts: Lambda returns 6 MB of Base64 at most."""


def raw_response(answer: RawAnswer, headers: Mapping[str, str] = _NO_HEADERS) -> Response:
    """Returns a model provider's answer that is neither JSON nor a stream, as an attachment: a
    browser saves it and does not show it."""
    body: bytes | Iterator[bytes] = answer.content
    if len(answer.content) > _MAX_WHOLE_BYTES:
        body = iter((answer.content,))
    return Response(answer.status, body, answer.content_type, {**headers, **_NO_PAGE})


_END_OF_CHAT: Final = b"data: [DONE]\n\n"
"""The last event of a whole answer in OpenAI's form."""

ErrorEvent = Callable[[errors.MlflowError], bytes]
"""Encodes an error as the last event of a stream."""


def event_stream(chunks: Iterator[Json], headers: Mapping[str, str] = _NO_HEADERS) -> Response:
    """Returns a response that sends each chunk of a chat as a server-sent event, and ``[DONE]``
    after the last one. If the stream ends before the model has finished, it has no ``[DONE]``.
    Errors are handled as in :func:`raw_event_stream`."""
    return raw_event_stream(_chat_events(chunks), headers=headers)


def _chat_events(chunks: Iterator[Json]) -> Iterator[bytes]:
    is_finished = False
    for chunk in chunks:
        yield f"data: {_to_json(chunk)}\n\n".encode()
        choices = chunk.get("choices") or ()
        is_finished = is_finished or any(choice.get("finish_reason") for choice in choices)
    if is_finished:
        yield _END_OF_CHAT


def openai_error_event(error: errors.MlflowError) -> bytes:
    """Returns an error as a server-sent event, in the form that clients of OpenAI's API read."""
    kind, message = "MlflowException", error.message
    if isinstance(error, errors.AllModelsFailed):
        kind = "AIGatewayException"
    elif isinstance(error, errors.GatewayCallFailed):
        kind, message = "HTTPException", f"{error.status}: {error.message}"
    return f"data: {json.dumps({'error': {'message': message, 'type': kind}})}\n\n".encode()


def anthropic_error_event(error: errors.MlflowError) -> bytes:
    """Returns an error as an event in the form that clients of Anthropic's API read. The event has
    a name, because these clients skip events without one."""
    status = error.status if isinstance(error, errors.GatewayCallFailed) else 500
    data = anthropic_fields(status, error.message)
    return f"event: error\ndata: {json.dumps(data)}\n\n".encode()


def google_error_event(error: errors.MlflowError) -> bytes:
    """Returns an error as an event in the form that clients of Gemini's API read. They
    choose the exception by the error's ``code``, which must be a number."""
    data = google_fields(error.status, error.message)
    return f"data: {json.dumps(data)}\n\n".encode()


def aws_error_event(error: errors.MlflowError) -> bytes:
    """Returns an error as an exception event in the binary format of Bedrock's streams: AWS's SDKs
    raise it."""
    known = error
    if not isinstance(known, errors.GatewayCallFailed):
        known = errors.GatewayCallFailed(error.status, error.message)
    return binary.exception(known, aws_name(known.status))


_CONTENT_OF_CHUNKS: Final = {"x-amzn-bedrock-content-type": "application/json"}
"""The header by which AWS's SDKs know the type of the chunks of InvokeModelWithResponseStream."""


def binary_event_stream(
    events: Iterator[BinaryEvent], headers: Mapping[str, str] = _NO_HEADERS
) -> Response:
    """Returns a response with the events of a stream in Amazon's binary format, as Bedrock sends
    it. An error before the first event is raised; a later error becomes the last event."""
    first = next(events)
    more = _CONTENT_OF_CHUNKS if first.kind == binary.CHUNK else {}
    contents = (event.content for event in events)
    parts = _with_error_event(first.content, contents, aws_error_event)
    return Response(200, parts, binary.CONTENT_TYPE, {**headers, **more})


def raw_event_stream(
    parts: Iterator[bytes],
    error_event: ErrorEvent = openai_error_event,
    headers: Mapping[str, str] = _NO_HEADERS,
) -> Response:
    """Returns a response that sends server-sent events which are already encoded. An error before
    the first event is raised, so that the response has its status and clients can decide whether to
    retry. A later error becomes the last event.

    Raises:
        MlflowError: the stream failed before its first event.
    """
    first = next(parts, b"")
    return Response(200, _with_error_event(first, parts, error_event), EVENTS, headers)


def _with_error_event(
    first: bytes, parts: Iterator[bytes], error_event: ErrorEvent
) -> Iterator[bytes]:
    try:
        yield first
        yield from parts
    except errors.MlflowError as error:
        yield error_event(error)
    except Exception:
        logger.exception("unexpected error in a stream")
        yield error_event(errors.InternalError("The request failed unexpectedly."))


def _error_response(error: errors.MlflowError, path: str) -> Response:
    headers = retry_headers(error)
    if isinstance(error, errors.GatewayCallFailed):
        detail: Any = error.detail
        if error.retry_after is not None:
            headers["retry-after"] = error.retry_after
        headers |= error.headers
    elif isinstance(error, errors.EndpointNotFound):
        return Response(error.status, _to_json(error.body()))
    else:
        detail = {"error_code": error.error_code, "message": error.message}
    body = {"detail": detail, **sdk_fields(error, path)}
    return Response(error.status, _to_json(body), headers=headers)


def _method_not_allowed(request: Request, methods: Mapping[str, Route]) -> Response:
    allow = {"allow": allowed_methods(methods)}
    if request.method == "OPTIONS":
        return Response(200, "", "text/html; charset=utf-8", allow)
    return Response(405, _to_json({"detail": "Method Not Allowed"}), headers=allow)


def _to_json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


RESPONSE_STYLE: Final = ErrorFormat(
    _error_response, _method_not_allowed, lambda response, _path: response
)
