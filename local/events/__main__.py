"""The stream process: calls functions from the table's stream and by schedule. Only
:mod:`local.events.stream_process`, in the local server, starts it.
    python -m local.events CHANNEL

CHANNEL is the descriptor of a socket. The process reads a
:class:`local.events.stream_process_parameters.StreamJob` from it and writes its progress to it.
When the socket closes, the local server has ended.
"""

from __future__ import annotations

import contextlib
import gc
import json
import logging
import os
import signal
import socket
import sys
import threading
from pathlib import Path
from typing import Any, Final

from local import malloc_settings
from local.disk_health import disk_fault
from local.events.batch import DeadLetters
from local.events.checkpoints import Checkpoints
from local.events.crash_recovery import InterruptedWrites
from local.events.filter_patterns import record_requirements
from local.events.schedule import Schedule
from local.events.stream_poller import StreamPoller, stream_client
from local.events.stream_process import STOP
from local.events.stream_process_parameters import StreamJob
from local.lambda_function import Function, ImportFailed
from local.log import report
from local.shared_activity import SharedActivity
from local.store import store
from local.store.file_maintenance import TableFile
from local.store.stream import StreamReader
from local.template_definitions import RecordRequirement

REPORT_INTERVAL_SECONDS: Final = 0.05
QUIET_REPORT_INTERVAL_SECONDS: Final = 1.0
"""The longest interval while no checkpoint changes. A change is reported after the shorter one."""

BATCH_SIZE_FACTOR: Final = 5
"""With the store, a batch has this many times the template's size, because larger batches need
fewer writes. In AWS the size limits the write units that a batch takes from a partition; the
store has no such limit."""


class Channel(logging.Handler):
    """Sends the progress and the warnings of the stream process over a socket to the local server
    that started it. Callable from many threads."""

    def __init__(self, runner: socket.socket) -> None:
        super().__init__(logging.WARNING)
        self._runner = runner
        self._speaking = threading.Lock()

    def send(self, **message: Any) -> None:
        # If the channel is closed, the thread that reads from it ends this process.
        with self._speaking, contextlib.suppress(OSError):
            self._runner.sendall(f"{json.dumps(message)}\n".encode())

    def emit(self, record: logging.LogRecord) -> None:
        """Handles a log record: sends a warning of the core layer to the local server, which then
        checks whether the disk can be written.
        """
        self.send(warning=record.getMessage())


def main() -> int:
    """Processes the table's stream until the local server stops this process. Returns the exit
    code."""
    malloc_settings.return_freed_memory()
    gc.disable()  # enabled again when the pollers run: imports create no garbage
    store.register()
    # A Ctrl-C in the terminal also reaches this process. The runner stops it when its requests have
    # ended.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    for output in (sys.stdout, sys.stderr):
        output.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    with socket.socket(fileno=int(sys.argv[1])) as runner, runner.makefile("r") as heard:
        first = heard.readline()
        if not first:
            return 1
        job = StreamJob.of(first)
        channel = Channel(runner)
        logging.getLogger("mlcore").addHandler(channel)
        with contextlib.ExitStack() as stack:
            checkpoints = Checkpoints(Path(job.checkpoints))
            pollers = follow(stack, job, checkpoints)
            gc.freeze()
            gc.enable()
            stopping = threading.Event()
            stack.callback(stopping.set)
            telling = threading.Thread(
                target=_report_progress,
                args=(channel, pollers, checkpoints.changed, stopping),
                name="telling",
                daemon=True,
            )
            telling.start()
            if heard.readline() != STOP:
                # The runner has ended, and the next one may have started another process.
                os._exit(1)
    return 0


def follow(
    stack: contextlib.ExitStack, job: StreamJob, checkpoints: Checkpoints
) -> list[StreamPoller]:
    """Starts what ``job`` defines: the pollers of the table's stream, and the schedule by which
    functions are called. Closing ``stack`` stops all of them. Returns the pollers."""
    functions = {definition.name: Function(definition) for definition in job.functions}
    for function in functions.values():
        try:
            function.load()
        except ImportFailed as error:
            report(str(error))
    dead_letters = DeadLetters(Path(job.dead_letters))
    file = TableFile(Path(job.database)) if job.database else None
    activity = SharedActivity(job.shared_activity)
    folder = Path(job.checkpoints).parent

    def can_write() -> bool:
        return disk_fault([folder], file) is None

    pollers, indexing = [], []
    for mapping in job.mappings:
        indexes = functions[mapping.function].definition.handler.startswith("indexer.")
        poller = StreamPoller(
            mapping._replace(batch_size=mapping.batch_size * (BATCH_SIZE_FACTOR if file else 1)),
            client=_client(job, record_requirements(mapping.patterns)),
            stream=job.stream,
            invoke=functions[mapping.function].invoke,
            checkpoints=checkpoints,
            dead_letters=dead_letters,
            region=job.region,
            written_at=file.written_at if file else None,
            is_serving=activity.is_serving,
            report_lag=activity.set_index_lagging if indexes else lambda _: None,
            can_write=can_write,
        )
        pollers.append(poller)
        if indexes:
            indexing.append(poller)
        stack.callback(poller.stop)
        poller.start()
    schedule = Schedule(job.schedules, lambda name, event: functions[name].invoke(event))
    stack.callback(schedule.stop)
    schedule.start()
    # This process has the indexer's code, which completes unfinished writes of an earlier run.
    if file and indexing:
        completion = InterruptedWrites(file, indexing, job.end)
        stack.callback(completion.stop)
        completion.start()
    return pollers


def _client(job: StreamJob, requirements: tuple[RecordRequirement, ...] | None) -> Any:
    if job.database:
        return StreamReader(Path(job.database), job.table, requirements)
    from local import table  # noqa: PLC0415 - ten megabytes, for who has another engine

    return stream_client(table.client)


def _report_progress(
    channel: Channel,
    pollers: list[StreamPoller],
    changed: threading.Event,
    stopping: threading.Event,
) -> None:
    """Sends the processed sequence numbers to the runner whenever they change."""
    known: dict[str, int | None] | None = None
    pause = 0.0
    while not stopping.wait(REPORT_INTERVAL_SECONDS):
        changed.clear()
        processed = {poller.mapping.name: poller.processed() for poller in pollers}
        # A shard that is listed for the first time changes no checkpoint.
        pause = min(2 * pause + REPORT_INTERVAL_SECONDS, QUIET_REPORT_INTERVAL_SECONDS)
        if processed != known:
            channel.send(processed=processed)
            known, pause = processed, 0.0
        changed.wait(pause)


if __name__ == "__main__":
    sys.exit(main())
