"""Accepts the local server's HTTP connections, serves each in a thread, and closes them in order
at the end."""

from __future__ import annotations

import contextlib
import ipaddress
import selectors
import signal
import socket
import threading
import time
from collections.abc import Callable
from typing import Any, Final

from local.http.application import Application
from local.http.body_budget import BodyBudget
from local.http.connection import Connection
from local.http.request_threads import RequestThreads
from local.log import report

MAXIMUM_CONNECTIONS: Final = 1000
"""The limit of open connections. For a further client an idle connection is closed; otherwise
the client waits until a connection ends."""
DESCRIPTORS: Final = 4096
"""Open files that the process may have: a connection takes one, and its request a few more."""
STOP_SECONDS: Final = 5
CALL_SECONDS: Final = 0.5
"""How long calls of models may continue after :meth:`Server.stop`."""
LAST_CALL_SECONDS: Final = 1.0
"""A connection whose call of a model still waits for a provider so many seconds after
:meth:`Server.stop` is closed. A call does not end in time if its provider's address does not
answer, for example."""
_BACKLOG: Final = 1024
_TICK_SECONDS: Final = 0.25
"""How often the server checks for connections that are too slow."""


def is_loopback(host: str) -> bool:
    """Returns whether ``host`` is a loopback address, so that only programs of this machine can
    connect to a server that listens on it.
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def listen(host: str, port: int) -> socket.socket:
    """Returns a socket that is bound to the address. Clients cannot connect until the server
    listens on it. Raises OSError if the address is in use or does not belong to this machine.
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
    """Answers HTTP requests on a bound socket with ``application``, until the server is stopped."""

    def __init__(
        self,
        application: Application,
        bound: socket.socket,
        maximum_connections: int = MAXIMUM_CONNECTIONS,
    ) -> None:
        self._application = application
        self._socket = bound
        self._maximum = maximum_connections
        self._connections: set[Connection] = set()
        self._threads = RequestThreads()
        self._budget = BodyBudget()
        self._stopped = False
        self._is_full = False
        """Whether a client is waiting because the limit of connections is reached."""
        self._wake_reader, self._wake_writer = socket.socketpair()
        self._wake_writer.setblocking(False)

    def stop(self) -> None:
        """Stops accepting connections and lets running requests finish for :data:`STOP_SECONDS`,
        calls of models for :data:`CALL_SECONDS`.
        Callable from any thread and from signal handlers."""
        self._stopped = True
        self._wake()

    def _wake(self) -> None:
        with contextlib.suppress(OSError):  # full: it will wake up anyway
            self._wake_writer.send(b"x")

    def serve(
        self, started: Callable[[], None], is_stop_requested: Callable[[], bool] = lambda: False
    ) -> None:
        """Serves until :meth:`stop` is called or SIGTERM or SIGINT arrives. Must be called in the
        main thread.

        Args:
            started: called in a thread of its own once connections are accepted.
            is_stop_requested: returns whether a signal arrived before this server handles signals.
        """
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self.stop())
        if is_stop_requested():
            self.stop()
        try:
            self.accept(started)
        finally:
            # A second signal must not interrupt the cleanup.
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, signal.SIG_IGN)

    def accept(self, started: Callable[[], None] = lambda: None) -> None:
        """Accepts and serves connections until :meth:`stop` is called. ``started`` is called in a
        thread of its own once connections are accepted.
        """
        _allow_descriptors(DESCRIPTORS)
        self._socket.setblocking(False)
        self._socket.listen(_BACKLOG)
        threading.Thread(target=started, name="started", daemon=True).start()
        with selectors.DefaultSelector() as selector:
            selector.register(self._socket, selectors.EVENT_READ)
            selector.register(self._wake_reader, selectors.EVENT_READ)
            watched = 0.0
            while not self._stopped:
                ready = selector.select(_TICK_SECONDS if self._connections else None)
                for key, _ in ready:
                    if key.fileobj is self._wake_reader:
                        self._wake_reader.recv(_BACKLOG)
                    elif len(self._connections) < self._maximum:
                        self._accept_one()
                    else:
                        self._is_full = True
                        selector.unregister(self._socket)
                if time.monotonic() - watched > _TICK_SECONDS:
                    self._watch()
                    watched = time.monotonic()
                if self._is_full:
                    if len(self._connections) < self._maximum:
                        self._is_full = False
                        selector.register(self._socket, selectors.EVENT_READ)
                    else:
                        self._end_an_idle_one()
        self._end()

    def _accept_one(self) -> None:
        try:
            client, address = self._socket.accept()
        except OSError as error:
            if not isinstance(error, BlockingIOError | ConnectionError):
                report(f"cannot accept a connection: {error}")
                time.sleep(_TICK_SECONDS)  # too many open files: it would fail again at once
            return
        client.setblocking(True)
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        host = client.getsockname()[0]
        connection = Connection(client, address[0], host, self._application, self._budget)
        self._connections.add(connection)

        def serve() -> None:
            connection.serve()
            self._connections.discard(connection)
            if self._is_full:
                self._wake()

        try:
            self._threads.run(serve)
        except RuntimeError as error:
            report(f"cannot serve a connection: {error}")
            self._connections.discard(connection)
            client.close()

    def _end_an_idle_one(self) -> None:
        """Closes the connection that has been idle longest, if there is one, to make room for a new
        client.
        """
        now = time.monotonic()
        idle = [connection for connection in tuple(self._connections) if connection.is_idle(now)]
        if idle:
            min(idle, key=Connection.idle_until).end()

    def _watch(self) -> None:
        now = time.monotonic()
        for connection in tuple(self._connections):
            connection.watch(now)

    def _end(self) -> None:
        self._socket.close()
        self._threads.stop()
        for connection in tuple(self._connections):
            connection.end()
        began = time.monotonic()
        while self._connections and (passed := time.monotonic() - began) < STOP_SECONDS:
            time.sleep(0.01)
            self._watch()
            if passed > CALL_SECONDS:
                self._end_calls(is_last=passed > LAST_CALL_SECONDS)
        for connection in tuple(self._connections):
            connection.abort()
        self._wake_reader.close()
        self._wake_writer.close()

    def _end_calls(self, *, is_last: bool) -> None:
        """Stops the running calls of models, so that their requests are answered soon.

        Args:
            is_last: whether to close the connections whose calls still wait for a provider. Others
                write a trace or send an answer, which the client has paid for.
        """
        for connection in tuple(self._connections):
            call = connection.call
            if call is not None:
                call.stop()
                if is_last and call.is_waiting:
                    connection.abort()
                    self._connections.discard(connection)


def _allow_descriptors(number: int) -> None:
    """Raises this process's limit of open files to ``number``, or as far as the system permits."""
    try:
        import resource  # noqa: PLC0415 - absent on Windows
    except ImportError:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted: Any = number if hard == resource.RLIM_INFINITY else min(number, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
