"""A translator of addresses that forgets connections, as gateways do with those that are idle."""

from __future__ import annotations

import contextlib
import socket
import threading


class Nat:
    """Forwards connections to an engine; from a moment on the open ones swallow what they are sent,
    as those that a NAT has forgotten: no answer, no end. New ones go through."""

    def __init__(self, engine: int, *, refuses: bool = False) -> None:
        """``refuses`` connections until it is opened; nobody else gets its port meanwhile."""
        self._engine = engine
        self._socket = socket.socket()
        self._socket.bind(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        self._open: list[socket.socket] = []
        self._swallowing: set[socket.socket] = set()
        self.swallowed = 0
        if not refuses:
            self.open()

    def open(self) -> None:
        self._socket.listen(128)
        threading.Thread(target=self._serve, daemon=True).start()

    def forget_connections(self) -> None:
        self._swallowing.update(self._open)

    def close(self) -> None:
        for connection in (self._socket, *self._open):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                caller, _ = self._socket.accept()
                self._open.append(caller)
                engine = socket.create_connection(("127.0.0.1", self._engine))
                for source, target in ((caller, engine), (engine, caller)):
                    arguments = (source, target, caller)
                    threading.Thread(target=self._pass, args=arguments, daemon=True).start()

    def _pass(self, source: socket.socket, target: socket.socket, caller: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                if caller not in self._swallowing:
                    target.sendall(data)
                elif source is caller:
                    self.swallowed += data.startswith((b"POST ", b"DELETE "))
            target.close()
