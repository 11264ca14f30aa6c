"""The scratch folder of this machine: processes keep copies of S3 files there, and write data there
that does not fit into memory."""

from __future__ import annotations

import fcntl
import itertools
import os
import shutil
import tempfile
from pathlib import Path
from typing import Final

SCRATCH: Final = "SYSTEM_TABLES_SCRATCH"
"""Environment variable that names another scratch folder."""


def locate() -> Path:
    """Returns the folder for temporary files of SQL queries and copies of S3 files, and creates it
    if needed. Unless the environment names a folder, it must belong to this user: other users of
    the machine could otherwise plant files. Raises PermissionError if another user owns it."""
    named = os.environ.get(SCRATCH)
    folder = Path(named or Path(tempfile.gettempdir()) / f"system-tables-{os.getuid()}")
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    if not named and (folder.is_symlink() or folder.stat().st_uid != os.getuid()):
        raise PermissionError(f"{folder} belongs to another user: remove it, or set {SCRATCH}")
    return folder


class LockedFolder:
    """A part of the scratch folder of SQL queries that this process has locked until :meth:`close`
    or its end. The copies of S3 files in ``files`` and of Delta logs in ``logs`` stay for the next
    process that locks the part; ``temporary`` starts empty."""

    def __init__(self, folder: Path) -> None:
        self._lock, path = _locked(folder)
        self.files, self.logs = path / "files", path / "logs"
        self.temporary = path / "temporary"
        shutil.rmtree(self.temporary, ignore_errors=True)
        self.temporary.mkdir()

    def close(self) -> None:
        os.close(self._lock)


def _locked(folder: Path) -> tuple[int, Path]:
    """Locks the first free part and returns the lock and the part's folder. It tries low numbers
    first, so that processes find the copies of earlier ones."""
    for number in itertools.count():
        path = folder / f"part-{number}"
        path.mkdir(exist_ok=True, mode=0o700)
        try:
            lock = os.open(path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except PermissionError:  # another user's part of a shared folder
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
        else:
            return lock, path
    raise AssertionError
