"""``python -m local``: starts the local runner with the options of the command line."""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
from typing import Any, NoReturn

from local import core_dumps, malloc_settings, program_name, utf8_mode
from local.command_line import parse
from local.data_folder import FolderInUse
from local.folder_format import FolderTooNew
from local.runner import CannotStart, Runner
from local.template_definitions import TemplateError

SWITCH_INTERVAL_SECONDS = 0.0005
"""How long a thread may keep the interpreter. Python's default, 5 ms, is as long as a whole request
takes."""


_stop_requested = threading.Event()


def _stop(number: int, frame: Any) -> None:  # noqa: ARG001 - the signature of signal handlers
    """The signal handler until the HTTP server handles signals itself. Raises an exception that
    ends the runner. Python drops an exception inside a destructor or a callback, so this function
    also sets ``_stop_requested``, which the server checks.
    """
    _stop_requested.set()
    raise SystemExit(0)


def main() -> int:
    """Serves the product on this machine until a signal stops it. Returns the exit code of the
    process: 0 after SIGTERM or SIGINT, 1 if the local server cannot start, 2 if its options are
    unsafe. A mistake in the command line ends the process with code 2.
    """
    utf8_mode.insist()
    options = parse()
    core_dumps.forbid()
    # Until the server is ready, almost no object becomes garbage, and collections took a fifth of
    # the time of the start. The runner enables collections again.
    gc.disable()
    malloc_settings.return_freed_memory()
    # Other users of this machine must not be able to read the files.
    os.umask(0o077)
    sys.setswitchinterval(SWITCH_INTERVAL_SECONDS)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _stop)
    for output in (sys.stdout, sys.stderr):
        output.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    try:
        return Runner(options, _stop_requested.is_set).run()
    except (CannotStart, FolderInUse, FolderTooNew, TemplateError) as error:
        print(f"{program_name.in_messages('local')}: {error}", file=sys.stderr)
        return error.code if isinstance(error, CannotStart) else 1


def run() -> NoReturn:
    """Calls :func:`main` and ends the process with the exit code that it returns."""
    code = main()
    if any(thread.name.startswith("request") for thread in threading.enumerate()):
        # A normal exit would wait for a handler that still hangs in its thread.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


if __name__ == "__main__":
    run()
