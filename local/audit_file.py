"""Writes the audit log of a laptop: a line for each audited request, before the request is
answered.

The lines go to ``audit/open.jsonl`` in the folder of the system tables. Each publication of the
system tables first moves them to a landing object (a file of changes to publish), from which the
publisher adds them to the table ``audit_log``. A process that is killed after an answer does not
lose the line. A line that was moved twice is published once, because it has an id.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import threading
import time
import uuid
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from local.log import report
from local.store.database import FILE_ADVICE
from mlcore.errors import InsufficientStorage, MlflowError, TemporarilyUnavailable

_OPEN = "open.jsonl"
_CLOSED = "closed-"

_PROBE_BYTES = 4096


class AuditFile:
    """The file of those audited requests that were not yet moved to a landing object (a file of
    changes to publish in the system tables). Callable from many threads."""

    def __init__(self, tables: Path) -> None:
        """
        Args:
            tables: the folder of the system tables.
        """
        self._folder = tables / "audit"
        self._lock = threading.Lock()
        self._descriptor: int | None = None
        self._size = 0
        self._is_failing = False
        """Whether the last line could not be written."""
        # The layer's modules read the environment, which is complete by now.
        self._audit: Any = import_module("mlcore.http.audit")
        self._landing: Any = import_module("mlcore.system_tables.audit_landing")

    def start(self) -> None:
        """Makes the core layer call :meth:`record` for each audited request before the request is
        answered."""
        self._audit.provide(self)

    def stop(self) -> None:
        self._audit.provide(None)
        with self._lock:
            self._close()

    def check(self) -> None:
        """Tests whether a line can be written, if the last one could not be written. It is called
        before a request is executed; so after the first failure only requests that are running
        already are executed without a line.

        Raises:
            InsufficientStorage, TemporarilyUnavailable: no line can be written.
        """
        if self._is_failing:
            # Longer than a usual line. It is removed again.
            self._write(b" " * _PROBE_BYTES, is_kept=False)

    def record(self, request: Mapping[str, Any]) -> None:
        """Writes the line of an audited request to the file.

        Raises:
            InsufficientStorage: it cannot be written because the disk is full or read-only.
            TemporarilyUnavailable: it cannot be written for another reason.
        """
        line = self._landing.line_of(uuid.uuid4().hex, time.time_ns() // 1_000_000, request)
        self._write(f"{line}\n".encode(), is_kept=True)

    def _write(self, data: bytes, *, is_kept: bool) -> None:
        """Appends to the file. Raises the same errors as :meth:`record`."""
        with self._lock:
            try:
                descriptor = self._opened()
                if os.write(descriptor, data) != len(data):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                if is_kept:
                    self._size += len(data)
                else:
                    self._cut()
                self._is_failing = False
            except OSError as error:
                self._cut()
                if not self._is_failing:
                    report("the audit cannot be written", error)
                self._is_failing = True
                raise _refusal(error) from error

    def land(self) -> None:
        """Moves all lines of the audit file to landing objects (files of changes to publish), from
        which the publisher adds them to the table ``audit_log``."""
        with self._lock:
            if not self._folder.is_dir():
                return
            self._close()
            opened = self._folder / _OPEN
            if opened.exists():
                opened.replace(self._folder / f"{_CLOSED}{time.time_ns():020}")
        # There may also be files of a process that was killed at this point.
        for closed in sorted(self._folder.glob(f"{_CLOSED}*")):
            lines = _whole_lines(closed)
            if lines:
                self._landing.put(closed.name, lines)
            closed.unlink()

    def _opened(self) -> int:
        if self._descriptor is None:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            path = self._folder / _OPEN
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
            self._descriptor = os.open(path, flags, 0o600)
            self._size = os.fstat(self._descriptor).st_size
        return self._descriptor

    def _cut(self) -> None:
        """Removes everything after the last complete line."""
        if self._descriptor is not None:
            with contextlib.suppress(OSError):
                os.ftruncate(self._descriptor, self._size)

    def _close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def _refusal(error: OSError) -> MlflowError:
    """Returns the error for a request whose audit line cannot be written."""
    advice = FILE_ADVICE.get(error.errno or 0)
    if advice is None:
        return TemporarilyUnavailable(
            "The audit of this request cannot be written. Repeat the request later."
        )
    return InsufficientStorage(f"The audit of this request cannot be written. {advice}")


def _whole_lines(path: Path) -> list[str]:
    """Returns the lines of a file that are JSON. After a power cut the last lines may be
    incomplete."""
    lines = []
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        with contextlib.suppress(ValueError):
            json.loads(line)
            lines.append(line)
    return lines
