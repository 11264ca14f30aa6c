"""Checks whether the client of a connection has closed it, without consuming data from it."""

from __future__ import annotations

import socket
from typing import Final

_DONT_WAIT: Final = getattr(socket, "MSG_DONTWAIT", None)
"""None on Windows, where a closed connection is not noticed."""


def has_left(client_socket: socket.socket) -> bool:
    """Returns whether a client has closed its connection. Closing only its sending side counts,
    too, as with MLflow's server. If unread data has arrived, the result is False. Callable while
    another thread sends."""
    if _DONT_WAIT is None:
        return False
    try:
        return not client_socket.recv(1, socket.MSG_PEEK | _DONT_WAIT)
    except BlockingIOError:
        return False
    except OSError:
        return True
