"""Ends a model provider's work on a gateway call whose caller has left, or because the server
stops, while the call's thread waits for the provider.

The server of a laptop watches its clients in another thread. Lambda has no such thread: there a
function learns of a disconnection when it sends.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any, Final, Protocol

from mlcore.errors import CallerLeft, ServerStops

_lock: Final = threading.Lock()
_thread: Final = threading.local()


class ProviderConnection(Protocol):
    """A connection to a model provider, which calls use one after the other."""

    channel: Any
    """Its socket, even while only an answer holds it; None before it is connected."""
    call: AbandonableCall | None
    """The call that used it last."""


class AbandonableCall:
    """A call of an AI model whose caller may disconnect before the answer is complete. Any thread
    may call :meth:`abandon`, which ends the call."""

    def __init__(self) -> None:
        self._is_abandoned = threading.Event()
        self._failure: type[CallerLeft] = CallerLeft
        self._connections: list[ProviderConnection] = []
        self.is_waiting = False
        """Whether the call's thread waits for a provider, or passes on a stream that has not ended.
        A thread that has the whole answer writes its trace and sends it, which is not cut off."""

    def use(self, connection: ProviderConnection) -> None:
        """Records that the call of a model provider sends a request on a connection, which
        :meth:`abandon` then shuts down.

        Raises:
            CallerLeft: the call was abandoned; nothing must be sent.
        """
        with _lock:
            self.check()
            connection.call = self
            self._connections.append(connection)

    def abandon(self) -> None:
        """Shuts down the connections that the call uses, so that the thread that waits for an
        answer gets an error. Further requests of the call are not sent. Idempotent."""
        with _lock:
            self._is_abandoned.set()
            for connection in self._connections:
                # Another call may use the connection by now.
                if connection.call is self and connection.channel is not None:
                    with contextlib.suppress(OSError):
                        # The method of a TLS socket would change its state under the other thread.
                        socket.socket.shutdown(connection.channel, socket.SHUT_RDWR)

    def stop(self) -> None:
        """Abandons this call of a model because the server stops. In the thread of the call
        ServerStops is then raised, an error that the caller, who is still connected, receives."""
        if not self._is_abandoned.is_set():
            self._failure = ServerStops
        self.abandon()

    def check(self) -> None:
        """Raises CallerLeft, or its subclass ServerStops, if this call of a model was abandoned."""
        if self._is_abandoned.is_set():
            raise self._failure

    def pause(self, seconds: float) -> None:
        """Waits for ``seconds``. Raises CallerLeft, or its subclass ServerStops, as soon as the
        call of a model is abandoned."""
        self._is_abandoned.wait(seconds)
        self.check()


def begin() -> AbandonableCall:
    """Notes that this thread begins a call of a model, and returns an object by which other threads
    may abandon the call until :func:`end`."""
    call = AbandonableCall()
    _thread.call = call
    return call


def end() -> None:
    """Ends the call to a model provider that :func:`begin` began in this thread, so that it can no
    longer be abandoned."""
    _thread.call = None


def use(connection: ProviderConnection) -> None:
    """Records that this thread's call of a model, if it makes one, sends a request on a connection
    to the provider. If the call is abandoned later, the connection is shut down. Raises CallerLeft
    if the call was abandoned before."""
    call = _current()
    if call is not None:
        call.use(connection)
    else:
        connection.call = None


def _current() -> AbandonableCall | None:
    """Returns the call of a model that this thread makes; None if nobody can abandon it."""
    call: AbandonableCall | None = getattr(_thread, "call", None)
    return call


@contextlib.contextmanager
def waiting() -> Iterator[None]:
    """Marks this thread's call of a model, if it has one, as waiting for the model provider during
    the ``with`` block, or until :func:`end_waiting`. Raises CallerLeft if the call was abandoned.
    """
    call = _current()
    if call is not None:
        call.check()
        call.is_waiting = True
    try:
        yield
    finally:
        if call is not None:
            call.is_waiting = False


def end_waiting() -> None:
    """Marks this thread's model call, if it has one, as no longer waiting, because the provider's
    answer is complete."""
    call = _current()
    if call is not None:
        call.is_waiting = False


def check() -> None:
    """Raises CallerLeft if this thread's call to a model provider was abandoned."""
    call = _current()
    if call is not None:
        call.check()


def pause(seconds: float) -> None:
    """Waits before this thread repeats its request to a model provider. Raises CallerLeft as soon
    as the call is abandoned: its caller has left, or the server stops."""
    call = _current()
    if call is None:
        time.sleep(seconds)
    else:
        call.pause(seconds)
