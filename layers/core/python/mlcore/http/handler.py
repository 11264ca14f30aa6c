"""The Lambda handler of a function: finds the route of an event, calls the route's function,
returns the response, and writes one log line.
"""

from __future__ import annotations

import base64
import contextlib
import os
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple

from mlcore import errors, gc_threshold
from mlcore.db import capacity, deadline
from mlcore.http import audit
from mlcore.http.audit import AUDIT_READS, REFUSALS, Trail
from mlcore.http.cloudfront_bypass import REFUSAL, bypasses_cloudfront
from mlcore.http.compression import fit
from mlcore.http.gate import Gate, RequestRefused
from mlcore.http.message_parsing import decode_request
from mlcore.http.raw_request import Event, Sent
from mlcore.http.request import (
    Request,
    base_path,
    check_workspace,
    headers_of,
    path_of,
    request_of,
    split_workspace,
    workspace_of,
)
from mlcore.http.response import Response
from mlcore.http.response import failure as failure_response
from mlcore.http.routes import PlainRoute, Route, Routes, Rpc, allowed_methods
from mlcore.http.security import Security
from mlcore.observability import costs_of, log_request, logger
from mlcore.wire import encode

Handler = Callable[[Event, Any], dict[str, Any]]


_WITHOUT_LENGTH: Final = frozenset((204, 304))
"""Statuses whose answers must not give the length of their empty body (RFC 9110, section 8.6)."""


class ErrorFormat(NamedTuple):
    """How an API formats its error responses."""

    failure: Callable[[errors.MlflowError, str], Response]
    """Takes error and path; returns the response."""
    no_route: Callable[[Request, Mapping[str, Route]], Response]
    """The response for a known path with a wrong method, or OPTIONS."""
    refusal: Callable[[Response, str], Response]
    """Converts the response to a caller who was refused; takes response and path."""


_UNAVAILABLE: Final = (errors.TemporarilyUnavailable, errors.RequestLimitExceeded)
"""Errors that an outage of the table or of another service ends in. Limits and budgets of the AI
gateway, and what providers answer, are :class:`mlcore.errors.GatewayCallFailed`; limits of callers
are :class:`mlcore.errors.CallerLimitReached`."""


def lambda_handler(
    rpcs: Iterable[Rpc],
    plain_routes: Iterable[PlainRoute] = (),
    error_format: ErrorFormat | None = None,
    *,
    in_workspaces: str = "",
) -> Handler:
    """Returns the Lambda handler of a function with these routes. The handler takes an event of an
    API Gateway HTTP API (v2) and returns its response.

    Args:
        error_format: how errors are formatted; None for MLflow's way.
        in_workspaces: prefix of those paths that may follow ``/workspaces/<name>``
            (:func:`mlcore.http.request.split_workspace`); "" if none may.
    """
    gc_threshold.raise_gc_threshold()
    failure, no_route, refused = error_format or MLFLOW_FORMAT
    declared: list[Route] = [*rpcs, *plain_routes]
    routes = Routes(declared)
    security = Security(os.environ)
    gate = Gate(os.environ, declared)
    audits_reads = os.environ.get(AUDIT_READS) == "true"
    base = base_path(os.environ)

    def handler(event: Event, context: Any) -> dict[str, Any]:
        started = time.perf_counter()
        request_context = event["requestContext"]
        method: str = request_context["http"]["method"]
        path, named = split_workspace(path_of(event, base), in_workspaces)
        request_id: str = request_context.get("requestId", "")
        headers = headers_of(event)
        trail = Trail()
        is_unavailable = False
        with deadline.within(context), capacity.measure() as measurement:
            try:
                if bypasses_cloudfront(os.environ, headers):
                    raise RequestRefused(REFUSAL)
                response = security.answer(method, path, headers)
                if response is None:
                    sent = Sent(method, path, headers, event)
                    workspace = workspace_of(headers, path, named)
                    request = request_of(sent, workspace, request_id)
                    trail.request = request
                    request = gate.identify(request, request_context.get("authorizer") or {})
                    trail.request = request
                    _admit(request, trail, routes, gate)
                    check_workspace(request.workspace)
                    methods = trail.find(routes, method, path)
                    response = (
                        no_route(request, methods)
                        if trail.route is None
                        else _call_where_runs_are(
                            sent._replace(parameters=trail.parameters), trail, gate
                        )
                    )
            except RequestRefused as refusal:
                response = refused(refusal.response, path)
            except errors.MlflowError as error:
                is_unavailable = isinstance(error, _UNAVAILABLE)
                response = failure(_repeatable(error, method, measurement), path)
            except Exception:
                logger.exception(
                    "unexpected error", extra={"rpc": trail.name(), "request_id": request_id}
                )
                response = failure(
                    errors.InternalError(
                        f"The request failed unexpectedly (request id {request_id})."
                    ),
                    path,
                )
            if not getattr(context, "streams", False):
                response = _joined(response)
        _name_refused(trail, response, routes, method, path)
        entry = trail.entry(request_context, response, reads=audits_reads)
        response = _kept(entry, started, measurement, trail, method, request_id, response, failure)
        log_request(
            rpc=trail.name(),
            method=method,
            status=response.status,
            request_id=request_id,
            seconds=time.perf_counter() - started,
            measurement=measurement,
            is_unavailable=is_unavailable,
            audit=entry,
        )
        body = "" if method == "HEAD" else response.body
        return {
            "statusCode": response.status,
            "headers": {
                "content-type": response.content_type,
                **(_length(response) if method == "HEAD" else {}),
                **security.headers(headers),
                **response.headers,
            },
            "body": base64.b64encode(body).decode() if isinstance(body, bytes) else body,
            "isBase64Encoded": isinstance(body, bytes),
            **({"cookies": list(response.cookies)} if response.cookies else {}),
        }

    return handler


