"""What DynamoDB does by itself and the embedded engine does not: sweeps, trims the stream."""

from __future__ import annotations

import threading
from collections.abc import Callable

from local.log import report

FIRST_ROUND_SECONDS = 5.0
ROUND_SECONDS = 3600.0


class Housekeeping:
    """A background thread.

    ``tasks`` run soon after the start and then every hour.
    """

    def __init__(self, tasks: dict[str, Callable[[], int]]) -> None:
        """A task answers how many things it removed."""
        self._tasks = tasks
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="housekeeping", daemon=True)

    def start(self) -> None:
        """Starts the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Ends the thread after the task at hand."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(5)

    def _run(self) -> None:
        pause = FIRST_ROUND_SECONDS
        while not self._stop.wait(pause):
            self.tidy()
            pause = ROUND_SECONDS

    def tidy(self) -> None:
        """Runs every task once; a failed one is reported and tried again in the next round."""
        for name, task in self._tasks.items():
            try:
                count = task()
            except Exception as error:
                report(f"{name} failed", error)
            else:
                if count:
                    report(f"{name}: {count}")
