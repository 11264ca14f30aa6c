"""``mlflow server`` in one process, and quicker: python tests/stock_server.py ARGUMENTS

The command imports MLflow, makes the database, and starts uvicorn as a child that imports MLflow
again, which takes as long as all the rest of the start. Here it becomes that child instead.

Nine tenths of the time of a request go into what surrounds the Flask application that answers it:
middlewares with tasks and streams of their own, a search through the routes of FastAPI, and a hop
between threads for each part of the answer. What FastAPI does not answer itself takes a straight
way here. Which functions decide about a request, and what they say, stays as it is.
"""

from __future__ import annotations

import gc
import importlib
import os
import runpy
import sys
from collections.abc import Callable, Iterable
from typing import Any

# mlflow.server looks at this once, when it is imported; the command sets it for its child.
os.environ["_MLFLOW_SERVER_SERVE_ARTIFACTS"] = "true"

import anyio.to_thread
import mlflow.server
from fastapi import FastAPI
from mlflow.cli import cli
from starlette.middleware.base import BaseHTTPMiddleware, _CachedRequest
from starlette.middleware.wsgi import build_environ
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

_native: list[str] = []
"""How the paths begin that FastAPI may answer itself."""


def _is_flasks(scope: Scope) -> bool:
    return scope["type"] == "http" and not scope["path"].startswith(tuple(_native))


def _whole(messages: list[Message]) -> Response:
    response = Response(
        b"".join(message.get("body", b"") for message in messages[1:]),
        status_code=messages[0]["status"],
    )
    response.raw_headers = list(messages[0]["headers"])
    return response


_dispatch = BaseHTTPMiddleware.__call__


async def _middleware(self: BaseHTTPMiddleware, scope: Scope, receive: Receive, send: Send) -> None:
    if not _is_flasks(scope):
        await _dispatch(self, scope, receive, send)
        return
    request = _CachedRequest(scope, receive, send)

    async def call_next(_request: Any) -> Response:
        messages: list[Message] = []

        async def keep(message: Message) -> None:
            messages.append(message)

        await self.app(scope, request.wrapped_receive, keep)
        return _whole(messages)

    response = await self.dispatch_func(request, call_next)
    await response(scope, request.wrapped_receive, send)


class _Flask:
    """Flask's application, run in a thread from beginning to end."""

    def __init__(self, app: Callable[..., Iterable[bytes]]) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = b""
        more = True
        while more:
            message = await receive()
            body += message.get("body", b"")
            more = message.get("more_body", False)
        environ = build_environ(scope, body)
        begun: list[tuple[str, list[tuple[str, str]]]] = []

        def start_response(status: str, headers: list[tuple[str, str]], _error: Any = None) -> None:
            begun.append((status, headers))

        def run() -> bytes:
            return b"".join(self._app(environ, start_response))

        content = await anyio.to_thread.run_sync(run)
        status, headers = begun[0]
        encoded = [(name.strip().lower().encode(), text.strip().encode()) for name, text in headers]
        code = int(status.partition(" ")[0])
        await send({"type": "http.response.start", "status": code, "headers": encoded})
        await send({"type": "http.response.body", "body": content})


_mount = FastAPI.mount


def _mounted(self: FastAPI, path: str, app: Any, name: str | None = None) -> None:
    """The last step of making the application: what no route takes goes to Flask."""
    made: Any = importlib.import_module("mlflow.server.fastapi_app")
    _mount(self, path, app, name)
    prefixes = made.get_mcp_server_api_route_prefixes()
    own = (
        *(made.otel_router, made.job_api_router, made.gateway_router, made.assistant_router),
        *(made.artifact_router, made.server_info_router),
    )
    paths = [route.path for router in own for route in router.routes]
    paths += [prefix + one.path for prefix in prefixes for one in made.mcp_server_router.routes]
    _native.extend({one.partition("{")[0] for one in paths})
    assert all(len(one) > 1 for one in _native), _native
    flask, through_routes = _Flask(app.app), self.router.middleware_stack

    async def route(scope: Scope, receive: Receive, send: Send) -> None:
        await (flask if _is_flasks(scope) else through_routes)(scope, receive, send)

    self.router.middleware_stack = route


def _become(command: list[str], extra_env: dict[str, str], **_options: Any) -> None:
    """Runs ``python -m uvicorn ARGUMENTS`` here, until it ends."""
    assert command[1:3] == ["-m", "uvicorn"], command
    os.environ.update(extra_env)
    sys.argv = [*command[2:-1], "--no-access-log", command[-1]]
    runpy.run_module("uvicorn", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    # SQLAlchemy makes much for each request, and what is imported stays for good.
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)
    vars(mlflow.server)["_exec_cmd"] = _become
    setattr(BaseHTTPMiddleware, "__call__", _middleware)  # noqa: B010
    setattr(FastAPI, "mount", _mounted)  # noqa: B010
    cli.main(["server", *sys.argv[1:]])
