"""Keeps connections to providers open between calls: a new one costs several round trips, because
of TLS.

A connection belongs to a checked address and a name of its certificate. A call resolves and checks
the name as before, and takes a kept connection only to that address.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import Final, NamedTuple

from urllib3 import HTTPConnectionPool

from mlcore.webhooks import connections

IDLE_SECONDS: Final = 4.0
"""A connection that was idle for longer is closed. Servers close idle connections too, the earliest
after 5 s; while a Lambda function is frozen, the other end may go away unnoticed."""

MAX_KEPT: Final = 64
"""Unused connections in all; the oldest are closed."""


class Destination(NamedTuple):
    """Where a connection leads."""

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


_kept: Final[deque[_Kept]] = deque()
"""The one used last is at the end."""
_lock: Final = threading.Lock()


def take(destination: Destination) -> HTTPConnectionPool | None:
    """Returns a pool with one open connection, which is the caller's until :func:`keep`; None if
    none is kept."""
    with _lock:
        stale = [kept for kept in _kept if not kept.is_fresh()]
        for kept in stale:
            _kept.remove(kept)
        found = next((kept for kept in reversed(_kept) if kept.destination == destination), None)
        if found is not None:
            _kept.remove(found)
    for kept in stale:
        kept.pool.close()
    return None if found is None else found.pool


def keep(destination: Destination, pool: HTTPConnectionPool) -> None:
    """Keeps a pool whose connection has been read to the end of an answer."""
    with _lock:
        _kept.append(_Kept(destination, pool, time.time(), time.monotonic()))
        dropped = [_kept.popleft() for _ in range(len(_kept) - MAX_KEPT)]
    for kept in dropped:
        kept.pool.close()


def opened(destination: Destination, connect_seconds: float) -> HTTPConnectionPool:
    """Returns a pool for a new connection.

    Args:
        connect_seconds: the timeout of connecting.
    """
    return connections.pool(*destination, connect=connect_seconds, read=connect_seconds)


def close_all() -> None:
    """Closes all unused connections."""
    with _lock:
        dropped = list(_kept)
        _kept.clear()
    for kept in dropped:
        kept.pool.close()
