"""Whether the disk and the file under the data can be written; what the user is told when not.

Nothing is examined while all goes well: a failed request or a failed call of the table raises the
suspicion, and an examination that finds nothing ends it.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from local.engine.file import EngineFile, is_damage
from local.log import report

_PROBE_BYTES = 1 << 20
_EXAMINED_SECONDS = 1.0
_MEGABYTE = 1 << 20


def damaged(file: EngineFile, message: str) -> str:
    """What the user is told of a file whose content is wrong."""
    return (
        f"the database file {file.path} is damaged ({' '.join(message.split())}). Stop the runner "
        "and restore the file: docs/operations.md, 'The local runner'."
    )


def find_unwritable(folders: Sequence[Path]) -> str | None:
    """What the user is told of the first folder that takes no megabyte; None when all do."""
    for folder in folders:
        try:
            with tempfile.TemporaryFile(dir=folder) as probe:
                probe.write(bytes(_PROBE_BYTES))
                probe.flush()
                os.fsync(probe.fileno())
        except OSError as error:
            return f"{folder} cannot be written: {error.strerror}{_free(folder)}"
    return None


class Condition(logging.Handler):
    """Takes the warnings of the layer, which tell why calls of the table failed.

    Callable from many threads.
    """

    def __init__(self, folders: Sequence[Path], file: EngineFile | None) -> None:
        """``folders`` keep what clients send; ``file`` is the engine's, None for one of somebody
        else."""
        super().__init__(logging.WARNING)
        self._folders = folders
        self._file = file
        self._examining = threading.Lock()
        self.suspected = False
        """Whether something failed since all was well."""
        self._examined = float("-inf")
        self._damage: str | None = None
        self._cause: str | None = None

    def emit(self, record: logging.LogRecord) -> None:
        """Says what the layer said. Examines nothing: other threads wait for a handler's end."""
        self.hear(record.getMessage())

    def hear(self, message: str) -> None:
        """A warning of the layer, in this process or in one that it has started."""
        report(message)
        if is_damage(message) and self._file:
            self._damage = damaged(self._file, message)
        self.suspected = True

    def suspect(self) -> None:
        """Something failed: the cause goes to the log if it is found, once a second at most."""
        self.suspected = True
        if time.monotonic() - self._examined > _EXAMINED_SECONDS:
            self.cause()

    def cause(self) -> str | None:
        """What is wrong at this moment, in words for the user; None when nothing is."""
        if not self.suspected:
            return None
        with self._examining:
            found = self._damage or self._examine()
            self._examined = time.monotonic()
            if found != self._cause:
                report(found or "the data can be written again")
            self._cause = found
            self.suspected = found is not None
            return found

    def _examine(self) -> str | None:
        unwritable = find_unwritable(self._folders)
        if unwritable:
            return unwritable
        if self._file:
            try:
                self._file.write_probe()
            except sqlite3.Error as error:
                if is_damage(str(error)):
                    return damaged(self._file, str(error))
                return f"the database file {self._file.path} cannot be written: {error}"
        return None


def _free(folder: Path) -> str:
    try:
        about = os.statvfs(folder)
    except OSError:
        return ""
    return f"; {about.f_bavail * about.f_frsize / _MEGABYTE:.1f} MB are free on its disk"
