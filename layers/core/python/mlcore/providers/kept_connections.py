"""Keeps connections to providers open between calls: a new one costs several round trips, because
of TLS.

A connection belongs to a checked address and a name of its certificate. Each call checks the name's
addresses (:mod:`mlcore.providers.checked_addresses`), and takes a kept connection only to the
checked one.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterable
from typing import Final, NamedTuple

from urllib3 import HTTPConnectionPool

IDLE_SECONDS: Final = 4.0
"""A connection that was idle for longer is closed. Servers close idle connections too, the earliest
after 5 s; while a Lambda function is frozen, the other end may go away unnoticed."""

MAX_KEPT: Final = 64
"""Maximum number of unused connections; beyond it the oldest are closed."""


class Destination(NamedTuple):
    """Where a connection to a model provider leads: scheme, IP address, port and host name."""

    scheme: str
    address: str
    """The checked address."""
    port: int
    host: str
    """The name that the certificate must have."""


class _Kept(NamedTuple):
    destination: Destination
    pool: HTTPConnectionPool
    wall: float
    monotonic: float

    def is_fresh(self) -> bool:
        # Both clocks are needed: the monotonic one may stop while the function is frozen, the wall
        # clock may be set.
        idle = time.time() - self.wall, time.monotonic() - self.monotonic
        return 0 <= idle[0] <= IDLE_SECONDS and idle[1] <= IDLE_SECONDS


class KeptConnections:
    """The unused open connections of this process to model providers; at most :data:`MAX_KEPT`.
    Threads may use it concurrently."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._unused: deque[_Kept] = deque()
        """The one used last is at the end."""

    def __len__(self) -> int:
        return len(self._unused)

    def take(self, destination: Destination) -> HTTPConnectionPool | None:
        """Returns a pool with one open connection to a model provider, which nobody else gets until
        the caller passes the pool to :meth:`keep`. None if no unused connection to the destination
        is open."""
        with self._lock:
            stale = [kept for kept in self._unused if not kept.is_fresh()]
            for kept in stale:
                self._unused.remove(kept)
            unused = reversed(self._unused)
            connection = next((kept for kept in unused if kept.destination == destination), None)
            if connection is not None:
                self._unused.remove(connection)
        _close(stale)
        return None if connection is None else connection.pool

    def keep(self, destination: Destination, pool: HTTPConnectionPool) -> None:
        """Keeps a pool of one connection to a model provider for a later call. The last answer on
        the connection must have been read to the end."""
        with self._lock:
            self._unused.append(_Kept(destination, pool, time.time(), time.monotonic()))
            excess = [self._unused.popleft() for _ in range(len(self._unused) - MAX_KEPT)]
        _close(excess)

    def close(self) -> None:
        """Closes all kept connections to model providers that no request uses."""
        with self._lock:
            unused = list(self._unused)
            self._unused.clear()
        _close(unused)


def _close(connections: Iterable[_Kept]) -> None:
    for kept in connections:
        kept.pool.close()
