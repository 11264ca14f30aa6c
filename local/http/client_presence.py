"""Tells whether the client of a connection is still there, without reading from it."""

from __future__ import annotations

import socket
from typing import Final

_DONT_WAIT: Final = getattr(socket, "MSG_DONTWAIT", None)
"""None on Windows, where nobody is noticed."""


def has_left(client_socket: socket.socket) -> bool:
    """Returns whether a client has closed its connection. A client that only ends its own sending
    counts as one that has left, as with MLflow's server. A request that has arrived and waits says
    that the client has not left. Callable while another thread sends."""
    if _DONT_WAIT is None:
        return False
    try:
        return not client_socket.recv(1, socket.MSG_PEEK | _DONT_WAIT)
    except BlockingIOError:
        return False
    except OSError:
        return True
