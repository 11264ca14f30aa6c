"""Runs tasks every hour: deletes expired items and trims the stream, which DynamoDB does by itself
but the embedded engine does not, and deletes the parts of abandoned uploads.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from local.log import report

FIRST_ROUND_SECONDS = 5.0
ROUND_SECONDS = 3600.0


class Housekeeping:
    """Runs ``tasks`` in a background thread, five seconds after the start and then every hour."""

    def __init__(self, tasks: dict[str, Callable[[], int]]) -> None:
        """
        Args:
            tasks: functions by the text that the log shows for them; each returns how many items it
                removed.
        """
        self._tasks = tasks
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="housekeeping", daemon=True)

    def start(self) -> None:
        """Starts the thread that runs ``tasks`` every hour."""
        self._thread.start()

    def stop(self) -> None:
        """Ends the thread after the task that is running; waits 5 s at most."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(5)

    def _run(self) -> None:
        pause = FIRST_ROUND_SECONDS
        while not self._stop.wait(pause):
            self.tidy()
            pause = ROUND_SECONDS

    def tidy(self) -> None:
        """Runs every task once. A task that fails is logged and runs again in the next round."""
        for name, task in self._tasks.items():
            try:
                count = task()
            except Exception as error:
                report(f"{name} failed", error)
            else:
                if count:
                    report(f"{name}: {count}")
