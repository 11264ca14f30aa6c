"""Publishes the system tables: every minute in which something landed, less often while that needs
more than a hundredth of a processor, and at once when asked.

The engines run in a process of their own, which ends: this one never loads them.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from local.engine.file import EngineFile
from local.log import report

EVERY_SECONDS = 60.0
LONGEST_SECONDS = 600.0
SHARE = 0.01
"""Of one processor, what publishing may take on average: a publication of many runs costs little
more than one of few, so that beside a load of thousands of runs there are fewer of them."""
UPKEEP_EVERY = 60
"""So many publications later small files are merged, and old ones removed, when nobody waits."""
FOLLOW_SECONDS = 15.0
LOOK_SECONDS = 0.05
NICE = 10


class Publishing:
    """A background thread."""

    def __init__(
        self, folder: Path, positions: Sequence[Callable[[], int | None]], file: EngineFile
    ) -> None:
        """``folder`` is that of the system tables; ``positions`` tell up to where the lander has
        processed the stream, None while that is unknown."""
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
        """The number of the last publication that got through."""
        self._processor_seconds = 0.0
        self._freshness: Any = None

    def start(self) -> None:
        """Starts the thread, where the engines are installed, and answers to whoever asks for fresh
        tables."""
        # The layer's modules read the environment, which is complete by now.
        self._freshness = import_module("mlcore.system_tables.freshness")
        if find_spec("mltables") is not None and find_spec("duckdb") is not None:
            self._freshness.provide(self.refresh)
            self._thread.start()

    def stop(self) -> None:
        """Ends the thread and its process. What that did not finish is done again."""
        self._stop.set()
        self._freshness.provide(None)
        child = self._child
        if child is not None:
            child.terminate()
        if self._thread.is_alive():
            self._thread.join(5)

    def refresh(self) -> None:
        """Lands and publishes what was written until now. Callers that wait at the same time share
        one publication.

        A publication for which nobody waits is ended, and its work done again: on a busy machine it
        gets so little time that the caller would wait for minutes.
        """
        end = self._file.last_record()
        deadline = time.monotonic() + FOLLOW_SECONDS
        while not self._followed(end) and time.monotonic() < deadline:
            time.sleep(LOOK_SECONDS)
        begun, child = self._begun, self._child
        if child is not None and not self._is_waited_for:
            child.terminate()
        self._publish(after=begun)

    def _followed(self, end: int) -> bool:
        positions = [position() for position in self._positions]
        return not end or all(one is not None and one >= end for one in positions)

    def _run(self) -> None:
        rest = EVERY_SECONDS
        while not self._stop.wait(rest):
            self._processor_seconds = 0.0
            try:
                self._publish()
            except Exception as error:
                report("the system tables cannot be published, trying again", error)
            rest = min(LONGEST_SECONDS, max(EVERY_SECONDS, self._processor_seconds / SHARE))

    def _publish(self, after: int | None = None) -> None:
        """
        Args:
            after: the number of a publication; if a later one has got through when it is this
                one's turn, there is nothing to do. None for one that nobody waits for.
        """
        with self._turn:
            if after is not None and self._succeeded > after:
                return
            if self._stop.is_set() or not any(self._landing.glob("*/*")):
                return
            self._begun += 1
            self._since_upkeep += 1
            self._is_waited_for = after is not None
            command = [sys.executable, "-m", "mltables.publish"]
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
                # Searches and the index are waited for.
                with contextlib.suppress(OSError):
                    os.setpriority(os.PRIO_PROCESS, self._child.pid, NICE)
            done, said = self._child.communicate()
            code, self._child = self._child.returncode, None
            if code == 0:
                self._succeeded = self._begun
                self._since_upkeep = 0 if keeps_up else self._since_upkeep
                self._processor_seconds = float(json.loads(done)["processor_seconds"])
            elif code != -signal.SIGTERM:
                last = said.decode(errors="replace").strip().splitlines()[-1:]
                report(f"the system tables cannot be published, trying again: {''.join(last)}")
