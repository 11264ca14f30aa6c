"""An HTTP proxy before a DynamoDB engine; it asks its stages about every call.

Stages of several calls overlap. Calls of the product's own store do not: they are executed one
after the other, those of this process in the thread that made them. With TEST_ENGINE=dynoxide they
overlap in the engine.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, NamedTuple, Protocol
from urllib.parse import urlsplit

from botocore.exceptions import ClientError

from local.store.store import Store, folder_of
from tests.doubles import direct_connection


class Call(NamedTuple):
    """One DynamoDB request. ``operation`` is ``GetItem``, …; ``body`` its decoded JSON."""

    operation: str
    body: dict[str, Any]
    headers: dict[str, str]

    def answer_error(self, code: str, message: str = "", status: int = 400, **extra: Any) -> Answer:
        body = {"__type": f"com.amazonaws.dynamodb.v20120810#{code}", "message": message, **extra}
        return Answer(status, body)


class Answer(NamedTuple):
    """``body`` None: the connection is closed without an answer."""

    status: int
    body: dict[str, Any] | None


Forward = Callable[[Call], Awaitable[Answer]]


class Stage(Protocol):
    """Answers a call itself or through ``forward``: the next stage, and at last the engine."""

    async def __call__(self, call: Call, forward: Forward) -> Answer: ...


NO_ANSWER = Answer(0, None)


class Proxy:
    """Runs in a thread of its own; ``endpoint`` is what AWS_ENDPOINT_URL_DYNAMODB should say."""

    def __init__(self, engine: str, *stages: Stage) -> None:
        self._engine = engine
        self._store = Store(engine) if folder_of(engine) else None
        self._one_call = threading.Lock()
        self._idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []
        self._handlers: set[asyncio.Task[None]] = set()
        self._forward: Forward = self._ask_engine
        for stage in reversed(stages):
            self._forward = _joined(stage, self._forward)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy", daemon=True)
        self._server: asyncio.Server | None = None
        self.endpoint = ""

    def start(self) -> None:
        self._thread.start()
        self._server = asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result(10)
        self.endpoint = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    def stop(self) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    def answered(self, request: bytes) -> bytes:
        """The answer to a whole request, which nothing waits for: the engine is the store, and no
        stage sleeps. Empty if there is none."""
        head, _, body = request.partition(b"\r\n\r\n")
        steps = self._forward(_call(head.decode("latin-1").split("\r\n"), body)).__await__()
        with self._one_call:
            try:
                next(steps)
            except StopIteration as done:
                answer: Answer = done.value
                return b"" if answer.body is None else _response(answer)
        raise RuntimeError("a stage waits for something")

    async def _listen(self) -> asyncio.Server:
        return await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=1 << 25)

    async def _close(self) -> None:
        if self._server is not None:
            self._server.close()
        for task in self._handlers:
            task.cancel()
        await asyncio.gather(*self._handlers, return_exceptions=True)
        for _, writer in self._idle:
            writer.close()
        if self._store:
            self._store.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._handlers.add(task)
        try:
            while True:
                head, body = await _message(reader)
                call = _call(head, body)
                if self._store:
                    with self._one_call:
                        answer = await self._forward(call)
                else:
                    answer = await self._forward(call)
                if answer.body is None:
                    break
                writer.write(_response(answer))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            self._handlers.discard(task)
            writer.close()

    async def _connection(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        parts = urlsplit(self._engine)
        return await asyncio.open_connection(parts.hostname, parts.port or 80, limit=1 << 25)

    async def _ask_engine(self, call: Call) -> Answer:
        if self._store:
            # Here, for a call takes less time than to give it to another thread.
            return _answer_of_store(self._store, call)
        request = _request(call)
        while True:
            fresh = not self._idle
            connection = await self._connection() if fresh else self._idle.pop()
            reader, writer = connection
            try:
                writer.write(request)
                await writer.drain()
                head, body = await _message(reader)
            except (asyncio.IncompleteReadError, ConnectionError):
                writer.close()
                if fresh:
                    raise
                continue
            self._idle.append(connection)
            return Answer(int(head[0].split()[1]), json.loads(body or b"{}"))


def _answer_of_store(store: Store, call: Call) -> Answer:
    try:
        return Answer(200, store.call(call.operation, call.body))
    except ClientError as error:
        fields: dict[str, Any] = {**error.response}
        code = fields.pop("Error")["Code"]
        status = fields.pop("ResponseMetadata")["HTTPStatusCode"]
        return call.answer_error(code, fields.pop("message"), status, **fields)


def _joined(stage: Stage, forward: Forward) -> Forward:
    return lambda call: stage(call, forward)


async def _message(reader: asyncio.StreamReader) -> tuple[list[str], bytes]:
    """One HTTP/1.1 message: its first line and header lines, and its body."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    length = 0
    for line in head[1:]:
        name, _, value = line.partition(":")
        if name.lower() == "content-length":
            length = int(value)
        elif name.lower() == "transfer-encoding":
            raise ConnectionError("a chunked body: neither botocore nor the engines send one")
    return head, await reader.readexactly(length)


def _call(head: list[str], body: bytes) -> Call:
    headers = {}
    for line in head[1:]:
        name, colon, value = line.partition(":")
        if colon:
            headers[name.lower()] = value.strip()
    target = headers.get("x-amz-target", "")
    return Call(target.partition(".")[2], json.loads(body or b"{}"), headers)


def _request(call: Call) -> bytes:
    body = json.dumps(call.body).encode()
    lines = ["POST / HTTP/1.1"]
    headers = {**call.headers, "content-length": str(len(body)), "connection": "keep-alive"}
    headers.pop("expect", None)
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


def _response(answer: Answer) -> bytes:
    body = json.dumps(answer.body).encode()
    head = (
        f"HTTP/1.1 {answer.status} Double\r\nContent-Type: application/x-amz-json-1.0\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


@contextlib.contextmanager
def running(engine: str, *stages: Stage) -> Iterator[str]:
    """A proxy before ``engine``; the first stage sees a call first. Yields the proxy's endpoint.
    Other processes reach it, too."""
    proxy = Proxy(engine, *stages)
    proxy.start()
    try:
        with contextlib.ExitStack() as stack:
            if folder_of(engine):
                stack.enter_context(direct_connection.to(proxy.endpoint, proxy.answered))
            yield proxy.endpoint
    finally:
        proxy.stop()
