"""Completes what requests left unfinished that died with an earlier run of the product.

It decides nothing itself: the functions' own code does, for the runs of the last records and for
those that have markers of earlier versions.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterable
from importlib import import_module
from typing import Any

from local.engine.file import EngineFile
from local.events.stream import StreamPoller
from local.log import report

WATCH_SECONDS = 0.5
REQUEST_SECONDS = 31
"""A request takes 30 seconds at most, and the stream counts whole ones."""
ABANDONED_SECONDS = 600.0
"""A request of this run is over long before."""


class Completion:
    """A background thread, from the start of the runner until what it found then is completed.

    First the stream is followed up to its end as it was at the start: points whose run does not
    know them are completed then. Whoever died wrote one of the last records. Markers beside runs
    are of earlier versions, of requests that died before they wrote their run.
    """

    def __init__(
        self, file: EngineFile, pollers: list[StreamPoller], began: float, end: int
    ) -> None:
        """``began`` is a time before the first request was served, ``end`` the last record then."""
        self._file = file
        self._pollers = pollers
        self._began = began
        self._end = end
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="completion", daemon=True)

    def start(self) -> None:
        """Starts the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Ends the thread after the experiment at hand."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(5)

    def abandoned(self) -> int:
        """Completes what requests of this run have left; how many runs that were."""
        return self._complete(time.time() - ABANDONED_SECONDS)

    def _run(self) -> None:
        while not self._stop.wait(WATCH_SECONDS):
            try:
                if self._followed():
                    lately = self._file.written_last(self._end, REQUEST_SECONDS)
                    count = self._complete(self._began, lately)
                    if count:
                        report(f"unfinished writes completed in {count} runs")
                    return
            except Exception as error:
                report("unfinished writes cannot be completed, trying again", error)

    def _followed(self) -> bool:
        positions = [poller.processed() for poller in self._pollers]
        return not self._end or all(one is not None and one >= self._end for one in positions)

    def _complete(self, before: float, lately: Iterable[tuple[str, str]] = ()) -> int:
        keys, rebuild = import_module("mlcore.db.keys"), import_module("indexer.rebuild")
        gone: Any = import_module("mlcore.errors").ResourceDoesNotExist
        runs: dict[str, set[str]] = {}
        for key in self._file.keys_from(keys.pending_prefix("run")):
            runs.setdefault(keys.parse(*key).fields["experiment_id"], set())
        for key in lately:
            with contextlib.suppress(ValueError):
                pattern, fields = keys.parse(*key)
                if pattern in (keys.RUN, keys.RUN_METRIC_BATCH, keys.RUN_METRIC_HISTORY):
                    runs.setdefault(fields["experiment_id"], set()).add(fields["run_id"])
        count = 0
        for experiment_id, run_ids in sorted(runs.items()):
            if self._stop.is_set():
                break
            try:
                count += rebuild.finish(experiment_id, int(before * 1000), run_ids)
            except gone:
                continue
        return count
