"""Does what API Gateway does between an HTTP client and the Lambda functions. Routes come from
template.yaml."""

from __future__ import annotations

import time
from typing import Final

from local.aws.storage import Storage
from local.disk_health import DiskHealth
from local.http import lambda_event as payload
from local.http.body_budget import NoRoom
from local.http.connection import Connection, Disconnected
from local.http.lambda_event import BadAnswer, HttpRequest, HttpResponse, failure
from local.http.request_parser import RequestHead
from local.http.request_throttle import RequestThrottle
from local.http.routes import Match, Router
from local.http.ui_files import PAGES, Website
from local.lambda_function import Function, ImportFailed
from local.log import AccessLog, RequestCounter, report
from local.shared_activity import SharedActivity
from mlcore.providers import abandonment

INTEGRATION_TIMEOUT_SECONDS: Final = 30.0
"""How long API Gateway's HTTP API waits for a function's answer."""
WITHHELD_BYTES: Final = 4 * 1024 * 1024
"""With an artifact folder, the body of a PUT that is larger than this is not put into the event,
because as Base64 it could exceed Lambda's limit."""
HEALTH_PATH: Final = "/health"
_SERVER_ERROR: Final = 500

Answer = tuple[HttpResponse, int | None]
"""A response, and the number of DynamoDB requests that were made for it; None if that is
unknown."""


