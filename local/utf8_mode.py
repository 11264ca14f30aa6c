"""Makes Python write names of files and texts as UTF-8, whatever the locale says."""

from __future__ import annotations

import os
import sys


def insist() -> None:
    """Starts this process again in Python's UTF-8 mode if the locale has another encoding: names of
    files are UTF-8 in MLflow's API, and are written as they are."""
    if sys.getfilesystemencoding().lower() == "utf-8":
        return
    os.environ["PYTHONUTF8"] = "1"  # for the processes that are started from here, too
    program = [sys.executable, *sys.orig_argv[1:]]
    sys.stdout.flush()
    os.execv(sys.executable, program)  # noqa: S606 - the same program, without a shell
