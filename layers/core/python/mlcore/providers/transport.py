"""Sends one request to a model provider, mostly a POST of JSON, and returns the answer whole or
line by line.

If a gateway secret names the provider's host, every address of the host must be public, and the
connection uses a checked address. Redirects are not followed and proxies are not used.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager
from typing import Any, Final
from urllib.parse import SplitResult, urlsplit

from urllib3 import BaseHTTPResponse, HTTPConnectionPool, Timeout
from urllib3.exceptions import HTTPError, IncompleteRead, ProtocolError

from mlcore.db import deadline
from mlcore.errors import GatewayCallFailed
from mlcore.providers import abandonment, answer_completeness, wait_meter
from mlcore.providers.abandonable_connections import new_pool
from mlcore.providers.checked_addresses import checked_address, forget_addresses
from mlcore.providers.credential_redactor import CredentialRedactor
from mlcore.providers.environment import private_allowed, timeout_seconds
from mlcore.providers.kept_connections import Destination, KeptConnections
from mlcore.providers.provider_failures import alone, detail, reason, refused, unanswered
from mlcore.providers.proxied import ProxiedRequest, RawAnswer
from mlcore.wire.json_text import parse_json_bytes, storable

MAX_ANSWER_BYTES: Final = 16 * 1024 * 1024

CONTENT_TYPE: Final = "application/json"

_CONNECT_SECONDS: Final = 10.0
_NOT_FORWARDED: Final = frozenset(
    (
        "accept-encoding",
        "connection",
        "content-encoding",
        "content-length",
        "content-type",
        "expect",
        "host",
        "if-modified-since",
        "if-none-match",
        "if-range",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "range",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "x-mlflow-authorization",
    )
)
"""Headers of the caller that are not forwarded. They describe the caller's own connection, ask for
a part of an answer (the gateway needs the whole one), or are the login to this server."""

_STREAM_TYPES: Final = ("text/event-stream", "application/x-ndjson")

_CLOSED_SECONDS: Final = 1.0
"""A kept connection fails within this time if the provider closed it while it was unused. If it
fails later, the provider may have worked on the request, so the request is not sent again."""

CONNECTIONS: Final = KeptConnections()
"""The unused connections to providers of this process."""

Json = dict[str, Any]


def ask(
    url: str,
    headers: Mapping[str, str],
    payload: Json,
    *,
    configured: bool,
    redactor: CredentialRedactor,
) -> Json:
    """Posts a payload as JSON to a model provider; returns its JSON answer, or {"message": text}.

    Args:
        configured: the URL comes from a secret, so private IP addresses are refused by default.
        redactor: replaces the credentials that are sent, if the answer repeats them.

    Raises:
        GatewayCallFailed: the provider returned an error, no answer, or one that cannot be used.
    """
    with _post(url, headers, payload, configured=configured) as response:
        return answer_of(response, redactor)


def proxied(
    url: str,
    headers: Mapping[str, str],
    request: ProxiedRequest,
    *,
    configured: bool,
    redactor: CredentialRedactor,
) -> Iterator[Json | bytes | RawAnswer]:
    """Sends a request and yields the provider's answer: the lines of a stream, or an answer of
    another type, such as JSON, whole. Raises GatewayCallFailed: as :func:`lines`."""
    with exchange(url, headers, request, configured=configured) as response:
        content_type = response.headers.get("Content-Type", "")
        media_type = content_type.partition(";")[0].strip().lower()
        if response.status >= 400 or media_type == CONTENT_TYPE:
            yield answer_of(response, redactor)
        elif media_type in _STREAM_TYPES:
            yield from _lines_in(read_chunks(response), redactor)
        else:
            yield raw_answer_of(response, redactor)


def raw_answer_of(response: BaseHTTPResponse, redactor: CredentialRedactor) -> RawAnswer:
    """Reads, redacts and returns a model provider's answer of another type than JSON."""
    content = redactor.content(_read_all(response))
    kind = redactor.text(response.headers.get("Content-Type", "")) or "application/octet-stream"
    return RawAnswer(response.status, content, kind)


def lines(
    url: str,
    headers: Mapping[str, str],
    payload: Json,
    *,
    configured: bool,
    redactor: CredentialRedactor,
) -> Iterator[bytes]:
    """Posts a payload as JSON to a model provider and yields the lines of the answer, with line
    ends, as they arrive. Raises GatewayCallFailed as :func:`ask`, perhaps after some lines."""
    parts = chunks(url, headers, payload, configured=configured)
    return _lines_in(parts, redactor)


