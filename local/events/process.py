"""The process that follows the stream, seen from the runner: started, listened to, started again
when it dies, ended.

It has an interpreter of its own, so that requests do not wait for what follows from them, and ends
with the runner, however that ends: the channel between them closes.
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

from local.events.job import Job
from local.log import report

STOP_SECONDS = 12.0
FIRST_PAUSE_SECONDS = 0.2
LONGEST_PAUSE_SECONDS = 10.0
STOP = "stop\n"


class StreamProcess:
    """One at a time, from :meth:`start` until :meth:`stop`, watched by a background thread."""

    def __init__(self, job: Job, warned: Callable[[str], None] = report) -> None:
        """``warned`` is told the warnings of the layer in that process."""
        self._job = job
        self._warned = warned
        self._known: dict[str, int | None] = {}
        self._changing = threading.Lock()
        self._stopping = threading.Event()
        self._channel: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._is_heard = False
        self._thread = threading.Thread(target=self._run, name="stream process", daemon=True)

    def start(self) -> None:
        """Starts the process, and does not wait for it."""
        self._thread.start()

    def stop(self) -> None:
        """Lets the process finish the batch at hand."""
        with self._changing:
            self._stopping.set()
            process, channel = self._process, self._channel
        if process and channel:
            if self._is_heard:
                with contextlib.suppress(OSError):
                    channel.sendall(STOP.encode())
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(STOP_SECONDS)
            # One that has said nothing has begun nothing.
            process.kill()
        if self._thread.is_alive():
            self._thread.join(STOP_SECONDS)

    def processed(self, mapping: str) -> int | None:
        """The sequence number up to which a mapping has processed the stream, None while that is
        unknown."""
        return self._known.get(mapping)

    def position(self, mapping: str) -> Callable[[], int | None]:
        """:meth:`processed` of one mapping."""
        return partial(self.processed, mapping)

    def _run(self) -> None:
        pause = FIRST_PAUSE_SECONDS
        while not self._stopping.is_set():
            try:
                code = self._live()
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
            pause = FIRST_PAUSE_SECONDS if self._is_heard else min(2 * pause, LONGEST_PAUSE_SECONDS)
            self._stopping.wait(pause)

    def _live(self) -> int | None:
        """One process, from its start to its end; its exit code, None when it was not started."""
        ours, theirs = socket.socketpair()
        with ours, ours.makefile("r", encoding="utf-8") as said:
            with theirs, self._changing:
                if self._stopping.is_set():
                    return None
                self._is_heard, self._channel = False, ours
                self._process = process = self._launch(theirs)
            try:
                ours.sendall(f"{self._job.text()}\n".encode())
                for line in said:
                    self._hear(line)
            except (OSError, ValueError):  # it died while it was spoken to, or within a line
                process.kill()
            return process.wait()

    def _launch(self, channel: socket.socket) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-m", "local.events", str(channel.fileno())],
            stdin=subprocess.DEVNULL,
            pass_fds=(channel.fileno(), self._job.pulse),
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )

    def _hear(self, line: str) -> None:
        self._is_heard = True
        heard = json.loads(line)
        self._known.update(heard.get("processed", {}))
        if "warning" in heard:
            self._warned(heard["warning"])
