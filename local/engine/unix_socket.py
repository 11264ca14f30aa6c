"""The socket that the engine is reached by: a file that only its owner may open.

The engine itself knows TCP alone, asks nobody who they are, and lets every web page call it. So it
never gets a TCP port: the kernel asks the runner about each ``bind`` and ``accept4`` of the engine
(seccomp's user notifications, Linux 5.9 and later, no privilege needed), and the runner puts this
socket and its connections in their place. Requests and answers then go straight between client and
engine; nothing stands in between.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import platform
import select
import socket
import struct
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from local.engine.launcher import SYSTEM_CALLS

_RECEIVE, _SEND, _IS_VALID, _ADD = 0xC0502100, 0xC0182101, 0x40082102, 0x40182103
_REPLACE: Final = 1
_NOTIFICATION: Final = struct.Struct("=QIIiIQ6Q")
_ANSWER: Final = struct.Struct("=QqiI")
_DESCRIPTOR: Final = struct.Struct("=QIIII")
_ADDRESS: Final = struct.pack("=HH4s8x", socket.AF_INET, 0, bytes((127, 0, 0, 1)))
"""Whom the engine believes to talk to: it takes no address of another kind."""

_BACKLOG: Final = 1024


def can_serve() -> bool:
    """Whether this is a system whose kernel may do it."""
    return sys.platform == "linux" and platform.machine() in SYSTEM_CALLS


class CannotServe(Exception):
    """The kernel forbids what the engine's calls are to be answered with."""


class _Call(NamedTuple):
    """A system call of the engine that waits for its answer."""

    identity: int
    thread: int
    number: int
    arguments: tuple[int, ...]


class EngineSocket:
    """Listens from now on. Connections wait until an engine takes them, also while it is started
    again."""

    def __init__(self, path: Path) -> None:
        """
        Raises:
            OSError: the path cannot be a socket.
        """
        self.path = path
        path.unlink(missing_ok=True)
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._listener.bind(str(path))
            # Nobody can connect before it listens.
            path.chmod(0o600)
            self._listener.listen(_BACKLOG)
        except OSError:
            self._listener.close()
            raise
        self._listener.setblocking(False)
        self._bound = False

    def serve(self, notifications: int, ended: int, bound: Callable[[], None]) -> None:
        """Answers an engine's calls until the process behind the descriptor ``ended`` is gone.

        Args:
            bound: is called once the engine listens.

        Raises:
            CannotServe: the kernel forbids it; the engine then ends by itself.
        """
        self._bound = False
        waiting = select.poll()
        waiting.register(notifications, select.POLLIN)
        waiting.register(ended, select.POLLIN)
        while True:
            ready = dict(waiting.poll())
            if ready.get(notifications, 0) & select.POLLIN:
                self._answer(notifications, bound)
            elif ended in ready:
                return
            elif notifications in ready:
                waiting.unregister(notifications)

    def close(self) -> None:
        """Nobody gets in any more."""
        self._listener.close()
        self.path.unlink(missing_ok=True)

    def _answer(self, notifications: int, bound: Callable[[], None]) -> None:
        call = _received(notifications)
        if call is None:
            return
        value = failure = 0
        _, _, bind, _ = SYSTEM_CALLS[platform.machine()]
        try:
            if call.number == bind:
                self._take_place(notifications, call)
                self._bound = True
            else:
                value = self._accept(notifications, call)
        except OSError as error:
            failure = error.errno or errno.EIO
        answer = bytearray(_ANSWER.pack(call.identity, value, -failure, 0))
        # The thread that called may be gone.
        with contextlib.suppress(OSError):
            fcntl.ioctl(notifications, _SEND, answer)
        if failure and not self._bound:
            raise CannotServe(os.strerror(failure))
        if call.number == bind:
            bound()

    def _take_place(self, notifications: int, call: _Call) -> None:
        """Puts the listening socket where the engine has the one that it binds."""
        # What an accept will need; better known now.
        with _memory(notifications, call) as memory:
            os.pread(memory, 1, call.arguments[1])
        place = call.arguments[0]
        _add(notifications, call, self._listener.fileno(), _REPLACE, place)

    def _accept(self, notifications: int, call: _Call) -> int:
        """The engine's descriptor of a connection that waits."""
        connection, _ = self._listener.accept()
        with connection:
            connection.setblocking(not call.arguments[3] & socket.SOCK_NONBLOCK)
            if call.arguments[1]:
                with _memory(notifications, call) as memory:
                    os.pwrite(memory, _ADDRESS, call.arguments[1])
                    os.pwrite(memory, struct.pack("=I", len(_ADDRESS)), call.arguments[2])
            return _add(notifications, call, connection.fileno(), 0, 0)


def _received(notifications: int) -> _Call | None:
    content = bytearray(_NOTIFICATION.size)
    try:
        fcntl.ioctl(notifications, _RECEIVE, content)
    except OSError:  # who called is gone
        return None
    identity, thread, _, number, _, _, *arguments = _NOTIFICATION.unpack(content)
    return _Call(identity, thread, number, tuple(arguments))


def _add(notifications: int, call: _Call, descriptor: int, flags: int, place: int) -> int:
    wanted = _DESCRIPTOR.pack(call.identity, flags, descriptor, place, os.O_CLOEXEC)
    return int(fcntl.ioctl(notifications, _ADD, bytearray(wanted)))


@contextlib.contextmanager
def _memory(notifications: int, call: _Call) -> Iterator[int]:
    memory = os.open(f"/proc/{call.thread}/mem", os.O_RDWR | os.O_CLOEXEC)
    try:
        # The number could be another process's by now.
        fcntl.ioctl(notifications, _IS_VALID, struct.pack("=Q", call.identity))
        yield memory
    finally:
        os.close(memory)
