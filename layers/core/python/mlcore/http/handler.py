"""The Lambda handler of a domain: events in, responses out, one log line each; knows no rule of
MLflow's."""

from __future__ import annotations

import base64
import os
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple

from mlcore import errors, garbage
from mlcore.db import capacity, deadline
from mlcore.http.compression import fit
from mlcore.http.gate import Gate, Refused
from mlcore.http.parsing import decode_request
from mlcore.http.request import (
    Request,
    check_workspace,
    headers_of,
    request_of,
    split_workspace,
    workspace_of,
)
from mlcore.http.response import Response
from mlcore.http.routes import PlainRoute, Route, Routes, Rpc, allowed_methods
from mlcore.http.security import Security
from mlcore.http.sent import Event, Sent
from mlcore.observability import log_request, logger
from mlcore.wire import encode

Handler = Callable[[Event, Any], dict[str, Any]]

_BASE_PATH: Final = "API_BASE_PATH"
"""Environment: the part of the path that a domain name of one's own puts before MLflow's, without
slashes."""


class Manner(NamedTuple):
    """How an API answers what it refuses."""

    failure: Callable[[errors.MlflowError, str], Response]
    """By the error and the path."""
    no_route: Callable[[Request, Mapping[str, Route]], Response]
    """A known path with another method."""
    refusal: Callable[[Response], Response]
    """Who may not call gets another form of the answer that says so."""


def lambda_handler(
    rpcs: Iterable[Rpc],
    plain_routes: Iterable[PlainRoute] = (),
    manner: Manner | None = None,
    *,
    in_workspaces: str = "",
) -> Handler:
    """The handler of a domain: takes an API Gateway HTTP API v2 event, answers a v2 response.

    Args:
        in_workspaces: what the paths begin with that a workspace may stand before
            (:func:`mlcore.http.request.split_workspace`).
    """
    garbage.collect_seldom()
    failure, no_route, refused = manner or _MLFLOW
    declared: list[Route] = [*rpcs, *plain_routes]
    routes = Routes(declared)
    security = Security(os.environ)
    gate = Gate(os.environ, declared)
    base = os.environ.get(_BASE_PATH) and f"/{os.environ[_BASE_PATH]}"

    def handler(event: Event, context: Any) -> dict[str, Any]:
        started = time.perf_counter()
        about = event["requestContext"]
        method: str = about["http"]["method"]
        path, named = split_workspace(_path(event, base), in_workspaces)
        request_id: str = about.get("requestId", "")
        headers = headers_of(event)
        name = "unknown"
        with deadline.within(context), capacity.measure() as measurement:
            try:
                response = security.answer(method, path, headers)
                if response is None:
                    sent = Sent(method, path, headers, event)
                    workspace = workspace_of(headers, path, named)
                    request = request_of(sent, workspace, request_id)
                    request = gate.identify(request, about.get("authorizer") or {})
                    check_workspace(request.workspace)
                    verb = "GET" if method == "HEAD" else method
                    methods, parameters = routes.find(path, verb)
                    route = methods.get(verb)
                    if route is None:
                        response = no_route(request, methods)
                    else:
                        name = route.path
                        response = _call(route, sent._replace(parameters=parameters), request, gate)
            except Refused as refusal:
                response = refused(refusal.response)
            except errors.MlflowError as error:
                response = failure(error, path)
            except Exception:
                logger.exception("unexpected error", extra={"rpc": name, "request_id": request_id})
                response = failure(
                    errors.InternalError(
                        f"The request failed unexpectedly (request id {request_id})."
                    ),
                    path,
                )
            if not (isinstance(response.body, str | bytes) or getattr(context, "streams", False)):
                response = response._replace(body=b"".join(response.body).decode())
        log_request(
            rpc=name,
            method=method,
            status=response.status,
            request_id=request_id,
            seconds=time.perf_counter() - started,
            measurement=measurement,
        )
        body = "" if method == "HEAD" else response.body
        return {
            "statusCode": response.status,
            "headers": {
                "content-type": response.content_type,
                **security.headers(headers),
                **response.headers,
            },
            "body": base64.b64encode(body).decode() if isinstance(body, bytes) else body,
            "isBase64Encoded": isinstance(body, bytes),
        }

    return handler


def _path(event: Event, base: str | None) -> str:
    """The path as MLflow knows it. API Gateway's own domain name, by which CloudFront calls, has
    no base path."""
    path: str = event["rawPath"]
    about = event["requestContext"]
    if not base or about.get("domainPrefix") == about.get("apiId"):
        return path
    stripped = path.removeprefix(base)
    return (stripped or "/") if stripped[:1] in ("", "/") else path


def _call(route: Route, sent: Sent, request: Request, gate: Gate) -> Response:
    """Parses a request once: the policy, the function and what the answer hides depend on the same
    message."""
    if isinstance(route, PlainRoute):
        message = route.parse(sent)
        gate.check(route, request, message)
        return route.function(message, request)
    try:
        message = decode_request(route.message, sent)
    except errors.InvalidParameterValue:
        gate.check_readable(route, request, sent)
        raise
    gate.check(route, request, message)
    answer = route.function(message, request)
    if isinstance(answer, Response):  # no JSON; nobody is granted anything by it
        return fit(answer, request.headers)
    gate.follow(route, request, message, answer)
    if route.status == 204:
        return Response(204, "", "text/html; charset=utf-8")
    return fit(Response(route.status, encode(answer)), request.headers)


def _no_route(request: Request, methods: Mapping[str, Route]) -> Response:
    """The answer to a known path with another method, OPTIONS among them."""
    allow = {"allow": allowed_methods(methods)}
    if request.method == "OPTIONS":
        status = 204 if request.path.startswith(("/api/", "/ajax-api/")) else 200
        return Response(status, "", "text/html; charset=utf-8", allow)
    error = errors.MethodNotAllowed(f"{request.path} does not answer {request.method}.")
    return _failure(error, request.path)._replace(headers=allow)


def _failure(error: errors.MlflowError, _path: str) -> Response:
    return Response(error.status, encode(error.body()))


_MLFLOW: Final = Manner(_failure, _no_route, lambda response: response)
