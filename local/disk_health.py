"""Checks whether the data folder and the database file of a local server can be written. If not,
makes the message for the user.

Nothing is checked while requests succeed and ``mlcore`` logs no warning. A failed request starts a
check, at most one a second. A warning of ``mlcore``, such as one about a failed DynamoDB call, only
sets ``suspected``; then the next call of ``fault`` checks. A check that finds no fault clears
``suspected``.
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

from local.log import report
from local.store.file_maintenance import TableFile, is_damage

_PROBE_BYTES = 1 << 20
_CHECK_INTERVAL_SECONDS = 1.0
_MEGABYTE = 1 << 20


def damage_message(file: TableFile, message: str) -> str:
    """Returns the message for a damaged database file, with SQLite's own words."""
    return (
        f"the database file {file.path} is damaged ({' '.join(message.split())}). Stop the runner "
        "and restore the file: docs/operations.md, 'The local runner'."
    )


def unwritable_message(folders: Sequence[Path]) -> str | None:
    """Returns a message that names the first folder in which a file of one megabyte cannot be
    written; None if all folders can be written."""
    for folder in folders:
        try:
            with tempfile.TemporaryFile(dir=folder) as probe:
                probe.write(bytes(_PROBE_BYTES))
                probe.flush()
                os.fsync(probe.fileno())
        except OSError as error:
            return f"{folder} cannot be written: {error.strerror}{_free(folder)}"
    return None


def no_room_message(folder: Path) -> str | None:
    """Returns a message if a megabyte cannot be allocated in the folder; None if it can. Takes less
    time than :func:`unwritable_message`, because nothing is written to the disk."""
    try:
        with tempfile.TemporaryFile(dir=folder) as probe:
            os.posix_fallocate(probe.fileno(), 0, _PROBE_BYTES)
    except OSError as error:
        return f"{folder} cannot be written: {error.strerror}{_free(folder)}"
    return None


def disk_fault(folders: Sequence[Path], file: TableFile | None) -> str | None:
    """Checks by writing whether files can be created in the folders and whether the table's file
    can be written. Returns a description of the fault for the user; None without a fault."""
    unwritable = unwritable_message(folders)
    if unwritable:
        return unwritable
    if file:
        try:
            file.write_probe()
        except sqlite3.Error as error:
            if is_damage(str(error)):
                return damage_message(file, str(error))
            return f"the database file {file.path} cannot be written: {error}"
    return None


class DiskHealth(logging.Handler):
    """Checks the data folders and the table's SQLite file after a failed request. As a logging
    handler it receives the warnings of the shared code (``mlcore``), which explain why calls of the
    table failed. Callable from many threads.
    """

    def __init__(self, folders: Sequence[Path], file: TableFile | None) -> None:
        """Args:
        folders: the folders that hold clients' data.
        file: the table's SQLite file; None if the table is in a DynamoDB engine that the user
            runs.
        """
        super().__init__(logging.WARNING)
        self._folders = folders
        self._file = file
        self._checking = threading.Lock()
        self.suspected = False
        """Whether a failure has occurred since the last check that found no fault."""
        self._checked_at = float("-inf")
        self._damage: str | None = None
        self._fault: str | None = None

    def emit(self, record: logging.LogRecord) -> None:
        """Records a warning that the core layer logged; :meth:`fault` then checks the disk. This
        method does not check it, because other threads wait until a logging handler returns."""
        self.record_warning(record.getMessage())

    def record_warning(self, message: str) -> None:
        """Logs a warning of the package ``mlcore``, from this process or from the stream process
        (the child process that runs the indexer). The next call of :meth:`fault` then checks the
        disk."""
        report(message)
        if is_damage(message) and self._file:
            self._damage = damage_message(self._file, message)
        self.suspected = True

    def check_after_failure(self) -> None:
        """Checks after a failed request whether the disk can be written, at most once a second, and
        logs a fault that the last check did not find."""
        self.suspected = True
        if time.monotonic() - self._checked_at > _CHECK_INTERVAL_SECONDS:
            self.fault()

    def fault(self) -> str | None:
        """Checks the disk if there was a warning or a failed request since the last check without a
        fault. Returns a description of the fault for the user; None without a fault."""
        if not self.suspected:
            return None
        with self._checking:
            fault = self._damage or disk_fault(self._folders, self._file)
            self._checked_at = time.monotonic()
            if fault != self._fault:
                report(fault or "the data can be written again")
            self._fault = fault
            self.suspected = fault is not None
            return fault


def _free(folder: Path) -> str:
    try:
        about = os.statvfs(folder)
    except OSError:
        return ""
    return f"; {about.f_bavail * about.f_frsize / _MEGABYTE:.1f} MB are free on its disk"