class Application:
    """The application that the HTTP server runs. It answers each request in the thread of its
    connection, by calling a Lambda function, sending a file of the UI, or serving a signed URL of
    the artifact folder. Callable from many threads.
    """

    def __init__(
        self,
        router: Router,
        functions: dict[str, Function],
        website: Website | None = None,
        storage: Storage | None = None,
        health: DiskHealth | None = None,
        activity: SharedActivity | None = None,
    ) -> None:
        self._health = health
        self._activity = activity
        self._throttle = (
            RequestThrottle(activity.is_index_lagging) if activity else RequestThrottle()
        )
        self._router = router
        self._website = website
        self._storage = storage
        self._functions = functions
        self._log = AccessLog()
        self._counter = RequestCounter()
        self._has_reported_large_head = False

    def __call__(self, connection: Connection) -> None:
        """Answers the request that the connection has received, and logs it."""
        started = time.perf_counter()
        head = connection.head
        if head.path.startswith("//"):
            # Clients send this if the server's address in their settings ends with a slash.
            # MLflow's server drops the slashes, too.
            head = head._replace(path=f"/{head.path.lstrip('/')}")
        try:
            response, requests = self._answer(connection, head)
        except Disconnected:
            return
        except Exception as error:
            report(f"{head.method} {head.path}", error)
            response, requests = failure(500, "Internal Server Error"), None
        try:
            status = connection.send(response)
        finally:
            abandonment.end()
        seconds = time.perf_counter() - started
        self._log.write(head.method, head.path, status, seconds, requests, response.body)
        if status >= _SERVER_ERROR and self._health and head.path != HEALTH_PATH:
            self._health.check_after_failure()

    def _answer(self, connection: Connection, head: RequestHead) -> Answer:
        method, path = head.method, head.path
        storage = self._storage
        if storage and storage.owns(path):
            url = f"{path}?{head.query}"
            return storage.respond(method, url, head.headers, connection.parts()), None
        withheld = storage is not None and method == "PUT" and head.length > WITHHELD_BYTES
        is_skill = payload.is_skill_upload(method, payload.decoded_path(path))
        limit = payload.MAXIMUM_SKILL_BYTES if is_skill else payload.MAXIMUM_PAYLOAD_BYTES
        try:
            body = b"" if withheld else connection.read(limit)
        except NoRoom:
            return _too_many_bodies(), None
        website = self._website
        if (
            website
            and website.owns(method, path)
            and not (path in PAGES and self._is_refused(connection, head))
        ):
            return website.respond(path, head.headers), None
        unhealthy = self._unhealthy_response() if path == HEALTH_PATH else None
        if unhealthy:
            return unhealthy, None
        if body is None:
            return failure(413, "Request Entity Too Large"), None
        response, requests = self._respond(connection, head, body)
        if storage and method == "PUT" and response.status == 307:
            # The body goes straight to the file, so that it may have any size.
            location = dict(response.headers).get(b"location", b"").decode("latin-1")
            if storage.owns(location):
                parts = connection.parts() if withheld else iter((body,))
                response = storage.take(location, parts)
        return response, requests

    def _unhealthy_response(self) -> HttpResponse | None:
        """Returns the answer 503 to ``GET /health`` if the data folder or the table's file cannot
        be written; None if both can.
        """
        fault = self._health.fault() if self._health else None
        if fault is None:
            return None
        return HttpResponse(503, [(b"content-type", b"text/plain; charset=utf-8")], fault.encode())

    def _is_refused(self, connection: Connection, head: RequestHead) -> bool:
        """Returns whether a request for a page of the UI lacks a required login. Such a request
        goes to the function of the page's route, which answers with the challenge that makes a
        browser ask for a password, or with a redirect to the sign-in page. Scripts and pictures
        need no login, as on MLflow's server.
        """
        match = self._router.match(head.method, head.path)
        if match is None or match.authorizer is None:
            return False
        response, _ = self._respond(connection, head, b"")
        return response.status in (302, 401)

    def _respond(self, connection: Connection, head: RequestHead, body: bytes) -> Answer:
        method, path = head.method, head.path
        size = len(method) + len(path) + len(head.query) + 12
        size += sum([len(name) + len(value) + 4 for name, value in head.headers])
        if size > payload.HTTP_API_HEADER_BYTES:
            what = f"{method} {path[:80]}: request line and headers have {size} bytes"
            if size > payload.MAXIMUM_HEADER_BYTES:
                report(what)
                return failure(431, "Request Header Fields Too Large"), None
            if not self._has_reported_large_head:
                self._has_reported_large_head = True
                report(f"{what}; API Gateway refuses more than {payload.HTTP_API_HEADER_BYTES}")
        match = self._router.match(method, payload.decoded_path(path))
        if match is None:
            return failure(404, "Not Found"), None
        function = self._functions[match.function]
        request = HttpRequest(
            method,
            path,
            head.query,
            head.headers,
            body,
            f"HTTP/{head.version}",
            connection.client,
            connection.host,
        )
        timeout, late = function.definition.timeout_seconds, _LATE
        if timeout >= INTEGRATION_TIMEOUT_SECONDS and not function.definition.calls_models:
            timeout, late = INTEGRATION_TIMEOUT_SECONDS, _LATER
        if function.definition.calls_models:
            connection.call = abandonment.begin()
        slot = self._throttle.enter()
        try:
            connection.within(timeout, late, f"{match.function}: timed out after {timeout:g} s")
            return self._invoke(function, request, match)
        finally:
            connection.in_time()
            self._throttle.leave(slot)
            if self._activity:
                self._activity.record_request()

    def _invoke(self, function: Function, request: HttpRequest, match: Match) -> Answer:
        """Converts the request to an event, calls the authorizer and the function's handler, and
        converts the handler's answer. Returns the HTTP response and the number of DynamoDB requests
        that were made, None if that is unknown.
        """
        before = self._counter.before()
        try:
            event = payload.from_http(request, match)
            is_skill = payload.is_skill_upload(request.method, event["rawPath"])
            if not is_skill and payload.is_too_large(event):
                return failure(413, "Request Entity Too Large"), None
            if match.authorizer is not None and not self._authorize(match.authorizer, event):
                return failure(403, "Forbidden"), self._counter.requests_since(before)
            answer = function.invoke(event, event["requestContext"]["requestId"])
            response = payload.to_http(answer)
        except BadAnswer as error:
            report(f"{function.definition.name}: {error}")
            response = failure(500, "Internal Server Error")
        except ImportFailed as error:
            report(str(error))
            response = failure(500, "Internal Server Error")
        except BaseException as error:
            report(f"{function.definition.name}: {request.method} {request.path}", error)
            response = failure(500, "Internal Server Error")
        return response, self._counter.requests_since(before)

    def _authorize(self, name: str, event: dict[str, object]) -> bool:
        """Calls the authorizer's function and puts the context that it returns into the event.
        Returns whether the authorizer admits the caller.
        """
        answer = self._functions[name].invoke(payload.for_authorizer(event))
        event["requestContext"]["authorizer"] = {"lambda": dict(answer.get("context") or {})}  # type: ignore[index]
        return answer.get("isAuthorized") is True


_LATE: Final = failure(500, "Internal Server Error")
"""The response in place of a function that exceeded its own timeout."""
_LATER: Final = failure(503, "Service Unavailable")


def _too_many_bodies() -> HttpResponse:
    """Returns the 429 for a request whose body exceeds the memory limit for bodies. Nothing was
    written, so clients may repeat the request.
    """
    refusal = failure(429, "Too many large requests at the same time. Repeat this one later.")
    return refusal._replace(headers=[*refusal.headers, (b"retry-after", b"1")])
