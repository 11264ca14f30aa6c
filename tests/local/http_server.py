"""The HTTP server in this process, with the functions of the fixtures, and raw requests to it."""

from __future__ import annotations

import contextlib
import importlib
import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from local.http.application import Application
from local.http.body_budget import BodyBudget
from local.http.connection import Connection
from local.http.routes import Router
from local.http.server import Server, listen
from local.lambda_function import Function
from local.template_definitions import FunctionDefinition, RouteDefinition

CODE: Final = Path(__file__).parent / "fixtures/functions"
PATIENT_SECONDS: Final = 60
SMALL_TIMEOUT: Final = 1.0
FUNCTIONS: Final = {
    name: Function(FunctionDefinition(name, "fixture_gate.app.handler", CODE, timeout, 128, {}))
    for name, timeout in (("Gate", 60.0), ("Hasty", SMALL_TIMEOUT))
}
FUNCTIONS["Models"] = Function(
    FunctionDefinition("Models", "fixture_gate.app.handler", CODE, 900.0, 128, {}, True)
)
ROUTES: Final = [
    RouteDefinition("ANY /gate/{action}", "Gate"),
    RouteDefinition("ANY /hasty/{action}", "Hasty"),
    RouteDefinition("ANY /models/{action}", "Models"),
]


def gate() -> Any:
    """The module of the function, in which its requests wait."""
    FUNCTIONS["Gate"].load()
    return importlib.import_module("fixture_gate.app")


def application(**more: Any) -> Application:
    return Application(Router(ROUTES), FUNCTIONS, **more)


class Running:
    """A server that runs, and its port."""

    def __init__(self, **options: Any) -> None:
        bound = listen("127.0.0.1", 0)
        self.port = bound.getsockname()[1]
        self.server = Server(application(), bound, **options)
        self.listening = threading.Event()
        self.thread = threading.Thread(target=self.server.accept, args=(self.listening.set,))

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), PATIENT_SECONDS)

    def ask(self, data: bytes) -> bytes:
        """Everything that the server answers to these bytes, after which the client sends no
        more."""
        with self.connect() as client:
            client.sendall(data)
            client.shutdown(socket.SHUT_WR)
            return received(client)


@contextlib.contextmanager
def running(**options: Any) -> Iterator[Running]:
    server = Running(**options)
    server.thread.start()
    server.listening.wait(PATIENT_SECONDS)
    try:
        yield server
    finally:
        server.server.stop()
        server.thread.join()


def received(client: socket.socket) -> bytes:
    """What comes until the server ends the connection."""
    content = bytearray()
    with contextlib.suppress(ConnectionResetError):
        while part := client.recv(1 << 16):
            content += part
    return bytes(content)


def one_answer(client: socket.socket) -> tuple[int, dict[str, str], bytes]:
    """The next answer, whose length its headers tell."""
    content = bytearray()
    while b"\r\n\r\n" not in content:
        part = client.recv(1)
        assert part, bytes(content)
        content += part
    status, headers = _head(bytes(content))
    size = int(headers.get("content-length", "0"))
    body = b""
    while len(body) < size:
        body += client.recv(size - len(body))
    return status, headers, body


def _head(text: bytes) -> tuple[int, dict[str, str]]:
    first, *lines = text.decode("latin-1").rstrip().split("\r\n")
    named = [line.partition(":") for line in lines]
    return int(first.split()[1]), {name.lower(): value.strip() for name, _, value in named}


def answers(content: bytes, methods: str = "") -> list[tuple[int, dict[str, str], bytes]]:
    """The answers in what a server sent, all of them with a length. ``methods`` names those of the
    requests, if HEAD is among them."""
    results = []
    parts = methods.split()
    while content:
        head, _, content = content.partition(b"\r\n\r\n")
        status, headers = _head(head)
        size = int(headers.get("content-length", "0"))
        if parts and parts.pop(0) == "HEAD":
            size = 0
        results.append((status, headers, content[:size]))
        content = content[size:]
    return results


def request(
    method: str, path: str, *headers: str, body: bytes = b"", version: str = "1.1"
) -> bytes:
    lines = [f"{method} {path} HTTP/{version}", "Host: localhost", *headers]
    if body and not any(line.lower().startswith("content-length") for line in headers):
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


def served(app: Application, data: bytes) -> bytes:
    """What one connection to an application answers to these bytes."""
    ours, theirs = socket.socketpair()
    connection = Connection(theirs, "127.0.0.1", "localhost", app, BodyBudget())
    serving = threading.Thread(target=connection.serve)
    serving.start()
    with ours:
        ours.sendall(data)
        ours.shutdown(socket.SHUT_WR)
        content = received(ours)
    serving.join()
    return content


def echoed(answer: tuple[int, dict[str, str], bytes]) -> Any:
    """What the function says that it was sent."""
    assert answer[0] == 200, answer
    return json.loads(answer[2])
