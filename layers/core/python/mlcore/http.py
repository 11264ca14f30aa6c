"""From an API Gateway HTTP API v2 event to a service function and back; knows paths, verbs and
headers, no domain.

A domain lists its RPCs; each of them answers under ``/api`` and ``/ajax-api``. The dispatch is a
dict: a resolver with middleware would cost more CPU at a cold start than all of the domain's own
code.
"""

from __future__ import annotations

import base64
import json
import os
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qsl, unquote

from mlcore import errors
from mlcore.db import capacity
from mlcore.observability import log_request, logger
from mlcore.wire import Message, encode

DEFAULT_WORKSPACE: Final = "default"
_WORKSPACE_HEADER: Final = "x-mlflow-workspace"
_PREFIXES: Final = ("/api/", "/ajax-api/")
_HEADERS: Final = {"x-content-type-options": "nosniff", "x-frame-options": "SAMEORIGIN"}

Event = Mapping[str, Any]


class Request(NamedTuple):
    """What a service function may need beyond its message."""

    headers: Mapping[str, str]
    """Names in lower case."""
    workspace: str
    request_id: str
    method: str = "GET"
    path: str = "/"


class Response(NamedTuple):
    """The answer of a plain route."""

    status: int
    body: str
    content_type: str = "application/json"


class Rpc(NamedTuple):
    method: str
    path: str
    """Below ``/api``, with the version; ``{name}`` stands for one segment and sets the field of
    that name."""
    message: type[Message]
    function: Callable[[Any, Request], Mapping[str, Any]]


class PlainRoute(NamedTuple):
    """A route that is no RPC: its exact path, and a function of the request alone."""

    method: str
    path: str
    function: Callable[[Request], Response]


def get(
    path: str,
    message: type[Message],
    function: Callable[..., Mapping[str, Any]],
    version: str = "2.0",
) -> Rpc:
    return Rpc("GET", f"/{version}{path}", message, function)


def post(
    path: str,
    message: type[Message],
    function: Callable[..., Mapping[str, Any]],
    version: str = "2.0",
) -> Rpc:
    return Rpc("POST", f"/{version}{path}", message, function)


def patch(
    path: str,
    message: type[Message],
    function: Callable[..., Mapping[str, Any]],
    version: str = "2.0",
) -> Rpc:
    return Rpc("PATCH", f"/{version}{path}", message, function)


def put(
    path: str,
    message: type[Message],
    function: Callable[..., Mapping[str, Any]],
    version: str = "2.0",
) -> Rpc:
    return Rpc("PUT", f"/{version}{path}", message, function)


def delete(
    path: str,
    message: type[Message],
    function: Callable[..., Mapping[str, Any]],
    version: str = "2.0",
) -> Rpc:
    return Rpc("DELETE", f"/{version}{path}", message, function)


# -- routes ----------------------------------------------------------------------------------------

Route = Rpc | PlainRoute


class _Routes:
    """Finds the route of a path and a verb: exact paths in a dict, templates by their number of
    segments."""

    def __init__(self, rpcs: Iterable[Rpc], plain_routes: Iterable[PlainRoute]) -> None:
        self._exact: dict[str, dict[str, Route]] = {}
        self._templates: dict[int, list[tuple[list[str], dict[str, Route]]]] = {}
        by_template: dict[str, dict[str, Route]] = {}
        for rpc in rpcs:
            if "{" not in rpc.path:
                self._exact.setdefault(rpc.path, {})[rpc.method] = rpc
                continue
            if rpc.path not in by_template:
                by_template[rpc.path] = {}
                segments = rpc.path.split("/")
                self._templates.setdefault(len(segments), []).append(
                    (segments, by_template[rpc.path])
                )
            by_template[rpc.path][rpc.method] = rpc
        self._plain: dict[str, dict[str, Route]] = {}
        for route in plain_routes:
            self._plain.setdefault(route.path, {})[route.method] = route

    def find(self, path: str, method: str) -> tuple[Route, dict[str, str]]:
        """The route and the values of its path parameters.

        Raises:
            EndpointNotFound: nothing has this path.
            MethodNotAllowed: something has, with other verbs.
        """
        parameters: dict[str, str] = {}
        methods = self._plain.get(path)
        for prefix in _PREFIXES:
            if methods is None and path.startswith(prefix):
                below = path[len(prefix) - 1 :]
                methods = self._exact.get(below)
                if methods is None:
                    methods, parameters = self._match(below)
        if methods is None:
            raise errors.EndpointNotFound(f"No endpoint {method} {path}.")
        route = methods.get("GET" if method == "HEAD" else method)
        if route is None:
            raise errors.MethodNotAllowed(f"{path} does not answer {method}.")
        return route, parameters

    def _match(self, path: str) -> tuple[dict[str, Route] | None, dict[str, str]]:
        segments = path.split("/")
        for template, methods in self._templates.get(len(segments), ()):
            parameters: dict[str, str] = {}
            for expected, actual in zip(template, segments, strict=True):
                if expected.startswith("{") and actual:
                    parameters[expected[1:-1]] = unquote(actual)
                elif expected != actual:
                    break
            else:
                return methods, parameters
        return None, {}


