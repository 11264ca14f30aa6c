"""Publishes the system tables of a local server: every SystemTablesMinutes if there are changes,
less often while publishing takes more than a hundredth of a processor, and at once on request.
DuckDB and its libraries run in a child process that ends afterwards, so that the local server never
loads them.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from local.audit_file import AuditFile
from local.log import report
from local.store.file_maintenance import TableFile

LONGEST_SECONDS = 600.0
PROCESSOR_SHARE = 0.01
"""The share of one processor that publishing may take on average. Publishing many runs costs little
more than publishing few, so that rarer publications save work under load."""
UPKEEP_EVERY = 60
"""A publication for which no caller waits also merges small files and removes old ones, if it is
at least the 60th after the last one that did so."""
INDEX_WAIT_SECONDS = 15.0
LOOK_SECONDS = 0.05
NICE = 10


class TablePublisher:
    """Publishes the system tables in a background thread, and on request."""

    def __init__(
        self,
        folder: Path,
        positions: Sequence[Callable[[], int | None]],
        file: TableFile,
        audit: AuditFile | None = None,
        every_seconds: float = 60.0,
    ) -> None:
        """
        Args:
            folder: the folder of the system tables.
            positions: functions that return the sequence number up to which the lander (which
                writes the stream's changes to landing objects) has processed the stream, None while
                unknown.
            audit: the file of audited requests, which are not in the stream. Its landing objects
                are written before each publication.
            every_seconds: the interval of publications for which no caller waits. It is longer
                after one that took much processor time.
        """
        self._audit, self._every_seconds = audit, every_seconds
        self._landing = folder / "files/landing"
        self._positions, self._file = positions, file
        self._stop = threading.Event()
        self._turn = threading.Lock()
        self._child: subprocess.Popen[bytes] | None = None
        self._is_waited_for = False
        self._since_upkeep = 0
        self._thread = threading.Thread(target=self._run, name="publishing", daemon=True)
        self._begun = 0
        self._succeeded = 0
        """The number of the last publication that succeeded."""
        self._processor_seconds = 0.0
        self._table_refresh: Any = None

    def start(self) -> None:
        """Starts the publishing thread if the SQL engine is installed. From then on, a request that
        needs fresh system tables calls :meth:`refresh`.
        """
        # The layer's modules read the environment, which is complete by now.
        self._table_refresh = import_module("mlcore.system_tables.table_refresh")
        if find_spec("mltables") is not None and find_spec("duckdb") is not None:
            self._table_refresh.provide(self.refresh)
            self._thread.start()

    def stop(self) -> None:
        """Ends the thread and the process that is publishing the system tables, if any. The next
        run of the product repeats a publication that was ended so.
        """
        self._stop.set()
        self._table_refresh.provide(None)
        child = self._child
        if child is not None:
            child.terminate()
        if self._thread.is_alive():
            self._thread.join(5)

    def refresh(self, until: float = math.inf) -> bool:
        """Publishes all writes that were made before this call, and returns afterwards. Callers
        that wait at the same time share one publication.
        A running publication for which no caller waits is terminated and repeated: it runs at a low
        priority, and on a busy machine the caller would wait for minutes.

        Args:
            until: the time at which to return even if the publication is still running, on the
                clock of :func:`time.monotonic`. The publication then continues.

        Returns:
            Whether the publication ended in time, even if its process failed, which is only logged.
            It lacks writes that the lander (which prepares the stream's changes for publishing) has
            not read within INDEX_WAIT_SECONDS.
        """
        end = self._file.last_record()
        deadline = min(until, time.monotonic() + INDEX_WAIT_SECONDS)
        while not self._followed(end) and time.monotonic() < deadline:
            time.sleep(LOOK_SECONDS)
        begun, child = self._begun, self._child
        if child is not None and not self._is_waited_for:
            child.terminate()
        published: Future[None] = Future()

        def publish() -> None:
            try:
                self._publish(after=begun)
                published.set_result(None)
            except Exception as error:
                published.set_exception(error)

        threading.Thread(target=publish, name="publishing at once", daemon=True).start()
        try:
            published.result(None if until == math.inf else max(0.0, until - time.monotonic()))
        except TimeoutError:
            return False
        return True

    def _followed(self, end: int) -> bool:
        positions = [position() for position in self._positions]
        return not end or all(position is not None and position >= end for position in positions)

    def _run(self) -> None:
        rest = self._every_seconds
        while not self._stop.wait(rest):
            self._processor_seconds = 0.0
            try:
                self._publish()
            except Exception as error:
                report("the system tables cannot be published, trying again", error)
            rest = max(
                self._every_seconds,
                min(LONGEST_SECONDS, self._processor_seconds / PROCESSOR_SHARE),
            )

    def _publish(self, after: int | None = None) -> None:
        """Publishes once, if there are landing objects.

        Args:
            after: the number of a publication. Nothing is done if a later one has succeeded
                meanwhile. None if no caller waits.
        """
        with self._turn:
            if after is not None and self._succeeded > after:
                return
            if self._audit:
                self._audit.land()
            if self._stop.is_set() or not any(self._landing.glob("*/*")):
                return
            self._begun += 1
            self._since_upkeep += 1
            self._is_waited_for = after is not None
            command = [sys.executable, "-m", "local.store", "mltables.publish_command"]
            keeps_up = after is None and self._since_upkeep >= UPKEEP_EVERY
            if keeps_up:
                command.append("--upkeep")
            environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
            self._child = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=environment,
            )
            if after is None:
                # No caller waits for this process, but callers wait for searches: lower its
                # priority.
                with contextlib.suppress(OSError):
                    os.setpriority(os.PRIO_PROCESS, self._child.pid, NICE)
            done, errors = self._child.communicate()
            code, self._child = self._child.returncode, None
            if code == 0:
                self._succeeded = self._begun
                self._since_upkeep = 0 if keeps_up else self._since_upkeep
                self._processor_seconds = float(json.loads(done)["processor_seconds"])
            elif code != -signal.SIGTERM:
                last = errors.decode(errors="replace").strip().splitlines()[-1:]
                report(f"the system tables cannot be published, trying again: {''.join(last)}")
