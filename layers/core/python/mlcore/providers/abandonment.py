"""Ends the provider's work for a caller that has left, while this thread waits for the provider.

The server of a laptop watches its clients in another thread. Lambda has no such thread: there a
function learns of a disconnection when it sends.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from typing import Any, Final, Protocol

from mlcore.errors import CallerLeft

_lock: Final = threading.Lock()
_thread: Final = threading.local()


class ProviderConnection(Protocol):
    """A connection to a provider, which calls use one after the other."""

    channel: Any
    """Its socket, even while only an answer holds it; None before it is connected."""
    call: AbandonableCall | None
    """The call that used it last."""


class AbandonableCall:
    """A call for which a caller waits. :meth:`abandon` may be called by any thread."""

    def __init__(self) -> None:
        self.is_abandoned = False
        self._connections: list[ProviderConnection] = []

    def use(self, connection: ProviderConnection) -> None:
        """Notes that the call sends a request on a connection.

        Raises:
            CallerLeft: the caller has left; nothing must be sent.
        """
        with _lock:
            if self.is_abandoned:
                raise CallerLeft
            connection.call = self
            self._connections.append(connection)

    def abandon(self) -> None:
        """Shuts the connections down on which the call waits, so that the thread which waits gets
        an error. Further requests of the call are not sent. Idempotent."""
        with _lock:
            self.is_abandoned = True
            for connection in self._connections:
                # Another call may use the connection by now.
                if connection.call is self and connection.channel is not None:
                    with contextlib.suppress(OSError):
                        # The method of a TLS socket would change its state under the other thread.
                        socket.socket.shutdown(connection.channel, socket.SHUT_RDWR)


def begin() -> AbandonableCall:
    """Begins a call of this thread that may be abandoned, until :func:`end`."""
    call = AbandonableCall()
    _thread.call = call
    return call


def end() -> None:
    """Ends the call of this thread."""
    _thread.call = None


def use(connection: ProviderConnection) -> None:
    """Notes that this thread's call, if it has one, sends a request on a connection. Raises
    CallerLeft as :meth:`AbandonableCall.use` does."""
    call: AbandonableCall | None = getattr(_thread, "call", None)
    if call is not None:
        call.use(connection)
    else:
        connection.call = None


def check() -> None:
    """Raises CallerLeft if the caller of this thread's call has left."""
    call: AbandonableCall | None = getattr(_thread, "call", None)
    if call is not None and call.is_abandoned:
        raise CallerLeft
