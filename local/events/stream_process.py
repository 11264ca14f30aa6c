"""Starts, restarts and ends the stream process (the child process that runs the indexer), and
receives its messages. That process has an interpreter of its own, so that requests do not wait for
the indexer. It ends with the local server, because their channel then closes.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from functools import partial

from local.events.stream_process_parameters import StreamJob
from local.log import report

STOP_SECONDS = 12.0
FIRST_PAUSE_SECONDS = 0.2
LONGEST_PAUSE_SECONDS = 10.0
STOP = "stop\n"


class StreamProcess:
    """Keeps the stream process (the child process that runs the indexer) running from :meth:`start`
    until :meth:`stop`, by a background thread."""

    def __init__(self, job: StreamJob, warned: Callable[[str], None] = report) -> None:
        """Args:
        warned: called with each warning that the core layer logs in the stream process.
        """
        self._job = job
        self._warned = warned
        self._known: dict[str, int | None] = {}
        self._changing = threading.Lock()
        self._stopping = threading.Event()
        self._channel: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._has_reported = False
        self._thread = threading.Thread(target=self._run, name="stream process", daemon=True)

    def start(self) -> None:
        """Starts the background thread, which starts the stream process; waits neither for the
        thread nor for the process."""
        self._thread.start()

    def stop(self) -> None:
        """Lets the stream process finish its current batch, at most :data:`STOP_SECONDS`, then ends
        it."""
        with self._changing:
            self._stopping.set()
            process, channel = self._process, self._channel
        if process and channel:
            if self._has_reported:
                with contextlib.suppress(OSError):
                    channel.sendall(STOP.encode())
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(STOP_SECONDS)
            # A process that has not sent anything has hardly begun, and is killed at once.
            process.kill()
        if self._thread.is_alive():
            self._thread.join(STOP_SECONDS)

    def processed(self, mapping: str) -> int | None:
        """Returns the sequence number up to which an event source mapping has processed the table's
        stream; None while it is unknown."""
        return self._known.get(mapping)

    def position(self, mapping: str) -> Callable[[], int | None]:
        """Returns a function without arguments that calls :meth:`processed` for the event source
        mapping with this name."""
        return partial(self.processed, mapping)

    def _run(self) -> None:
        pause = FIRST_PAUSE_SECONDS
        while not self._stopping.is_set():
            try:
                code = self._run_once()
            except Exception as error:
                report("the process that follows the stream cannot be started", error)
                code = None
            if self._stopping.is_set():
                return
            if code is not None:
                report(
                    f"the process that follows the stream ended with code {code}; "
                    "it is started again"
                )
            pause = (
                FIRST_PAUSE_SECONDS if self._has_reported else min(2 * pause, LONGEST_PAUSE_SECONDS)
            )
            self._stopping.wait(pause)

    def _run_once(self) -> int | None:
        """Starts the process, receives its messages and waits for its end. Returns its exit code;
        None if :meth:`stop` was called first and the process was not started."""
        ours, theirs = socket.socketpair()
        with ours, ours.makefile("r", encoding="utf-8") as messages:
            with theirs, self._changing:
                if self._stopping.is_set():
                    return None
                self._has_reported, self._channel = False, ours
                self._process = process = self._launch(theirs)
            try:
                ours.sendall(f"{self._job.text()}\n".encode())
                for line in messages:
                    self._receive(line)
            except (OSError, ValueError):  # it ended in the middle of a line
                process.kill()
            return process.wait()

    def _launch(self, channel: socket.socket) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-m", "local.events", str(channel.fileno())],
            stdin=subprocess.DEVNULL,
            pass_fds=(channel.fileno(), self._job.shared_activity),
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )

    def _receive(self, line: str) -> None:
        self._has_reported = True
        message = json.loads(line)
        self._known.update(message.get("processed", {}))
        if "warning" in message:
            self._warned(message["warning"])