# -- requests --------------------------------------------------------------------------------------


def decode_request(
    rpc: Rpc, event: Event, method: str, headers: Mapping[str, str], parameters: dict[str, str]
) -> Message:
    """The message of a request: from the query string of a GET that has one, else from the body."""
    arguments: dict[str, list[str]] = {}
    if method in ("GET", "HEAD"):
        for name, value in parse_qsl(event.get("rawQueryString") or "", keep_blank_values=True):
            arguments.setdefault(name, []).append(value)
        if arguments or not event.get("body"):
            arguments.update({name: [value] for name, value in parameters.items()})
            return rpc.message.from_query(arguments)
    data = _json_body(event, method, headers)
    if parameters and isinstance(data, dict):
        data.update(parameters)
    return rpc.message.decode(data)


def _json_body(event: Event, method: str, headers: Mapping[str, str]) -> Any:
    """The parsed body: {} when it is missing, null or no JSON; JSON inside a JSON string is decoded
    once more."""
    if method in ("POST", "PUT"):
        content_type = headers.get("content-type")
        if content_type is None:
            raise errors.InvalidParameterValue("Bad Request. Content-Type header is missing.")
        if content_type.split(";")[0] != "application/json":
            raise errors.InvalidParameterValue(
                "Bad Request. Content-Type must be one of ['application/json']."
            )
    body: str | bytes = event.get("body") or ""
    if event.get("isBase64Encoded"):
        body = base64.b64decode(body)
    try:
        data = json.loads(body)
    except ValueError:
        return {}
    except RecursionError:
        raise errors.InvalidParameterValue("The request body is nested too deeply.") from None
    if isinstance(data, str):
        try:
            data = json.loads(data)
        except (ValueError, RecursionError):
            raise errors.InvalidParameterValue(
                "The request body is a string that holds no JSON."
            ) from None
    return {} if data is None else data


def _workspace(headers: Mapping[str, str]) -> str:
    """The workspace that a header names.

    Raises:
        FeatureDisabled: a header names one although MLFLOW_ENABLE_WORKSPACES is not on.
    """
    name = headers.get(_WORKSPACE_HEADER, "").strip()
    if not name:
        return DEFAULT_WORKSPACE
    if os.environ.get("MLFLOW_ENABLE_WORKSPACES", "").lower() not in ("1", "true"):
        raise errors.FeatureDisabled(
            "Workspace APIs are not available: workspaces are not enabled on this server"
        )
    return name


# -- handler ---------------------------------------------------------------------------------------


def lambda_handler(
    rpcs: Iterable[Rpc], plain_routes: Iterable[PlainRoute] = ()
) -> Callable[[Event, Any], dict[str, Any]]:
    """The handler of a domain: takes an API Gateway HTTP API v2 event, answers a v2 response."""
    routes = _Routes(rpcs, plain_routes)

    def handler(event: Event, _context: Any) -> dict[str, Any]:
        started = time.perf_counter()
        about = event["requestContext"]
        method: str = about["http"]["method"]
        request_id: str = about.get("requestId", "")
        name = "unknown"
        with capacity.measure() as measurement:
            try:
                headers = {
                    name.lower(): value for name, value in (event.get("headers") or {}).items()
                }
                path = event["rawPath"]
                request = Request(headers, _workspace(headers), request_id, method, path)
                route, parameters = routes.find(path, method)
                name = route.path
                if isinstance(route, PlainRoute):
                    response = route.function(request)
                else:
                    message = decode_request(route, event, method, headers, parameters)
                    response = Response(200, encode(route.function(message, request)))
            except errors.MlflowError as error:
                response = Response(error.status, encode(error.body()))
            except Exception:
                logger.exception("unexpected error", extra={"rpc": name, "request_id": request_id})
                failure = errors.InternalError(
                    f"The request failed unexpectedly (request id {request_id})."
                )
                response = Response(failure.status, encode(failure.body()))
        log_request(
            rpc=name,
            method=method,
            status=response.status,
            request_id=request_id,
            seconds=time.perf_counter() - started,
            measurement=measurement,
        )
        return {
            "statusCode": response.status,
            "headers": {"content-type": response.content_type, **_HEADERS},
            "body": "" if method == "HEAD" else response.body,
            "isBase64Encoded": False,
        }

    return handler
