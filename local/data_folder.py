"""The local server's data folder: its lock, its files' paths, and its removal if ephemeral."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from local import folder_format

_PREFIX = "mlflow-serverless-"
_LOCK = "lock"
_HOLDER_ATTEMPTS = 20
_HOLDER_PAUSE_SECONDS = 0.05


class FolderInUse(Exception):
    """Raised if another process holds the lock of the data folder, for example another local
    server. The message names that process if its id is known."""


class DataFolder:
    """A data folder that this process has locked. The kernel releases the lock when the process
    ends, also after a kill.
    """

    def __init__(self, path: Path, *, ephemeral: bool = False) -> None:
        """Creates and locks the folder.

        Raises:
            FolderInUse: another process has locked it.
            FolderTooNew: a newer version wrote it.
            OSError: it cannot be written.
        """
        self.path = path
        self.ephemeral = ephemeral
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
        if ephemeral:
            self._on_disk.mkdir(exist_ok=True, mode=0o700)
        self._lock = os.open(path / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = _holder(self._lock)
            os.close(self._lock)
            raise FolderInUse(
                f"{path} is in use by another runner (process {holder or 'unknown'}); "
                "stop it or choose another folder with --data"
            ) from None
        if not ephemeral:
            try:
                folder_format.checked(path)
            except BaseException:
                os.close(self._lock)
                raise
        os.ftruncate(self._lock, 0)
        os.pwrite(self._lock, f"{os.getpid()}\n".encode(), 0)

    @property
    def store(self) -> Path:
        """The folder of the embedded store that replaces DynamoDB, with a SQLite file for each
        table."""
        return self.path / "store"

    @property
    def engine_database(self) -> Path:
        """The file in which a DynamoDB engine kept the tables of folders that were made before this
        product had a store of its own."""
        return self.path / "dynamodb.sqlite"

    @property
    def checkpoints(self) -> Path:
        """The file with the sequence numbers up to which the stream is processed."""
        return self.path / "checkpoints.json"

    @property
    def system_tables(self) -> Path:
        """The default folder of the system tables and of files to be published in them."""
        return (self._on_disk if self.ephemeral else self.path) / "system-tables"

    @property
    def dead_letters(self) -> Path:
        """The path of the dead-letter file: one JSON object per line for each batch of stream
        records that was given up, after its last retry or because it was too old.
        """
        return self.path / "dead-letters.jsonl"

    @property
    def artifacts(self) -> Path:
        """The folder of the files that clients log. It is on disk even if the data folder is
        ephemeral and in memory."""
        return (self._on_disk if self.ephemeral else self.path) / "artifacts"

    @property
    def _on_disk(self) -> Path:
        return Path(tempfile.gettempdir()) / self.path.name

    @property
    def secrets_key(self) -> Path:
        """The path of the key that encrypts secrets. Without the key secrets can no longer be
        read."""
        return self.path / "secrets.key"

    @property
    def queues(self) -> Path:
        """The SQLite file with the messages of the local queues, which replace SQS."""
        return self.path / "queues.sqlite"

    def close(self) -> None:
        """Releases the lock of the data folder. Removes the folder if it is ephemeral."""
        if self.ephemeral:
            shutil.rmtree(self._on_disk, ignore_errors=True)
            shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._lock)


def _holder(lock: int) -> int | None:
    """Returns the id of the process that holds the lock. It writes its id into the file after
    locking it; until then the file has the id of a former holder, which has ended. Returns None if
    no id of a running process appears within a second."""
    for _ in range(_HOLDER_ATTEMPTS):
        with contextlib.suppress(ValueError, ProcessLookupError):
            holder = int(os.pread(lock, 64, 0))
            with contextlib.suppress(PermissionError):  # another user's process, which lives
                os.kill(holder, 0)
            return holder
        time.sleep(_HOLDER_PAUSE_SECONDS)
    return None


def _memory_folder() -> Path:
    shared = Path("/dev/shm")  # noqa: S108 - the folders made in it are private and have random names
    return shared if shared.is_dir() and os.access(shared, os.W_OK) else Path(tempfile.gettempdir())


def _abandoned(parent: Path) -> Iterator[DataFolder]:
    """Yields the ephemeral folders of this user whose runner was killed, each locked by this
    process."""
    for path in parent.glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError, FolderInUse):
            if path.stat().st_uid == os.getuid() and (path / _LOCK).is_file():
                yield DataFolder(path, ephemeral=True)


def ephemeral() -> DataFolder:
    """Makes an ephemeral data folder, in memory where the system allows it. First removes the
    ephemeral folders that killed processes left behind."""
    parent = _memory_folder()
    for abandoned in _abandoned(parent):
        abandoned.close()
    return DataFolder(Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent)), ephemeral=True)
