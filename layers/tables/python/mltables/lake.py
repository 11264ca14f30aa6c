"""The place of the tables, and their files as this machine can read them."""

from __future__ import annotations

import fcntl
import itertools
import os
import shutil
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from deltalake import DeltaTable

from mlcore.system_tables import location

FETCHING: Final = 8
SCRATCH: Final = "SYSTEM_TABLES_SCRATCH"
"""Environment: a folder for copies of files, and for what does not fit into memory."""


class NoRoom(RuntimeError):
    """The scratch folder's disk has no room for the files that are needed; the message may be shown
    to whoever asks."""


class Lake:
    """The tables of this deployment, and a part of the scratch folder that nobody else uses
    meanwhile: ``scratch`` for temporary files, and copies of the files of tables in S3.

    Files never change once they are written, so copies are kept for the next process, but only of
    files that the table still has. A process that ends, however it ends, gives its part back; the
    next one removes the temporary files that it left.
    """

    def __init__(self) -> None:
        self._lock, part = _claimed(_base())
        self._copies = part / "files"
        self.scratch = part / "temporary"
        shutil.rmtree(self.scratch, ignore_errors=True)
        self.scratch.mkdir(parents=True)
        self.options = _options()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Gives the part of the scratch folder back. A process that ends does so by itself."""
        os.close(self._lock)

    def uri(self, table: str) -> str:
        return location.table_uri(table)

    def paths(self, table: DeltaTable, files: Sequence[str]) -> list[str]:
        """Where files of a table can be read. Drops the copies of files that this version of the
        table does not have.

        Args:
            files: as the table's log names them.

        Raises:
            NoRoom: the disk cannot take their copies.
        """
        if not _is_remote(table):
            return [
                f"{table.table_uri.removeprefix('file://').rstrip('/')}/{file}" for file in files
            ]
        sizes = self.forget(table)
        kept = self._copies_of(table)
        missing = [file for file in files if not (kept / file).is_file()]
        self._check_room(sum(sizes[file] for file in missing))
        key = kept.relative_to(self._copies)
        with ThreadPoolExecutor(FETCHING) as pool:
            list(pool.map(lambda file: self._fetch(f"{key}/{file}", kept / file), missing))
        return [str(kept / file) for file in files]

    def forget(self, table: DeltaTable) -> dict[str, int]:
        """Removes the copies of files that this version of a table does not have; returns the sizes
        of those that it has, by their names in the log."""
        if not _is_remote(table):
            return {}
        actions = table.get_add_actions(flatten=True)
        names, sizes = (actions.column(name).to_pylist() for name in ("path", "size_bytes"))
        kept = self._copies_of(table)
        live = {str(kept / name) for name in names}
        for path in kept.rglob("*.parquet"):
            if str(path) not in live:
                path.unlink(missing_ok=True)
        return dict(zip(names, sizes, strict=True))

    def store(self, table: str, name: str, made: Path) -> None:
        """Puts a file, which moves, into a table's folder; it belongs to the table once it is
        committed.

        Args:
            name: as the table's log will name it.
        """
        key = f"{location.table_key(table)}/{name}"
        location.store().put(key, made.read_bytes())
        if location.table_uri(table).startswith("s3://"):
            copy = self._copies / key
            copy.parent.mkdir(parents=True, exist_ok=True)
            made.replace(copy)
        else:
            made.unlink()

    def _copies_of(self, table: DeltaTable) -> Path:
        """The folder of a table's copies, which is named as the table's is in its bucket."""
        key = table.table_uri.removeprefix("s3://").rstrip("/").partition("/")[2]
        return self._copies / key

    def _check_room(self, wanted: int) -> None:
        free = shutil.disk_usage(self.scratch).free
        if wanted > free:
            raise NoRoom(
                f"Files of {wanted >> 20} MB are needed, and there is room for {free >> 20} MB: ask "
                f"Athena, or name a folder on a larger disk in {SCRATCH}."
            )

    def _fetch(self, key: str, target: Path) -> None:
        from mlcore.artifacts.s3 import Bucket  # noqa: PLC0415 -- 120 ms that a folder does not need

        store = location.store()
        if not isinstance(store, Bucket):
            raise TypeError(f"{store!r} has no files to fetch")
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=self.scratch)
        try:
            with os.fdopen(handle, "wb") as file:
                store.fetch(key, file)
            Path(name).replace(target)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise


def _base() -> Path:
    """The scratch folder: this user's own, for other users of the machine could put files there.

    Raises:
        PermissionError: somebody else has made it.
    """
    named = os.environ.get(SCRATCH)
    base = Path(named or Path(tempfile.gettempdir()) / f"system-tables-{os.getuid()}")
    base.mkdir(parents=True, exist_ok=True, mode=0o700)
    if not named and (base.is_symlink() or base.stat().st_uid != os.getuid()):
        raise PermissionError(f"{base} belongs to another user: remove it, or set {SCRATCH}")
    return base


def _claimed(base: Path) -> tuple[int, Path]:
    """A part of the scratch folder that nobody has locked, the first if possible, for it has most
    copies; and the lock, which is held until it is closed."""
    for number in itertools.count():
        part = base / f"part-{number}"
        part.mkdir(exist_ok=True, mode=0o700)
        try:
            lock = os.open(part / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except PermissionError:  # another user's, in a folder that both name
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
        else:
            return lock, part
    raise AssertionError


def _is_remote(table: DeltaTable) -> bool:
    return table.table_uri.startswith("s3://")


def _options() -> dict[str, str] | None:
    """What delta-rs needs to know of an endpoint of one's own; all else is in the environment."""
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    if not endpoint or os.environ.get(location.FOLDER):
        return None
    return {"AWS_ENDPOINT_URL": endpoint, "AWS_ALLOW_HTTP": "true"}
