"""HTTP over a socket in the file system: how an engine of this machine is reached that only its
owner may call."""

from __future__ import annotations

import http.client
import socket
from typing import Final
from urllib.parse import quote, unquote

_SCHEME: Final = "http+unix://"


def endpoint(path: str) -> str:
    """The URL of a socket: ``http+unix://``, then the path with its slashes encoded."""
    return _SCHEME + quote(path, safe="")


def socket_path(endpoint: str) -> str | None:
    """The path that :func:`endpoint` was made of; None for any other URL."""
    if not endpoint.startswith(_SCHEME):
        return None
    return unquote(endpoint.removeprefix(_SCHEME).rstrip("/"))


class SocketConnection(http.client.HTTPConnection):
    """A connection to the socket at a path; ``timeout`` in seconds."""

    def __init__(self, path: str, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        """
        Raises:
            OSError: nobody listens there, or the caller may not open it.
        """
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self.sock.settimeout(self.timeout)
            self.sock.connect(self._path)
        except BaseException:
            self.close()
            raise
