"""Converts HTTP requests to events of API Gateway's payload format 2.0, and functions' answers to
HTTP responses."""

from __future__ import annotations

import base64
import itertools
import json
import re
import time
import uuid
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO, NamedTuple
from urllib.parse import parse_qsl, unquote

from local.http.routes import Match

MAXIMUM_PAYLOAD_BYTES = 6 * 1024 * 1024
"""Lambda's limit in bytes for a synchronous request and, separately, for its answer (as JSON)."""

MAXIMUM_SKILL_BYTES = 32 * 1024 * 1024
"""Limit for the upload of a skill. Clients send it in one request, so it is allowed to exceed
Lambda's limit here; in AWS that is impossible. The function has a smaller limit of its own."""

HTTP_API_HEADER_BYTES = 10_240
"""An HTTP API's limit for the request line and the headers together."""

MAXIMUM_HEADER_BYTES = 65_536
"""Limit for the request line and the headers together: the one of MLflow's own server, six times
an HTTP API's. Clients that name hundreds of runs in a query, and browsers with the cookies of other
programs on this machine, exceed the smaller one."""

_TEXT_TYPES = frozenset({"application/json", "application/javascript", "application/xml"})
_TEXT_SUFFIXES = ("+json", "+xml")
_MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
_CONTROLS = bytes(range(32))
_FRAMING = frozenset({"connection", "content-length", "transfer-encoding"})
"""Headers that only the server sets. Those in a function's answer are dropped, except that an
answer to HEAD keeps its Content-Length."""
_JSON = [(b"content-type", b"application/json")]

_request_prefix = uuid.uuid4().hex[:8]
_request_numbers = itertools.count(1)


_SKILL_UPLOAD = re.compile(r"/(ajax-)?api/3\.0/mlflow/skills/(@[^/]+/)?[^@/][^/]*/versions")


class HttpRequest(NamedTuple):
    """One HTTP request as the server received it. Header names are lower-case."""

    method: str
    path: str
    """The path as the client sent it, percent-encoded."""
    query: str
    headers: Iterable[tuple[bytes, bytes]]
    body: bytes
    protocol: str
    client: str
    host: str


class FileContent(NamedTuple):
    """A range of bytes of an open file. The code that sends the bytes closes the file."""

    content: BinaryIO
    first: int
    size: int


class HttpResponse(NamedTuple):
    """One HTTP response. Its body is in memory, a stream of parts, or a range of a file."""

    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes
    parts: Iterator[bytes] | None = None
    """The parts of the body, if it is streamed; ``body`` is empty then."""
    file: FileContent | None = None
    """The range of a file that is sent as the body; the response's headers include
    Content-Length."""
    named_length: int | None = None
    """The Content-Length that a function gave: to HEAD it names the length of the body that GET
    would return."""


class BadAnswer(Exception):
    """Raised if a Lambda function's return value is not a valid HTTP response. API Gateway
    sends 500 then; the message gives the reason.
    """


def failure(status: int, message: str) -> HttpResponse:
    """Returns the JSON response with which API Gateway reports a failure of its own or of a
    function.
    """
    return HttpResponse(status, list(_JSON), _json({"message": message}))


def is_text(headers: dict[str, str]) -> bool:
    """Returns whether API Gateway passes a body with these headers to the function as text;
    otherwise it passes the body as Base64.
    A body with Content-Encoding, a form, and a body without Content-Type are passed as Base64.
    """
    if headers.get("content-encoding", "identity") != "identity":
        return False
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    return kind.startswith("text/") or kind in _TEXT_TYPES or kind.endswith(_TEXT_SUFFIXES)


def decoded_path(path: str) -> str:
    """Returns the percent-decoded form of a URL path, which API Gateway matches with routes and
    passes to functions."""
    return unquote(path) if "%" in path else path


def from_http(request: HttpRequest, match: Match) -> dict[str, Any]:
    """Returns the API Gateway event (payload format 2.0) of an HTTP request, for the route that it
    matched."""
    headers: dict[str, str] = {}
    cookies: list[str] = []
    for raw_name, raw_value in request.headers:
        name, value = raw_name.decode("latin-1"), raw_value.decode("latin-1")
        if name == "cookie":
            cookies += [cookie.strip() for cookie in value.split(";") if cookie.strip()]
        elif name in headers:
            headers[name] += f",{value}"
        else:
            headers[name] = value
    now = time.time()
    path = decoded_path(request.path)
    domain = headers.get("host", request.host).partition(":")[0]
    event: dict[str, Any] = {
        "version": "2.0",
        "routeKey": match.key,
        "rawPath": path,
        "rawQueryString": request.query,
    }
    if cookies:
        event["cookies"] = cookies
    event["headers"] = headers
    if request.query:
        parameters: dict[str, str] = {}
        for name, value in parse_qsl(request.query, keep_blank_values=True):
            parameters[name] = f"{parameters[name]},{value}" if name in parameters else value
        event["queryStringParameters"] = parameters
    event["requestContext"] = {
        "accountId": "000000000000",
        "apiId": "local",
        "domainName": domain,
        "domainPrefix": domain.partition(".")[0],
        "http": {
            "method": request.method,
            "path": path,
            "protocol": request.protocol,
            "sourceIp": request.client,
            "userAgent": headers.get("user-agent", ""),
        },
        "requestId": f"{_request_prefix}-{next(_request_numbers):08x}",
        "routeKey": match.key,
        "stage": "$default",
        "time": _common_log_time(now),
        "timeEpoch": int(now * 1000),
    }
    if match.path_parameters:
        event["pathParameters"] = dict(match.path_parameters)
    text = is_text(headers)
    if request.body:
        event["body"] = (
            request.body.decode("utf-8", "replace")
            if text
            else base64.b64encode(request.body).decode("ascii")
        )
    event["isBase64Encoded"] = bool(request.body) and not text
    return event


