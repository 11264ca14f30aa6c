"""Makes Python use UTF-8 for file names and texts, independent of the locale."""

from __future__ import annotations

import os
import sys


def insist() -> None:
    """Restarts this process in Python's UTF-8 mode if the locale has another encoding: file names
    are UTF-8 in MLflow's API and are written to the disk as such."""
    if sys.getfilesystemencoding().lower() == "utf-8":
        return
    os.environ["PYTHONUTF8"] = "1"  # for the processes that are started from here, too
    program = [sys.executable, *sys.orig_argv[1:]]
    sys.stdout.flush()
    os.execv(sys.executable, program)  # noqa: S606 - the same program, without a shell
