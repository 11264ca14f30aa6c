"""Completes writes of requests that were interrupted when an earlier process of the product was
killed. The last records of the stream show which MLflow runs to check; the indexer's code checks
and completes them.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterable
from importlib import import_module

from local.events.stream_poller import StreamPoller
from local.log import report
from local.store.file_maintenance import TableFile

WATCH_SECONDS = 0.5
REQUEST_SECONDS = 31
"""How many seconds before the last stream record an interrupted request may have made its first
write: a request takes 30 seconds at most, and the stream's times are whole seconds."""


class InterruptedWrites:
    """A background thread that, once after the local server's start, completes log requests of runs
    that an earlier process left half-written.

    It waits until the stream is processed up to ``end``, the last record before the first request
    was served. Then it checks the runs to which the last records up to ``end`` belong, because
    interrupted requests wrote some of these.
    """

    def __init__(self, file: TableFile, pollers: list[StreamPoller], end: int) -> None:
        """``end`` is the sequence number of the last stream record before the first request was
        served."""
        self._file = file
        self._pollers = pollers
        self._end = end
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="completion", daemon=True)

    def start(self) -> None:
        """Starts the background thread that completes the writes of requests that were interrupted
        when an earlier server process was killed."""
        self._thread.start()

    def stop(self) -> None:
        """Ends the checking thread after the experiment that it checks now; waits 5 s at most."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(5)

    def _run(self) -> None:
        while not self._stop.wait(WATCH_SECONDS):
            try:
                if self._followed():
                    count = self._complete(
                        self._file.keys_written_before(self._end, REQUEST_SECONDS)
                    )
                    if count:
                        report(f"unfinished writes completed in {count} runs")
                    return
            except Exception as error:
                report("unfinished writes cannot be completed, trying again", error)

    def _followed(self) -> bool:
        positions = [poller.processed() for poller in self._pollers]
        return not self._end or all(
            position is not None and position >= self._end for position in positions
        )

    def _complete(self, keys_written: Iterable[tuple[str, str]]) -> int:
        """Completes the runs to which these items belong, and returns how many runs were
        incomplete.
        """
        keys = import_module("mlcore.db.keys")
        rebuild = import_module("indexer.verification.rebuild")
        runs: dict[str, set[str]] = {}
        for key in keys_written:
            with contextlib.suppress(ValueError):
                pattern, fields = keys.parse(*key)
                if pattern in (keys.RUN, keys.RUN_METRIC_BATCH, keys.RUN_METRIC_HISTORY):
                    runs.setdefault(fields["experiment_id"], set()).add(fields["run_id"])
        count = 0
        for experiment_id, run_ids in sorted(runs.items()):
            if self._stop.is_set():
                break
            count += rebuild.complete(experiment_id, run_ids)
        return count
