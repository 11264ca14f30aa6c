"""Connections to model providers, each with a reference to the call of a model that uses it."""

from __future__ import annotations

import socket
from typing import Any

from urllib3 import HTTPConnectionPool
from urllib3.connection import HTTPConnection, HTTPSConnection

from mlcore.providers import abandonment
from mlcore.providers.abandonment import AbandonableCall
from mlcore.providers.kept_connections import Destination
from mlcore.webhooks import connections


class _PlainConnection(HTTPConnection):
    call: AbandonableCall | None = None
    channel: socket.socket | None = None

    def connect(self) -> None:
        super().connect()
        self.channel = self.sock

    def request(self, *args: Any, **kwargs: Any) -> None:
        abandonment.use(self)
        super().request(*args, **kwargs)


class _TlsConnection(_PlainConnection, HTTPSConnection):
    """The same over TLS: ``connect`` and ``request`` call those of HTTPSConnection."""


def new_pool(destination: Destination, *, connect: float, read: float) -> HTTPConnectionPool:
    """Returns a connection pool, for one HTTP connection to the checked address of a model
    provider. The caller closes the pool. ``connect`` and ``read`` are timeouts in seconds, as of
    :func:`mlcore.webhooks.connections.pool`."""
    pool = connections.pool(*destination, connect=connect, read=read)
    pool.ConnectionCls = _TlsConnection if destination.scheme == "https" else _PlainConnection
    return pool
