"""Starts the long-running process that runs SQL queries (``mltables/query_server.py``) and sends it
queries. The process is started before or at the first query, and again if it has ended or does not
answer."""

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

START_SECONDS: Final = 20.0
"""Seconds to wait for a process that can run the query, including the start of the engines."""


class NoAnswer(Exception):
    """Raised if the process that runs SQL queries, and its replacement, do not answer or start."""


class Reply(NamedTuple):
    """The reply of a process that ran one SQL query, and how the process ended."""

    output: bytes
    """The answer as JSON; empty if there is none."""
    statement_started: bool = True
    """Whether the caller's statement was started."""
    signal: int = signal.SIGKILL
    """The signal that ended the query's process; 0 if none did."""
    memory: int = 0
    """The most memory of the query's process, in KiB (on macOS in bytes)."""
    versions: str | None = None
    """The digest of the versions of the tables that the query read; None if its result may not be
    kept."""


class QueryProcess:
    """Starts, uses and ends the one process that runs this server's SQL queries. Threads may use it
    concurrently."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        atexit.register(self.stop)

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    def start(self) -> None:
        """Starts the process that runs SQL queries, unless it runs; does not wait until it has
        loaded the SQL engines. Raises OSError if the operating system cannot start it."""
        self._running_process()

    def ask(self, request: dict[str, Any], seconds: float) -> Reply:
        """Runs an SQL query in the query process and returns the reply.

        Args:
            seconds: how long to wait for the reply; the query's own limits are in ``request``.

        Raises:
            TimeoutError: the reply takes longer. The process is killed, with all its queries.
            NoAnswer: no process answers; the query was not started.
        """
        for _ in range(2):
            try:
                control = self._running_process()
            except OSError as error:
                raise NoAnswer from error
            connection = self._ready_connection(control)
            if connection is not None:
                with connection:
                    try:
                        return _send_query(connection, request, seconds)
                    except TimeoutError:
                        self._end(control)  # otherwise the query would run on
                        raise
            self._end(control)
        raise NoAnswer

    def stop(self) -> None:
        """Kills the process that runs SQL queries, and all queries that it runs."""
        if self._control is not None:
            self._end(self._control)

    def _running_process(self) -> socket.socket:
        """Starts the process unless it runs. Returns the socket on which it accepts queries."""
        with self._lock:
            process, control = self._process, self._control
            if control is not None and process is not None and process.poll() is None:
                return control
            if control is not None:
                control.close()
            self._control, process_end = socket.socketpair()
            self._control.settimeout(START_SECONDS)
            with process_end:
                self._process = _start_process(process_end)
            return self._control

    def _ready_connection(self, control: socket.socket) -> socket.socket | None:
        """Returns a socket on which the process is ready for a query; None if the process does not
        answer within :data:`START_SECONDS`."""
        try:
            connection = self._new_connection(control)
        except OSError:
            return None
        with contextlib.suppress(OSError):
            connection.settimeout(START_SECONDS)
            if connection.recv(1):
                return connection
        connection.close()
        return None

    def _new_connection(self, control: socket.socket) -> socket.socket:
        """Sends the process one end of a new socket for a query, and returns the other."""
        connection, process_end = socket.socketpair()
        with process_end:
            try:
                socket.send_fds(control, [b"?"], [process_end.fileno()])
            except OSError:
                connection.close()
                raise
        return connection

    def _end(self, control: socket.socket) -> None:
        with self._lock:
            if control is not self._control:
                return  # another thread has replaced the process already
            process, self._process, self._control = self._process, None, None
            control.close()
            if process is not None:
                if process.poll() is None:
                    with contextlib.suppress(ProcessLookupError):
                        os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def _start_process(control: socket.socket) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    # For glibc: otherwise each thread may reserve 64 MB of address space, which the limit counts.
    environment["MALLOC_ARENA_MAX"] = "2"
    # For deltalake: a process with threads cannot be forked safely.
    environment["_RJEM_MALLOC_CONF"] = "background_thread:false"
    return subprocess.Popen(
        [sys.executable, "-m", "mltables.query_server"],
        stdin=control.fileno(),
        stdout=subprocess.DEVNULL,
        env=environment,
        start_new_session=True,
    )


def _send_query(connection: socket.socket, request: dict[str, Any], seconds: float) -> Reply:
    connection.settimeout(seconds)
    try:
        connection.sendall(json.dumps(request).encode())
        connection.shutdown(socket.SHUT_WR)
        with connection.makefile("rb") as lines:
            status_line = lines.readline()
            output = lines.read()
    except ConnectionError:
        status_line = b""
    if not status_line:  # the query's supervisor was killed
        return Reply(b"")
    status = json.loads(status_line)
    return Reply(
        output, status["began"], status["signal"], status["memory"], status.get("versions")
    )