def chunks(
    url: str, headers: Mapping[str, str], payload: Json, *, configured: bool
) -> Iterator[bytes]:
    """Posts a payload as JSON and yields the provider's answer in chunks as they arrive.
    Credentials in the answer are not replaced, since a chunk may hold a part of one. Raises
    GatewayCallFailed: as :func:`lines`."""
    with _post(url, headers, payload, configured=configured) as response:
        if response.status >= 400:
            answer, message = _parsed_error(_read_all(response))
            raise refused(response, message or reason(response), answer)
        yield from read_chunks(response)


def encode_body(payload: Json) -> bytes:
    """Returns a payload as the JSON bytes that are sent to the model provider. Signatures of
    requests are computed over the same bytes."""
    return json.dumps(payload).encode()


def parse(data: bytes) -> Any:
    """Returns the value of a model provider's JSON text, with ``?`` for each unpaired surrogate,
    since these cannot be stored or returned. Raises ValueError if the text is no JSON, or nested
    too deeply."""
    try:
        return parse_json_bytes(data)
    except UnicodeEncodeError:
        value = parse_json_bytes(data, lone_surrogates=True)
        return json.loads(storable(json.dumps(value, ensure_ascii=False)))


def events(stream: Iterator[bytes]) -> Iterator[Json]:
    """Yields the JSON objects of server-sent events; other lines are skipped."""
    for line in stream:
        if line.startswith(b"data:"):
            try:
                data = parse(line[5:])
            except ValueError:  # such as [DONE]
                continue
            if isinstance(data, dict):
                yield data


def _lines_in(parts: Iterator[bytes], redactor: CredentialRedactor) -> Iterator[bytes]:
    rest: list[bytes] = []
    size = 0
    for part in parts:
        first, *others = part.split(b"\n")
        rest.append(first)
        size += len(first)
        if others:  # joined only once per line, because a long line may come in thousands of parts
            *complete, last = b"".join(rest), *others
            yield from (redactor.line(line + b"\n") for line in complete)
            rest, size = [last], len(last)
        if size > MAX_ANSWER_BYTES:
            raise GatewayCallFailed(
                502, f"A line of the provider's stream exceeds {MAX_ANSWER_BYTES} bytes."
            )
    if size:
        yield redactor.line(b"".join(rest))


def answer_of(response: BaseHTTPResponse, redactor: CredentialRedactor) -> Json:
    """Reads and returns a model provider's JSON answer (a plain text as ``message``), with the
    call's credentials redacted. Raises GatewayCallFailed for an error status or another answer."""
    content = _read_all(response)
    content_type = response.headers.get("Content-Type")
    is_json = content_type is not None and "application/json" in content_type
    if is_json:
        answer = _parse_answer(content)
        if response.status >= 400:
            answer = alone(answer)
        if redactor.may_occur_in(content):
            answer = redactor.value(answer)
    elif content_type and "text/plain" in content_type:
        answer = {"message": redactor.text(content.decode("utf-8", "replace"))}
    else:
        raise GatewayCallFailed(
            502,
            "The returned data type from the route service is not supported. Received content "
            f"type: {content_type}",
        )
    if response.status >= 400:
        raise refused(response, detail(answer, response), answer if is_json else None)
    if not isinstance(answer, dict):
        raise GatewayCallFailed(502, "The provider's answer is not a JSON object.")
    return answer


def _read_all(response: BaseHTTPResponse) -> bytes:
    parts: list[bytes] = []
    size = 0
    with wait_meter.counted():
        for part in read_chunks(response):
            parts.append(part)
            size += len(part)
            if size > MAX_ANSWER_BYTES:
                raise GatewayCallFailed(
                    502, f"The provider's answer exceeds {MAX_ANSWER_BYTES} bytes."
                )
    return b"".join(parts)


def read_chunks(response: BaseHTTPResponse) -> Iterator[bytes]:
    """Yields chunks of a provider's answer until the request's deadline; then raises
    GatewayCallFailed (504), so that a slow provider cannot block the function. Raises CallerLeft if
    the call is abandoned, IncompleteRead if a successful answer is shorter than announced."""
    while part := response.read1(decode_content=True):
        yield part
        if time.monotonic() > deadline.current():
            raise GatewayCallFailed(504, "The provider's answer did not end in time.")
    if not answer_completeness.is_complete(response):
        abandonment.check()  # the answer also ends if the connection was shut down
        missing = response.length_remaining
        if missing and response.status < 400:  # an error that ends early keeps its status
            raise IncompleteRead(response.tell(), missing)
    abandonment.end_waiting()


def _post(
    url: str, headers: Mapping[str, str], payload: Json, *, configured: bool
) -> AbstractContextManager[BaseHTTPResponse]:
    return exchange(url, headers, ProxiedRequest("", body=payload), configured=configured)


