"""Calls the local server's Lambda functions by the SAM template's schedule rules."""

from __future__ import annotations

import heapq
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from local.log import report
from local.template_definitions import ScheduleDefinition

STOP_SECONDS = 3.0


class Schedule:
    """The schedule rules of a SAM template, run by one background thread. ``invoke`` calls a Lambda
    function by its name."""

    def __init__(
        self, rules: Sequence[ScheduleDefinition], invoke: Callable[[str, Any], Any]
    ) -> None:
        """Takes the rules. The first call of each rule is due one interval after :meth:`start`,
        each further call one interval after the last one has ended. One call runs at a time."""
        self._rules = rules
        self._invoke = invoke
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="schedule", daemon=True)

    def start(self) -> None:
        """Starts the thread that calls the scheduled functions at their intervals."""
        self._thread.start()

    def stop(self) -> None:
        """Ends the thread that calls functions on schedules; a running call gets three seconds."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(STOP_SECONDS)

    def _run(self) -> None:
        due = [(time.monotonic() + rule.seconds, at) for at, rule in enumerate(self._rules)]
        heapq.heapify(due)
        while due and not self._stop.wait(max(0.0, due[0][0] - time.monotonic())):
            _, at = due[0]
            rule = self._rules[at]
            try:
                self._invoke(rule.function, rule.event)
            except Exception as error:
                report(f"{rule.name} failed", error)
            heapq.heapreplace(due, (time.monotonic() + rule.seconds, at))
