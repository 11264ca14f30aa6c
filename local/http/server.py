"""The HTTP server: API Gateway's part between the socket and the functions.

It knows no path of the product.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import signal
import socket
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import uvicorn

from local.aws.storage import Body, Storage
from local.condition import Condition
from local.function import Function, ImportFailed
from local.http import event as payload
from local.http.event import BadAnswer, HttpRequest, HttpResponse, failure
from local.http.routes import Match, Router
from local.http.turns import Turns
from local.http.website import PAGES, Website
from local.log import AccessLog, RequestCounter, report
from local.pulse import Pulse

WORKERS = 16
STOP_SECONDS = 5
INTEGRATION_TIMEOUT_SECONDS = 30.0
"""An HTTP API waits no longer for a function."""

Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]

HEALTH_PATH = "/health"
_SERVER_ERROR = 500

WITHHELD_BYTES = 4 * 1024 * 1024
"""A larger body of a PUT is not put into an event: as Base64 it would exceed what Lambda takes."""


class Application:
    """The ASGI application: one request, one invocation in the pool of workers."""

    def __init__(
        self,
        router: Router,
        functions: dict[str, Function],
        website: Website | None = None,
        storage: Storage | None = None,
        condition: Condition | None = None,
        pulse: Pulse | None = None,
    ) -> None:
        self._condition = condition
        self._pulse = pulse
        self._turns = Turns(pulse.behind) if pulse else Turns()
        self._router = router
        self._website = website
        self._storage = storage
        self._functions = functions
        self._log = AccessLog()
        self._counter = RequestCounter()
        self.pool = ThreadPoolExecutor(WORKERS, thread_name_prefix="request")

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        """Serves one request."""
        if scope["type"] != "http":
            return
        started = time.perf_counter()
        method: str = scope["method"]
        raw_path = scope["raw_path"].decode("latin-1")
        if self._storage and self._storage.owns(raw_path):
            url = f"{raw_path}?{scope['query_string'].decode('latin-1')}"
            status = await self._storage.respond(method, url, scope["headers"], receive, send)
            self._look_into(status)
            self._log.write(method, raw_path, status, time.perf_counter() - started, None)
            return
        withheld = self._storage is not None and method == "PUT" and _length(scope) > WITHHELD_BYTES
        body = b"" if withheld else await _body(receive)
        if (
            self._website
            and self._website.owns(method, raw_path)
            and not await self._is_refused(scope, method, raw_path)
        ):
            status = await self._website.respond(method, raw_path, scope["headers"], send)
            self._log.write(method, raw_path, status, time.perf_counter() - started, None)
            return
        unfit = await self._unfit() if raw_path == HEALTH_PATH else None
        if unfit:
            response, requests = unfit, None
        else:
            response, requests = await self._respond(scope, method, raw_path, body)
        if method == "PUT" and body is not None:
            response = await self._forward(response, Body(receive, None if withheld else body))
        if not unfit:
            self._look_into(response.status)
        headers = response.headers
        if response.parts is None and (response.status not in {204, 304} or response.body):
            headers = [*headers, (b"content-length", b"%d" % len(response.body))]
        await send({"type": "http.response.start", "status": response.status, "headers": headers})
        if response.parts is not None:
            await self._stream(response.parts, send)
        await send({"type": "http.response.body", "body": response.body})
        if self._pulse:
            self._pulse.beat()
        self._log.write(method, raw_path, response.status, time.perf_counter() - started, requests)

    async def _stream(self, parts: Iterator[bytes], send: Send) -> None:
        """Sends the parts of a body as they come; who makes them may wait for somebody else."""
        loop = asyncio.get_running_loop()
        while (part := await loop.run_in_executor(self.pool, next, parts, None)) is not None:
            await send({"type": "http.response.body", "body": part, "more_body": True})

    def _look_into(self, status: int) -> None:
        """A failed request may come from the disk: beside the loop, for disks can be slow."""
        if self._condition and status >= _SERVER_ERROR:
            asyncio.get_running_loop().run_in_executor(None, self._condition.suspect)

    async def _unfit(self) -> HttpResponse | None:
        """What ``GET /health`` answers while the data cannot be written."""
        if not self._condition or not self._condition.suspected:
            return None
        loop = asyncio.get_running_loop()
        cause = await loop.run_in_executor(None, self._condition.cause)
        if cause is None:
            return None
        return HttpResponse(503, [(b"content-type", b"text/plain; charset=utf-8")], cause.encode())

    async def _is_refused(self, scope: dict[str, Any], method: str, raw_path: str) -> bool:
        """Whether a page needs a login that is missing; then the function behind answers, with the
        challenge that makes a browser ask. Scripts and pictures are open, as on MLflow's server."""
        match = self._router.match(method, raw_path)
        if match is None or match.authorizer is None or raw_path not in PAGES:
            return False
        response, _ = await self._respond(scope, method, raw_path, b"")
        return response.status == 401

    async def _forward(self, response: HttpResponse, body: Body) -> HttpResponse:
        """Sends a body that the function has not seen to where the function says, so that files of
        any size pass without being held in memory."""
        if self._storage and response.status == 307:
            location = dict(response.headers).get(b"location", b"").decode("latin-1")
            if self._storage.owns(location):
                response = await self._storage.take(location, body)
        await body.drain()
        return response

    async def _respond(
        self, scope: dict[str, Any], method: str, raw_path: str, body: bytes | None
    ) -> tuple[HttpResponse, int | None]:
        if body is None:
            return failure(413, "Request Entity Too Large"), None
        query = scope["query_string"].decode("latin-1")
        size = len(method) + len(raw_path) + len(query) + 12
        size += sum(len(name) + len(value) + 4 for name, value in scope["headers"])
        if size > payload.MAXIMUM_HEADER_BYTES:
            report(f"{method} {raw_path[:80]}: request line and headers have {size} bytes")
            return failure(431, "Request Header Fields Too Large"), None
        match = self._router.match(method, payload.decoded_path(raw_path))
        if match is None:
            return failure(404, "Not Found"), None
        function = self._functions[match.function]
        request = HttpRequest(
            method,
            raw_path,
            query,
            scope["headers"],
            body,
            f"HTTP/{scope['http_version']}",
            scope["client"][0] if scope.get("client") else "127.0.0.1",
            scope["server"][0] if scope.get("server") else "localhost",
        )
        timeout = min(function.definition.timeout_seconds, INTEGRATION_TIMEOUT_SECONDS)
        async with self._turns.taken():
            call = asyncio.get_running_loop().run_in_executor(
                self.pool, self._invoke, function, request, match
            )
            done, _ = await asyncio.wait((call,), timeout=timeout)
        if not done:
            report(f"{function.definition.name}: timed out after {timeout:g} s")
            if timeout < INTEGRATION_TIMEOUT_SECONDS:
                return failure(500, "Internal Server Error"), None
            return failure(503, "Service Unavailable"), None
        return call.result()

    def _invoke(
        self, function: Function, request: HttpRequest, match: Match
    ) -> tuple[HttpResponse, int | None]:
        """Runs in a worker: the event, the handler, the answer."""
        before = self._counter.before()
        try:
            event = payload.from_http(request, match)
            if payload.is_too_large(event):
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

    def _authorize(self, name: str, event: dict[str, Any]) -> bool:
        """Asks the authorizer, and leaves what it says of the caller in the event."""
        answer = self._functions[name].invoke(payload.for_authorizer(event))
        event["requestContext"]["authorizer"] = {"lambda": dict(answer.get("context") or {})}
        return answer.get("isAuthorized") is True