@contextmanager
def exchange(
    url: str, headers: Mapping[str, str], request: ProxiedRequest, *, configured: bool
) -> Iterator[BaseHTTPResponse]:
    """Sends a request to a model provider's URL, in place of the request's own path. Gives the
    response to the ``with`` block. Raises GatewayCallFailed (502, 504) if no answer or a redirect
    arrives, or ``url`` is not a URL."""
    try:
        url_parts = urlsplit(url)
        host = url_parts.hostname or ""
        port = url_parts.port or {"http": 80}.get(url_parts.scheme, 443)
    except ValueError:
        raise GatewayCallFailed(502, "The provider's address is not a URL.") from None
    with abandonment.waiting():
        address = checked_address(host, guarded=configured and not private_allowed())
    seconds = _timeout()
    request_headers = {
        name: value for name, value in headers.items() if name.lower() not in _NOT_FORWARDED
    }
    request_headers |= {
        "Host": url_parts.netloc.rpartition("@")[2],
        "Accept-Encoding": "gzip, deflate, identity",
    }
    if content_type := request.sent_type():
        request_headers["Content-Type"] = content_type
    if not any(name.lower() == "user-agent" for name in request_headers):
        request_headers["User-Agent"] = "mlflow-serverless"
    destination = Destination(url_parts.scheme, address, port, host)
    try:
        with (
            abandonment.waiting(),
            _sent(
                *(destination, request.method, _target(url_parts), request.encoded()),
                request_headers,
                seconds,
            ) as response,
        ):
            if 300 <= response.status < 400:
                raise GatewayCallFailed(
                    502, f"The provider at {host} answered with a redirect, which is not followed."
                )
            yield response
    except (HTTPError, OSError) as error:
        abandonment.check()
        forget_addresses(host)
        raise unanswered(host, error, seconds) from None


@contextmanager
def _sent(
    destination: Destination,
    method: str,
    target: str,
    body: bytes | None,
    headers: Mapping[str, str],
    seconds: float,
) -> Iterator[BaseHTTPResponse]:
    """Sends a request and provides its answer. The connection is kept if the answer has been read
    to its end when the block ends; otherwise it is closed, which ends the provider's work."""
    connect = min(_CONNECT_SECONDS, seconds)

    def opened() -> HTTPConnectionPool:
        return new_pool(destination, connect=connect, read=seconds)

    def send(pool: HTTPConnectionPool) -> BaseHTTPResponse:
        return pool.urlopen(
            method,
            target,
            body=body,
            headers=headers,
            timeout=Timeout(connect=connect, read=seconds),
            retries=False,
            redirect=False,
            assert_same_host=False,
            preload_content=False,
        )

    kept = CONNECTIONS.take(destination)
    pool = kept or opened()
    is_reusable = False
    try:
        with wait_meter.counted():
            began = time.monotonic()
            try:
                response = send(pool)
            except ProtocolError:
                if kept is None or time.monotonic() - began > _CLOSED_SECONDS:
                    raise
                # The provider closed the kept connection just now, and answered nothing.
                pool.close()
                pool = opened()
                response = send(pool)
        with closing(response):  # an answer that is not read to its end would stay open
            yield response
            is_reusable = answer_completeness.is_read(response)
    finally:
        if is_reusable:
            CONNECTIONS.keep(destination, pool)
        else:
            pool.close()


def _timeout() -> float:
    """Returns the timeout in seconds: the configured one, or the function's remaining time if that
    is less."""
    remaining = deadline.current() - time.monotonic()
    if remaining <= 0:
        raise GatewayCallFailed(504, "No time remained to call the provider.")
    return min(timeout_seconds(), remaining)


def _target(parts: SplitResult) -> str:
    return (parts.path or "/") + (f"?{parts.query}" if parts.query else "")


def _parse_answer(content: bytes) -> Any:
    try:
        return parse(content)
    except ValueError:
        raise GatewayCallFailed(502, "The provider's answer is not JSON.") from None


def _parsed_error(content: bytes) -> tuple[Any, str]:
    """Returns the JSON value of a provider's error, None if it is not JSON, and its most specific
    text: its message, or else the whole body."""
    try:
        answer = parse(content)
    except ValueError:
        return None, content.decode("utf-8", "replace")
    answer = alone(answer)
    if isinstance(answer, dict):
        error = answer.get("error")
        if isinstance(error, dict) and isinstance(error.get("message"), str):
            return answer, str(error["message"])
        if isinstance(answer.get("message"), str):
            return answer, str(answer["message"])
    return answer, str(answer) if answer else ""
