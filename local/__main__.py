"""``python -m local``: reads the command line, runs, and turns every end into an exit code."""

from __future__ import annotations

import os
import signal
import sys
import threading
from typing import Any

from local import allocator
from local.command_line import parse
from local.definitions import TemplateError
from local.engine.engine import EngineFailed
from local.folder import FolderInUse
from local.runner import CannotStart, Runner

SWITCH_INTERVAL_SECONDS = 0.0005
"""Requests, the stream and the server share the interpreter; Python's own 5 ms are as long as a
request takes."""


_told_to_stop = threading.Event()


def _stop(number: int, frame: Any) -> None:  # noqa: ARG001 - the signature of signal handlers
    """Before the server runs there is nothing to finish: unwind what was started. Python drops an
    exception that is raised inside a destructor or a callback, so the server asks once more."""
    _told_to_stop.set()
    raise SystemExit(0)


def main() -> int:
    """Runs until stopped.

    0 after SIGTERM or SIGINT, 1 when it cannot go on, 2 for a mistake in the command.
    """
    options = parse()
    allocator.keep_little()
    # Other users of this machine read nothing of what is kept.
    os.umask(0o077)
    sys.setswitchinterval(SWITCH_INTERVAL_SECONDS)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _stop)
    for output in (sys.stdout, sys.stderr):
        output.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    try:
        return Runner(options, _told_to_stop.is_set).run()
    except (CannotStart, EngineFailed, FolderInUse, TemplateError) as error:
        print(f"local: {error}", file=sys.stderr)
        return error.code if isinstance(error, CannotStart) else 1


if __name__ == "__main__":
    code = main()
    if any(thread.name.startswith("request") for thread in threading.enumerate()):
        # A handler may still hang in its worker; the interpreter would wait for it.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)
