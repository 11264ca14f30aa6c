"""The process that follows the stream: drives functions from it, and calls those that have a
schedule. :mod:`local.events.process` starts it; nobody else does.

    python -m local.events CHANNEL

CHANNEL is the descriptor of a socket: a :class:`local.events.job.Job` comes in, what has been
processed goes out, and where it closes the runner is gone.
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

from local import allocator
from local.definitions import Admission
from local.engine.file import EngineFile
from local.engine.stream_file import StreamFile
from local.events.batch import DeadLetters
from local.events.checkpoints import Checkpoints
from local.events.completion import Completion
from local.events.filters import admissions
from local.events.job import Job
from local.events.process import STOP
from local.events.schedule import Schedule
from local.events.stream import StreamPoller, stream_client
from local.function import Function, ImportFailed
from local.housekeeping import Housekeeping
from local.log import report
from local.pulse import Pulse

TELL_SECONDS: Final = 0.05

BATCHES_TOGETHER: Final = 5
"""So many of the template's batches are one here: the more wait, the more are handled while the
engine is waited for. In AWS the writes for a batch, five units for a record, are to be a part of
what a partition takes in a second; the engine here has no such limit."""


class Channel(logging.Handler):
    """What this process says to the runner. Callable from many threads."""

    def __init__(self, runner: socket.socket) -> None:
        super().__init__(logging.WARNING)
        self._runner = runner
        self._speaking = threading.Lock()

    def tell(self, **said: Any) -> None:
        # Where the channel is closed, whoever reads it ends this process.
        with self._speaking, contextlib.suppress(OSError):
            self._runner.sendall(f"{json.dumps(said)}\n".encode())

    def emit(self, record: logging.LogRecord) -> None:
        """The runner looks at the disk when the layer warns."""
        self.tell(warning=record.getMessage())


def main() -> int:
    """Follows the stream until the runner says that it is enough."""
    allocator.keep_little()
    # A Ctrl-C in the terminal is for the runner, which stops this when its requests are through.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    for output in (sys.stdout, sys.stderr):
        output.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    with socket.socket(fileno=int(sys.argv[1])) as runner, runner.makefile("r") as heard:
        first = heard.readline()
        if not first:
            return 1
        job = Job.of(first)
        channel = Channel(runner)
        logging.getLogger("mlcore").addHandler(channel)
        with contextlib.ExitStack() as stack:
            pollers = follow(stack, job)
            gc.collect()
            gc.freeze()
            stopping = threading.Event()
            stack.callback(stopping.set)
            telling = threading.Thread(
                target=_tell, args=(channel, pollers, stopping), name="telling", daemon=True
            )
            telling.start()
            if heard.readline() != STOP:
                # The runner is gone, and the next one may have begun with another process.
                os._exit(1)
    return 0


def follow(stack: contextlib.ExitStack, job: Job) -> list[StreamPoller]:
    """Does a job until the stack is closed."""
    functions = {one.name: Function(one) for one in job.functions}
    for function in functions.values():
        try:
            function.load()
        except ImportFailed as error:
            report(str(error))
    checkpoints = Checkpoints(Path(job.checkpoints))
    dead_letters = DeadLetters(Path(job.dead_letters))
    file = EngineFile(Path(job.database), job.table) if job.database else None
    pulse = Pulse(job.pulse)
    pollers, indexing = [], []
    for mapping in job.mappings:
        indexes = functions[mapping.function].definition.handler.startswith("indexer.")
        poller = StreamPoller(
            mapping._replace(batch_size=mapping.batch_size * (BATCHES_TOGETHER if file else 1)),
            client=_client(job, admissions(mapping.patterns)),
            stream=job.stream,
            invoke=functions[mapping.function].invoke,
            checkpoints=checkpoints,
            dead_letters=dead_letters,
            region=job.region,
            written_at=file.written_at if file else None,
            busy=pulse.busy,
            tell_behind=pulse.tell_behind if indexes else lambda _: None,
        )
        pollers.append(poller)
        if indexes:
            indexing.append(poller)
        stack.callback(poller.stop)
        poller.start()
    schedule = Schedule(job.schedules, lambda name, event: functions[name].invoke(event))
    stack.callback(schedule.stop)
    schedule.start()
    # What an earlier run left unfinished is completed where the indexer runs.
    if file and indexing:
        completion = Completion(file, indexing, job.began, job.end)
        stack.callback(completion.stop)
        completion.start()
        house = Housekeeping({"runs with unfinished writes completed": completion.abandoned})
        stack.callback(house.stop)
        house.start()
    return pollers


def _client(job: Job, told: tuple[Admission, ...] | None) -> Any:
    if job.database:
        return StreamFile(Path(job.database), job.table, told)
    from local.engine import table  # noqa: PLC0415 - ten megabytes, for who has another engine

    return stream_client(table.client)


def _tell(channel: Channel, pollers: list[StreamPoller], stopping: threading.Event) -> None:
    """Up to where everything is processed, whenever that has changed."""
    known: dict[str, int | None] | None = None
    while not stopping.wait(TELL_SECONDS):
        processed = {poller.mapping.name: poller.processed() for poller in pollers}
        if processed != known:
            channel.tell(processed=processed)
            known = processed


if __name__ == "__main__":
    sys.exit(main())
