"""The scratch folder of this machine: where processes keep copies of files, and what does not fit
into memory."""

from __future__ import annotations

import fcntl
import itertools
import os
import shutil
import tempfile
from pathlib import Path
from typing import Final

SCRATCH: Final = "SYSTEM_TABLES_SCRATCH"
"""Environment: another folder."""


def base() -> Path:
    """The scratch folder. Unless the environment names one it is this user's own, for other users
    of the machine could put files there.

    Raises:
        PermissionError: somebody else has made it.
    """
    named = os.environ.get(SCRATCH)
    folder = Path(named or Path(tempfile.gettempdir()) / f"system-tables-{os.getuid()}")
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    if not named and (folder.is_symlink() or folder.stat().st_uid != os.getuid()):
        raise PermissionError(f"{folder} belongs to another user: remove it, or set {SCRATCH}")
    return folder


class Part:
    """A part of the scratch folder that no other process uses until :meth:`close`, or until this
    process ends. ``files`` stay for whoever has the part next; ``temporary`` is empty at first."""

    def __init__(self, folder: Path) -> None:
        self._lock, path = _locked(folder)
        self.files, self.temporary = path / "files", path / "temporary"
        shutil.rmtree(self.temporary, ignore_errors=True)
        self.temporary.mkdir()

    def close(self) -> None:
        os.close(self._lock)


def _locked(folder: Path) -> tuple[int, Path]:
    """The first part that nobody has locked, for it has most copies, and its lock."""
    for number in itertools.count():
        path = folder / f"part-{number}"
        path.mkdir(exist_ok=True, mode=0o700)
        try:
            lock = os.open(path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except PermissionError:  # another user's, in a folder that both name
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
        else:
            return lock, path
    raise AssertionError
