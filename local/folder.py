"""The data folder: where it lies, who holds it, and its removal when it was to be thrown away."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

_PREFIX = "mlflow-serverless-"
_LOCK = "lock"


class FolderInUse(Exception):
    """Another runner holds the folder; the message names it."""


class DataFolder:
    """A locked data folder. The lock dies with the process, however it ends."""

    def __init__(self, path: Path, *, ephemeral: bool = False) -> None:
        """Creates and locks the folder.

        Raises:
            FolderInUse: another process has locked it.
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
            holder = os.pread(self._lock, 64, 0).decode("ascii", "replace").strip()
            os.close(self._lock)
            raise FolderInUse(
                f"{path} is in use by another runner (process {holder or 'unknown'}); "
                "stop it or choose another folder with --data"
            ) from None
        os.ftruncate(self._lock, 0)
        os.pwrite(self._lock, f"{os.getpid()}\n".encode(), 0)

    @property
    def database(self) -> Path:
        """The engine's file."""
        return self.path / "dynamodb.sqlite"

    @property
    def engine_record(self) -> Path:
        """Which engine process was started for this folder."""
        return self.path / "engine.json"

    @property
    def engine_log(self) -> Path:
        """What the engine prints."""
        return self.path / "engine.log"

    @property
    def engine_socket(self) -> Path:
        """Where the engine is reached: in a folder that only this user may enter, on a file system
        that has sockets, with a name as short as a socket's must be.

        Raises:
            OSError: such a folder cannot be made.
        """
        return (self.path if self.ephemeral else self._private) / "engine.sock"

    @property
    def _private(self) -> Path:
        name = hashlib.sha256(os.fsencode(self.path)).hexdigest()[:16]
        given = os.environ.get("XDG_RUNTIME_DIR", "")
        parent = given if given and os.access(given, os.W_OK) else "/tmp"  # noqa: S108 - see below
        private = Path(parent) / f"{_PREFIX}{os.getuid()}-{name}"
        private.mkdir(mode=0o700, exist_ok=True)
        about = private.lstat()
        if about.st_uid != os.getuid() or about.st_mode != stat.S_IFDIR | 0o700:
            raise PermissionError(errno.EPERM, "somebody else may enter this folder", str(private))
        return private

    @property
    def checkpoints(self) -> Path:
        """How far the stream has been read."""
        return self.path / "checkpoints.json"

    @property
    def system_tables(self) -> Path:
        """The system tables, and what is to be published in them."""
        return (self._on_disk if self.ephemeral else self.path) / "system-tables"

    @property
    def dead_letters(self) -> Path:
        """Batches of the stream that were given up, one JSON object a line."""
        return self.path / "dead-letters.jsonl"

    @property
    def artifacts(self) -> Path:
        """The files that clients log; on disk even when the rest is thrown away from memory."""
        return (self._on_disk if self.ephemeral else self.path) / "artifacts"

    @property
    def _on_disk(self) -> Path:
        return Path(tempfile.gettempdir()) / self.path.name

    @property
    def secrets_key(self) -> Path:
        """What secrets are sealed with; without it they are lost."""
        return self.path / "secrets.key"

    @property
    def queues(self) -> Path:
        """Messages that wait for a function."""
        return self.path / "queues.sqlite"

    def close(self) -> None:
        """Releases the folder, and removes it if it was to be thrown away."""
        if self.ephemeral:
            shutil.rmtree(self._on_disk, ignore_errors=True)
            shutil.rmtree(self.path, ignore_errors=True)
        else:
            with contextlib.suppress(OSError):
                self._private.rmdir()
        os.close(self._lock)


def _memory_folder() -> Path:
    shared = Path("/dev/shm")  # noqa: S108 - the folders made in it are private and have random names
    return shared if shared.is_dir() and os.access(shared, os.W_OK) else Path(tempfile.gettempdir())


def _abandoned(parent: Path) -> Iterator[DataFolder]:
    """Ephemeral folders of this user whose runner was killed, each locked by us."""
    for path in parent.glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError, FolderInUse):
            if path.stat().st_uid == os.getuid() and (path / _LOCK).is_file():
                yield DataFolder(path, ephemeral=True)


def ephemeral(stop_engine: Callable[[DataFolder], object]) -> DataFolder:
    """A new folder in memory.

    Removes what killed runners left, after ``stop_engine`` ended their engines.
    """
    parent = _memory_folder()
    for left in _abandoned(parent):
        stop_engine(left)
        left.close()
    return DataFolder(Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent)), ephemeral=True)
