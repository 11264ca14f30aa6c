"""The stories of publications whose costs are counted: what is written in between, how it lands and
what the publisher then does. ``make bench-publication`` prints them, tests compare them."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from bench.bill.usage import LANDINGS, TRACES_A_MINUTE
from lander import app as lander
from mlcore.db import capacity
from publisher import app as publisher
from tests.contract import agent_traces
from tests.contract.api import Api
from tests.contract.capacity_figures import Figures
from tests.doubles import s3_requests
from tests.doubles.s3_requests import Asked, Requests

BEFORE = 2
"""Publications before the counted one: tables exist, and the publisher is warm."""
UPKEEP = "upkeep of traces"
STORIES = {
    "publication of a minute of traces": 1,
    "publication of five minutes of traces": 5,
    "publication of a minute of a run": 0,
    "publication of nothing": 0,
}
"""By name, for how many minutes traces come."""


class Publications:
    """A publisher behind which requests to S3 are counted."""

    def __init__(self, api: Api, fresh: Callable[[], list[Any]], requests: Requests) -> None:
        """
        Args:
            fresh: returns the records of the stream since its last call.
        """
        self._api, self._fresh, self._requests = api, fresh, requests
        self._traces = 0
        self._changed = range(0)
        self._run = ""

    def tell(self, story: str) -> tuple[Figures, Counter[Asked]]:
        """Returns what one publication takes, and its requests to S3 with those of the lander."""
        counted: Counter[Asked] = Counter()
        figures: Figures = {}
        for _ in range(BEFORE + 1):
            self._write(story)
            self._requests.take()
            self._land(max(1, STORIES[story]))
            landed = self._requests.take()
            figures = self._publish({})
            counted = landed + self._counted(figures)
        return figures, counted

    def keep_up(self) -> tuple[Figures, Counter[Asked]]:
        """Returns what the hourly upkeep takes."""
        self._requests.take()
        figures = self._publish({"upkeep": True})
        return figures, self._counted(figures)

    def _counted(self, figures: Figures) -> Counter[Asked]:
        counts = self._requests.take()
        figures["file_writes"] = s3_requests.writes(counts)
        figures["file_reads"] = s3_requests.reads(counts)
        return counts

    def _write(self, story: str) -> None:
        for number in self._changed:
            agent_traces.tag(number)
        minutes = STORIES[story]
        self._changed = range(self._traces, self._traces + minutes * TRACES_A_MINUTE)
        self._traces = self._changed.stop
        for number in self._changed:
            agent_traces.send(number, lambda made, *given: made(*given))
        if story.endswith("run"):
            self._log()

    def _log(self) -> None:
        if not self._run:
            self._run = self._api.new_run("0")
        for step in range(LANDINGS):
            at = int(time.time() * 1000)
            metrics = [
                {"key": f"m{n}", "value": 1, "timestamp": at, "step": step} for n in range(9)
            ]
            self._api.post("runs/log-batch", run_id=self._run, metrics=metrics)

    def _land(self, minutes: int) -> None:
        """Lands the records as so many batches as come in these minutes."""
        records = self._fresh()
        size = -(-len(records) // (LANDINGS * minutes)) or 1
        for at in range(0, len(records), size):
            lander.handler({"Records": records[at : at + size]}, None)

    def _publish(self, event: dict[str, Any]) -> Figures:
        started = time.process_time()
        with capacity.measure() as cost:
            publisher.handler(event, None)
        return {
            "calls": 1,
            "cpu_ms": round((time.process_time() - started) * 1000, 2),
            "round_trips": cost.round_trips,
            "read_units": cost.read_units,
            "write_units": cost.write_units,
        }
