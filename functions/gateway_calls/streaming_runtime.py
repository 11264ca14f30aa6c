"""Runs the function in Lambda in place of the managed runtime for Python, which cannot stream.

Takes invocations from Lambda's runtime API and sends each part of an answer as soon as it exists.

https://docs.aws.amazon.com/lambda/latest/dg/runtimes-custom.html#runtimes-custom-response-streaming
describes the requests. Requests through the HTTP API are answered whole, those through the REST API
as a stream (:mod:`mlcore.http.rest_events`).
"""

from __future__ import annotations

import base64
import importlib
import json
import os
import sys
import time
from collections.abc import Generator, Mapping
from contextlib import closing
from email.message import Message
from http.client import HTTPConnection, HTTPException
from typing import Any, Final

from mlcore.db import deadline
from mlcore.http.handler import Handler
from mlcore.http.rest_events import as_http_event, is_rest_event
from mlcore.observability import logger

Parts = Generator[bytes, None, None]

_RUNTIME: Final = "/2018-06-01/runtime"
_METADATA_TYPE: Final = "application/vnd.awslambda.http-integration-response"
_END_OF_METADATA: Final = bytes(8)
_END: Final = b"0\r\n"
_ERROR_TYPE: Final = "Lambda-Runtime-Function-Error-Type"
_ERROR_BODY: Final = "Lambda-Runtime-Function-Error-Body"
BUFFERED_SECONDS: Final = 29.0
"""The time limit for an answer that is not streamed: API Gateway gives up on it after 30 s."""


class InvocationContext:
    """The ``context`` of a Lambda handler: how much time is left, and whether it may stream."""

    def __init__(self, headers: Message, *, streams: bool) -> None:
        """
        Args:
            headers: the headers with which the runtime API described the invocation.
            streams: whether the answer is sent in parts.
        """
        self.streams = streams
        end = int(headers["Lambda-Runtime-Deadline-Ms"]) / 1000
        self._end = end if streams else min(end, time.time() + BUFFERED_SECONDS)

    def get_remaining_time_in_millis(self) -> int:
        return max(0, int((self._end - time.time()) * 1000))


class RuntimeApi:
    """Lambda's runtime API, which gives invocations to this process and takes its answers."""

    def __init__(self, address: str) -> None:
        """
        Args:
            address: host and port.
        """
        self._address = address
        self._invocations = HTTPConnection(address)

    def next_invocation(self) -> tuple[Message, dict[str, Any]]:
        """Waits for an invocation of this Lambda function; returns the headers that describe it,
        and its event. Raises ConnectionError if Lambda's runtime API answers with an error, and
        OSError if the API is gone."""
        self._invocations.request("GET", f"{_RUNTIME}/invocation/next")
        response = self._invocations.getresponse()
        content = response.read()
        if response.status != 200:
            raise ConnectionError(f"The runtime API answered {response.status}.")
        return response.headers, json.loads(content)

    def send(self, request_id: str, answer: Mapping[str, Any]) -> None:
        """Sends the response to an invocation as a whole, without streaming."""
        self._post(f"/invocation/{request_id}/response", json.dumps(answer).encode())

    def send_error(self, path: str, error: BaseException) -> None:
        """Reports an error to the runtime API, without the error's message, which may contain
        anything.

        Args:
            path: ``/init/error`` or ``/invocation/<request id>/error``.
        """
        kind = type(error).__name__
        self._post(path, _error_body(kind), {_ERROR_TYPE: kind})

    def stream(self, request_id: str, metadata: Mapping[str, Any], parts: Parts) -> None:
        """Sends the response to an invocation in parts, each as soon as it exists. If the
        connection breaks, the iterator of parts is closed, which ends the call of the provider. If
        the iterator raises an error, the response ends with trailers that report it.

        Raises:
            OSError, HTTPException: the runtime API takes no more of the answer.
        """
        with closing(parts), closing(HTTPConnection(self._address)) as connection:
            connection.putrequest("POST", f"{_RUNTIME}/invocation/{request_id}/response")
            connection.putheader("Lambda-Runtime-Function-Response-Mode", "streaming")
            connection.putheader("Transfer-Encoding", "chunked")
            connection.putheader("Content-Type", _METADATA_TYPE)
            connection.putheader("Trailer", f"{_ERROR_TYPE}, {_ERROR_BODY}")
            connection.endheaders()
            connection.send(_chunk(json.dumps(metadata).encode() + _END_OF_METADATA))
            trailers = b""
            while True:
                try:
                    part = next(parts, None)
                except Exception as error:
                    logger.exception("a stream ended with an error")
                    trailers = _trailers(type(error).__name__)
                    break
                if part is None:
                    break
                if part:
                    connection.send(_chunk(part))
            connection.send(_END + trailers + b"\r\n")
            connection.getresponse().read()

    def _post(self, path: str, body: bytes, headers: Mapping[str, str] | None = None) -> None:
        with closing(HTTPConnection(self._address)) as connection:
            connection.request(
                "POST",
                f"{_RUNTIME}{path}",
                body,
                {"Content-Type": "application/json", **(headers or {})},
            )
            connection.getresponse().read()


def serve(api: RuntimeApi, handler: Handler) -> None:
    """Handles Lambda's invocations one after the other. Raises OSError when the runtime API is
    gone."""
    while True:
        headers, event = api.next_invocation()
        os.environ["_X_AMZN_TRACE_ID"] = headers.get("Lambda-Runtime-Trace-Id", "")
        _answer(api, handler, headers, event)


def _answer(api: RuntimeApi, handler: Handler, headers: Message, event: dict[str, Any]) -> None:
    request_id = headers["Lambda-Runtime-Aws-Request-Id"]
    streams = is_rest_event(event)
    context = InvocationContext(headers, streams=streams)
    try:
        answer = handler(as_http_event(event) if streams else event, context)
    except Exception as error:
        logger.exception("an invocation failed")
        api.send_error(f"/invocation/{request_id}/error", error)
        return
    if not streams:
        api.send(request_id, answer)
        return
    metadata: dict[str, Any] = {
        name: answer[name] for name in ("statusCode", "headers", "cookies") if name in answer
    }
    with deadline.within(context):
        try:
            api.stream(request_id, metadata, _parts(answer))
        except (OSError, HTTPException) as error:
            logger.warning("an answer was not taken to its end", extra={"error": str(error)})


def _parts(answer: Mapping[str, Any]) -> Parts:
    """Yields the parts of the body; closing it closes the body."""
    body = answer["body"]
    if isinstance(body, str):
        yield base64.b64decode(body) if answer.get("isBase64Encoded") else body.encode()
    else:
        yield from body


def _chunk(content: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(content), content)


def _trailers(kind: str) -> bytes:
    body = base64.b64encode(_error_body(kind)).decode()
    return f"{_ERROR_TYPE}: {kind}\r\n{_ERROR_BODY}: {body}\r\n".encode()


def _error_body(kind: str) -> bytes:
    message = "The request failed unexpectedly."
    return json.dumps({"errorType": kind, "errorMessage": message}).encode()


def main() -> None:
    """Imports the handler that the Lambda function's configuration names, and calls it for each
    invocation. Reports a failed import to Lambda and exits with status 1."""
    api = RuntimeApi(os.environ["AWS_LAMBDA_RUNTIME_API"])
    module, _, name = os.environ["_HANDLER"].rpartition(".")
    try:
        handler: Handler = getattr(importlib.import_module(module), name)
    except Exception as error:
        logger.exception("the function cannot be imported")
        api.send_error("/init/error", error)
        sys.exit(1)
    serve(api, handler)


if __name__ == "__main__":
    main()
