"""Connections of the product to a proxy of the same process, without sockets.

What the product sends is answered in the thread that reads the answer. Two changes of threads and
four system calls for each call would take twice as long as the call itself. All else is the
product's own client: it signs, repeats and keeps connections as it does over a network.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from mlcore.db.transport import Transport

Ask = Callable[[bytes], bytes]
"""Gives the answer to a request, both with their heads; without an answer nothing."""


class _Stream:
    """Stands for the socket: one request is sent as a whole before its answer is read."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._sent = b""
        self._answer = b""

    def settimeout(self, seconds: float) -> None:
        """An answer is there when it is asked for."""

    def sendall(self, data: bytes) -> None:
        self._sent += data

    def recv(self, size: int) -> bytes:
        if self._sent:
            request, self._sent = self._sent, b""
            self._answer += self._ask(request)
        part, self._answer = self._answer[:size], self._answer[size:]
        return part

    def recv_into(self, view: memoryview) -> int:
        part = self.recv(len(view))
        view[: len(part)] = part
        return len(part)


class _Connection:
    def __init__(self, ask: Ask) -> None:
        self.sock = _Stream(ask)

    def close(self) -> None:
        """Nothing is open."""


@contextlib.contextmanager
def to(endpoint: str, ask: Ask) -> Iterator[None]:
    """Until the block ends, connections of this process to the endpoint give what is sent to
    ``ask``."""
    connected = Transport._connected

    def connect(transport: Transport, seconds: float) -> Any:
        if transport.endpoint == endpoint:
            return _Connection(ask)
        return connected(transport, seconds)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Transport, "_connected", connect)
        yield