def _kept(
    entry: Mapping[str, object] | None,
    started: float,
    measurement: capacity.Measurement,
    trail: Trail,
    method: str,
    request_id: str,
    response: Response,
    failure: Callable[[errors.MlflowError, str], Response],
) -> Response:
    """Passes the audit entry of a request and its costs to the registered store. Returns the
    response; an error response if the entry cannot be stored. Without an entry, returns the
    response unchanged.

    Args:
        started: when the request began, on the clock of :func:`time.perf_counter`.
    """
    if entry is None:
        return response
    try:
        audit.keep(
            {
                "rpc": trail.name(),
                "method": method,
                "status": response.status,
                "request_id": request_id,
                "audit": entry,
                **costs_of(time.perf_counter() - started, measurement),
            }
        )
    except (errors.TemporarilyUnavailable, errors.InsufficientStorage) as error:
        return failure(error, trail.name())
    return response


def _length(response: Response) -> dict[str, str]:
    """Returns the Content-Length header of a response, whose body HEAD leaves out."""
    body = response.body
    if response.status in _WITHOUT_LENGTH or not isinstance(body, str | bytes):
        return {}
    return {"content-length": str(len(body.encode() if isinstance(body, str) else body))}


def _joined(response: Response) -> Response:
    """Returns a streamed response as a whole one."""
    if isinstance(response.body, str | bytes):
        return response
    content = b"".join(response.body)
    is_text = response.content_type.startswith(("text/", "application/json"))
    return response._replace(body=content.decode() if is_text else content)


def _admit(request: Request, trail: Trail, routes: Routes, gate: Gate) -> None:
    """Counts a request to its caller, before anything is read. Pages and unknown paths do not
    count. Raises CallerLimitReached."""
    if not gate.limits_callers():
        return
    with contextlib.suppress(errors.EndpointNotFound):
        trail.find(routes, request.method, request.path)
    if trail.route is not None:
        gate.admit(request)


def _name_refused(trail: Trail, response: Response, routes: Routes, method: str, path: str) -> None:
    """Finds the route of a request that was refused before its route was known, so that the log
    line names it."""
    if trail.route is None and response.status in REFUSALS:
        with contextlib.suppress(errors.MlflowError):
            trail.find(routes, method, path)


def _repeatable(
    error: errors.MlflowError, method: str, measurement: capacity.Measurement
) -> errors.MlflowError:
    """Returns the error to answer with: 429 instead of 503 for a POST that has written nothing, so
    that clients repeat it.

    MLflow's client since 3.18 repeats a POST that creates after 429, but not after 503, because
    something may have been created. The other methods are repeated after both.
    """
    is_passing = isinstance(error, errors.TemporarilyUnavailable)
    if method == "POST" and is_passing and not measurement.may_have_written:
        return errors.RequestLimitExceeded(error.message)
    return error


def _call_where_runs_are(sent: Sent, trail: Trail, gate: Gate) -> Response:
    """Calls the route's function. If a run turns out to be in another experiment than this process
    had cached, checks the rights and calls the function once more. The second call completes the
    writes of the first one, as if the client had repeated the request."""
    try:
        return _call(sent, trail, gate)
    except errors.RunMoved:
        return _call(sent, trail, gate)


def _call(sent: Sent, trail: Trail, gate: Gate) -> Response:
    """Calls the route's function and returns its response. The request is parsed once; the policy
    is checked with the same message.

    Args:
        trail: has request and route; gets message and answer.
    """
    route, request = trail.route, trail.request
    if route is None or request is None:
        raise AssertionError("a request without a route is not called")
    trail.check_audit()
    if isinstance(route, PlainRoute):
        message = trail.message = route.parse(sent)
        gate.check(route, request, message)
        return route.function(message, request)
    try:
        message = trail.message = decode_request(route.message, sent)
    except errors.InvalidParameterValue:
        gate.check_readable(route, request, sent)
        raise
    gate.check(route, request, message)
    answer = route.function(message, request)
    if isinstance(answer, Response):  # not JSON; changes no grants
        return fit(answer, request.headers)
    trail.answer = answer
    gate.follow(route, request, message, answer)
    if route.status == 204:
        return Response(204, "", "text/html; charset=utf-8")
    return fit(Response(route.status, encode(answer)), request.headers)


def _no_route(request: Request, methods: Mapping[str, Route]) -> Response:
    """Returns the response for a known path whose method is OPTIONS or has no route."""
    allow = {"allow": allowed_methods(methods)}
    if request.method == "OPTIONS":
        status = 204 if request.path.startswith(("/api/", "/ajax-api/")) else 200
        return Response(status, "", "text/html; charset=utf-8", allow)
    error = errors.MethodNotAllowed(f"{request.path} does not answer {request.method}.")
    return _failure(error, request.path)._replace(headers=allow)


def _failure(error: errors.MlflowError, _path: str) -> Response:
    return failure_response(error)


MLFLOW_FORMAT: Final = ErrorFormat(_failure, _no_route, lambda response, _path: response)
"""MLflow's form of errors."""