def _length(scope: dict[str, Any]) -> int:
    """The length of the body as announced; 0 when it is not."""
    value = dict(scope["headers"]).get(b"content-length", b"0")
    return int(value) if value.isdigit() else 0


async def _body(receive: Receive) -> bytes | None:
    """The request's body; None when it exceeds what Lambda takes.

    It is then read and forgotten, to be answered.
    """
    message = await receive()
    first: bytes = message.get("body", b"")
    if not message.get("more_body"):
        return first if len(first) <= payload.MAXIMUM_PAYLOAD_BYTES else None
    parts, size = [first], len(first)
    while message.get("more_body"):
        message = await receive()
        if message["type"] == "http.disconnect":
            break
        part: bytes = message.get("body", b"")
        size += len(part)
        if size <= payload.MAXIMUM_PAYLOAD_BYTES:
            parts.append(part)
        else:
            parts.clear()
    return b"".join(parts) if size <= payload.MAXIMUM_PAYLOAD_BYTES else None


class _Uvicorn(uvicorn.Server):
    """Leaves signals to :func:`serve`, so that a stopped runner ends with code 0."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Nothing to capture."""
        yield


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches what listens on an address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def listen(host: str, port: int) -> socket.socket:
    """A bound socket. It refuses connections until the server takes it.

    Raises:
        OSError: the address is taken or not ours.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((host, port))
    except OSError:
        bound.close()
        raise
    return bound


class Server:
    """Serves an application on a bound socket until it is told to stop."""

    def __init__(self, application: Application, bound: socket.socket) -> None:
        self._application = application
        self._socket = bound
        self._uvicorn = _Uvicorn(
            uvicorn.Config(
                application,
                http="httptools",
                ws="none",
                lifespan="off",
                interface="asgi3",
                access_log=False,
                log_level="warning",
                server_header=False,
                proxy_headers=False,
                backlog=1024,
                timeout_keep_alive=75,
                timeout_graceful_shutdown=STOP_SECONDS,
            )
        )

    def stop(self) -> None:
        """Stops accepting, lets running requests finish for a few seconds.

        Callable from any thread.
        """
        self._uvicorn.should_exit = True

    def serve(
        self,
        started: Callable[[], Coroutine[Any, Any, None]],
        told_to_stop: Callable[[], bool] = lambda: False,
    ) -> None:
        """Serves until :meth:`stop`, SIGTERM or SIGINT.

        ``started`` runs once connections are accepted; ``told_to_stop`` tells whether a signal came
        before this could take it.
        """
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            runner.run(self._serve(started, told_to_stop))
        # The loop took its handlers with it; a second signal must not interrupt the cleaning up.
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)

    async def _serve(
        self,
        started: Callable[[], Coroutine[Any, Any, None]],
        told_to_stop: Callable[[], bool],
    ) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.stop)
        if told_to_stop():
            self.stop()
        serving = loop.create_task(self._uvicorn.serve(sockets=[self._socket]))
        while not self._uvicorn.started and not serving.done():
            await asyncio.sleep(0.002)
        announcing = loop.create_task(started())
        await serving
        announcing.cancel()
        self._application.pool.shutdown(wait=False, cancel_futures=True)


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop  # noqa: PLC0415 - absent on some systems
    except ImportError:
        return None
    return uvloop.new_event_loop
