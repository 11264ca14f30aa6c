"""The warm process that runs queries (``mltables/server.py``): starts it when there is a query,
again when it is gone or does not answer, and passes queries to it; knows nothing of SQL."""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from typing import Any, Final, NamedTuple

STARTING_SECONDS: Final = 20.0
"""Until a query has a process, that of the engines' start included."""


class Unanswered(Exception):
    """The process does not answer, nor does a new one in its place."""


class Reply(NamedTuple):
    """How a query ended."""

    said: bytes
    """JSON; empty where there is no answer."""
    began: bool = True
    """The caller's statement did."""
    signal: int = signal.SIGKILL
    """By which its process was ended; 0 for none."""
    memory: int = 0
    """KiB that its process had at most (on macOS bytes)."""


class WarmProcess:
    """One for this process; threads may ask at the same time."""

    def __init__(self) -> None:
        self._changing = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        atexit.register(self.stop)

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    def ask(self, request: dict[str, Any], seconds: float) -> Reply:
        """
        Args:
            seconds: that the query has at most; its own limits are in the request.

        Raises:
            TimeoutError: it goes on after that.
            Unanswered: nothing was begun.
        """
        for _ in range(2):
            control = self._started()
            with contextlib.suppress(OSError), self._conversation(control) as ours:
                ours.settimeout(STARTING_SECONDS)
                if ours.recv(1):
                    return _asked(ours, request, seconds)
            self._end(control)
        raise Unanswered

    def stop(self) -> None:
        """Ends the process and all queries."""
        if self._control is not None:
            self._end(self._control)

    def _started(self) -> socket.socket:
        with self._changing:
            process, control = self._process, self._control
            if control is not None and process is not None and process.poll() is None:
                return control
            if control is not None:
                control.close()
            self._control, theirs = socket.socketpair()
            self._control.settimeout(STARTING_SECONDS)
            with theirs:
                self._process = _launched(theirs)
            return self._control

    def _conversation(self, control: socket.socket) -> socket.socket:
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                socket.send_fds(control, [b"?"], [theirs.fileno()])
            except OSError:
                ours.close()
                raise
        return ours

    def _end(self, control: socket.socket) -> None:
        with self._changing:
            if control is not self._control:
                return  # somebody else has noticed, too
            process, self._process, self._control = self._process, None, None
            control.close()
            if process is not None:
                if process.poll() is None:
                    with contextlib.suppress(ProcessLookupError):
                        os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def _launched(control: socket.socket) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    # Of glibc: else each thread may take 64 MB of addresses, which count.
    environment["MALLOC_ARENA_MAX"] = "2"
    # Of deltalake: a process with a thread cannot be forked safely.
    environment["_RJEM_MALLOC_CONF"] = "background_thread:false"
    return subprocess.Popen(
        [sys.executable, "-m", "mltables.server"],
        stdin=control.fileno(),
        stdout=subprocess.DEVNULL,
        env=environment,
        start_new_session=True,
    )


def _asked(ours: socket.socket, request: dict[str, Any], seconds: float) -> Reply:
    ours.settimeout(seconds)
    try:
        ours.sendall(json.dumps(request).encode())
        ours.shutdown(socket.SHUT_WR)
        with ours.makefile("rb") as heard:
            ended = heard.readline()
            said = heard.read()
    except ConnectionError:
        ended = b""
    if not ended:  # the query's supervisor was killed
        return Reply(b"")
    told = json.loads(ended)
    return Reply(said, told["began"], told["signal"], told["memory"])