def for_authorizer(event: dict[str, Any]) -> dict[str, Any]:
    """Returns the event for the authorizer: the function's event without the request's body."""
    request = {
        name: value for name, value in event.items() if name not in {"body", "isBase64Encoded"}
    }
    method, path = event["requestContext"]["http"]["method"], event["rawPath"]
    arn = f"arn:aws:execute-api:local:000000000000:local/$default/{method}{path}"
    return {**request, "type": "REQUEST", "routeArn": arn, "identitySource": None}


def is_too_large(event: dict[str, Any]) -> bool:
    """Returns whether an event for a Lambda function exceeds the size that Lambda accepts."""
    return _exceeds(event, event.get("body", ""))


def to_http(answer: Any) -> HttpResponse:
    """Returns the HTTP response that API Gateway makes of a Lambda function's return value.

    Raises:
        BadAnswer: API Gateway would answer 500.
    """
    if not isinstance(answer, dict) or "statusCode" not in answer:
        # In format 2.0 any value without a statusCode is the body of a JSON response.
        return HttpResponse(200, list(_JSON), _json(answer))
    body = answer.get("body") or ""
    try:
        status = int(answer["statusCode"])
    except (TypeError, ValueError):
        raise BadAnswer(f"statusCode is {answer['statusCode']!r}") from None
    if not 200 <= status <= 599:
        raise BadAnswer(f"statusCode is {status}")
    parts = body if isinstance(body, Iterator) else None
    if parts is not None:
        body = ""
    if not isinstance(body, str):
        raise BadAnswer(f"body is a {type(body).__name__}, not a text")
    if _exceeds(answer, body):
        raise BadAnswer(f"the answer exceeds Lambda's {MAXIMUM_PAYLOAD_BYTES} bytes")
    if answer.get("isBase64Encoded"):
        try:
            content = base64.b64decode(body, validate=True)
        except ValueError as error:
            raise BadAnswer(f"body is not Base64: {error}") from error
    else:
        content = body.encode()
    given = {name.lower(): value for name, value in (answer.get("headers") or {}).items()}
    headers = [
        (name.encode("latin-1"), _header_value(value).encode("latin-1", "replace"))
        for name, value in given.items()
        if name not in _FRAMING
    ]
    if "content-type" not in given:
        headers.append((b"content-type", b"text/plain;charset=UTF-8"))
    headers += [(b"set-cookie", cookie.encode("latin-1")) for cookie in answer.get("cookies") or ()]
    length = str(given.get("content-length", ""))
    named_length = int(length) if length.isdecimal() else None
    return HttpResponse(status, headers, content, parts, named_length=named_length)


def _header_value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _json(value: Any) -> bytes:
    try:
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()
    except (TypeError, ValueError) as error:
        raise BadAnswer(f"the answer cannot be written as JSON: {error}") from error


def is_skill_upload(method: str, path: str) -> bool:
    """Whether a request with this method and decoded path is to a route that uploads a skill."""
    return method == "POST" and _SKILL_UPLOAD.fullmatch(path) is not None


def _exceeds(payload: dict[str, Any], body: str) -> bool:
    """Returns whether the payload as JSON exceeds Lambda's limit. It is encoded only if estimates
    from the body's length do not decide.
    """
    remaining = MAXIMUM_PAYLOAD_BYTES - MAXIMUM_HEADER_BYTES * 6
    if len(body) * 6 < remaining or _most_bytes(body) < remaining:
        return False
    return len(body) > MAXIMUM_PAYLOAD_BYTES or len(_json(payload)) > MAXIMUM_PAYLOAD_BYTES


def _most_bytes(body: str) -> int:
    """Returns an upper bound of the size in bytes of a text as JSON: quotes and backslashes take
    two bytes, control characters up to six."""
    content = body.encode("utf-8", "surrogatepass")
    controls = len(content) - len(content.translate(None, _CONTROLS))
    # str.count is five times as fast as bytes.count.
    return len(content) + body.count('"') + body.count("\\") + 5 * controls


def _common_log_time(now: float) -> str:
    at = time.gmtime(now)
    return (
        f"{at.tm_mday:02}/{_MONTHS[at.tm_mon - 1]}/{at.tm_year}:"
        f"{at.tm_hour:02}:{at.tm_min:02}:{at.tm_sec:02} +0000"
    )
