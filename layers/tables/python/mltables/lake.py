"""Reads and stores the files of the system tables, in S3 or in a folder."""

from __future__ import annotations

import functools
import os
import shutil
import tempfile
from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from mlcore.system_tables import storage
from mltables import scratch_folder
from mltables.column_cache import ColumnCache, File
from mltables.delta_log_copy import LogCopy, entry_key, log_key
from mltables.scratch_folder import SCRATCH, LockedFolder

FETCHING: Final = 8
IDS_BYTES: Final = 256 << 20
"""Most bytes of columns with ids that :meth:`Lake.ids` keeps."""
_IDS_LEAVE_FREE: Final = 16 << 20
"""Bytes of the disk that these columns leave free."""


class NoRoom(RuntimeError):
    """Raised if the disk of this machine's scratch folder has no space for the needed files. The
    message may be shown to callers."""


class Lake:
    """The storage of this deployment's system tables, in S3 or in a folder.

    Files never change once they are written. Copies of S3 files stay in a part of the scratch
    folder for the next process, as long as a table still has the file.
    """

    def __init__(self) -> None:
        self.scratch = scratch_folder.locate()
        self.options = _options()
        self._is_remote = not os.environ.get(storage.FOLDER)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @functools.cached_property
    def _part(self) -> LockedFolder:
        return LockedFolder(self.scratch)

    @property
    def temporary(self) -> Path:
        """Returns a folder that only this object uses. If this process is killed, the next process
        removes the folder."""
        return self._part.temporary

    def close(self) -> None:
        """Unlocks the part of this machine's scratch folder that this :class:`Lake` uses. The end
        of the process does the same."""
        if "_part" in self.__dict__:
            self._part.close()
            del self._part

    def uri(self, table: str) -> str:
        return storage.table_uri(table)

    def open(self, table: str, *, may_be_behind: bool = False) -> DeltaTable | None:
        """Opens a system table for a writer; None if the table does not exist. A table in S3 is
        opened with a local copy of its Delta log.

        Args:
            may_be_behind: whether the opened version may lack commits of other writers. A commit to
                such a version fails. So this is only for callers that always commit, even if they
                find nothing to change.
        """
        if self._is_remote:
            return self._log(table).open(may_be_behind=may_be_behind)
        try:
            return DeltaTable(self.uri(table))
        except TableNotFoundError:
            return None

    def commit(self, table: str, version: int, entry: bytes) -> bool:
        """Writes the entry of a version to a table's Delta log. Returns False if the log has an
        entry of this version already."""
        if self._is_remote:
            return self._log(table).commit(version, entry)
        return storage.store().create(entry_key(log_key(table), version), entry) is not None

    def checkpoint(self, table: str, delta: DeltaTable) -> None:
        """Writes a checkpoint of the Delta log of a table that :meth:`open` has opened."""
        if self._is_remote:
            self._log(table).checkpoint(delta)
        else:
            delta.create_checkpoint()

    def expect_commits(self, table: str) -> None:
        """Records that other writers may have committed to a system table, so that the next
        :meth:`open` of the table looks for their commits in S3."""
        if self._is_remote:
            self._log(table).expect_more()

    def _log(self, table: str) -> LogCopy:
        folder = self._part.logs / self.uri(table).removeprefix("s3://")
        return LogCopy(folder, table)

    def paths(self, name: str, table: DeltaTable, files: Sequence[str]) -> list[str]:
        """Returns local paths of a system table's files, after fetching those of which there is no
        local copy. Deletes copies of files that this version of the table does not have.

        Args:
            name: the name of the system table.
            files: names of the wanted files in the table's Delta log.

        Raises:
            NoRoom: the disk has no space for the copies.
        """
        if not self._is_remote:
            folder = self.uri(name)  # resolves links: once, not for each of hundreds of files
            return [f"{folder}/{file}" for file in files]
        sizes = self.forget(name, table)
        kept = self._copies_of(name)
        missing = [file for file in files if not (kept / file).is_file()]
        self._check_room(sum(sizes[file] for file in missing))
        key = kept.relative_to(self._part.files)
        with ThreadPoolExecutor(FETCHING) as pool:
            list(pool.map(lambda file: self._fetch(f"{key}/{file}", kept / file), missing))
        return [str(kept / file) for file in files]

    def columns(
        self,
        name: str,
        table: DeltaTable,
        files: Sequence[tuple[str, int]],
        columns: Collection[str],
        folder: Path,
    ) -> list[str]:
        """Returns local paths from which these columns of files can be read: the files themselves,
        or links in ``folder`` to copies in the column cache, which all processes of this user
        share.

        Args:
            name: the name of the table.
            files: names and sizes in the table's log.

        Raises:
            NoRoomForColumns: the disk has no space for the columns.
        """
        if not self._is_remote:
            return self.paths(name, table, [file for file, _ in files])
        key = storage.table_key(name)
        copies = ColumnCache(self.scratch / f"columns-{os.getuid()}", _read)
        return copies.linked([File(f"{key}/{file}", size) for file, size in files], columns, folder)

    def ids(
        self, name: str, files: Sequence[tuple[str, int]], columns: Collection[str], folder: Path
    ) -> list[str]:
        """Returns local paths from which a writer can read the columns with ids of these files.
        Uses local copies of whole files if they exist. Otherwise fetches the columns, and keeps
        them until :meth:`free_ids` or the end of this object.

        Raises:
            NoRoomForColumns: the disk has no space for the columns.
        """
        if not self._is_remote:
            table = self.uri(name)
            return [f"{table}/{file}" for file, _ in files]
        kept, key = self._copies_of(name), storage.table_key(name)
        missing = [(file, size) for file, size in files if not (kept / file).is_file()]
        ids_folder = self._ids_folder

        def room() -> int:
            taken = sum(file.stat().st_blocks * 512 for file in ids_folder.rglob("*.parquet"))
            free = shutil.disk_usage(ids_folder).free - _IDS_LEAVE_FREE
            return min(free, IDS_BYTES - taken)

        wanted = [File(f"{key}/{file}", size) for file, size in missing]
        links = ColumnCache(ids_folder, _read, room).linked(wanted, columns, folder)
        fetched = dict(zip((file for file, _ in missing), links, strict=True))
        return [fetched.get(file, str(kept / file)) for file, _ in files]

    @property
    def _ids_folder(self) -> Path:
        return self.temporary / "ids"

    def free_ids(self) -> None:
        """Deletes the local copies of the columns that :meth:`ids` has fetched from S3. They are
        fetched again when they are needed."""
        shutil.rmtree(self._ids_folder, ignore_errors=True)

    @staticmethod
    def names(table: DeltaTable) -> list[str]:
        """Returns the names of a system table's files in the opened version, as in Delta's log."""
        return list(table.get_add_actions(flatten=True).column("path").to_pylist())

    def forget(self, name: str, table: DeltaTable) -> dict[str, int]:
        """Deletes the local copies of files that are not part of this version of a table. Returns
        the sizes of the files of this version, by their names in the log; empty for tables in a
        folder, which have no copies."""
        if not self._is_remote:
            return {}
        actions = table.get_add_actions(flatten=True)
        names, sizes = (actions.column(name).to_pylist() for name in ("path", "size_bytes"))
        kept = self._copies_of(name)
        live = {str(kept / file) for file in names}
        for path in kept.rglob("*.parquet"):
            if str(path) not in live:
                path.unlink(missing_ok=True)
        return dict(zip(names, sizes, strict=True))

    def store(self, table: str, name: str, made: Path) -> None:
        """Moves a local file into a system table's folder in S3 (on a laptop, on the disk). The
        file becomes part of the table with the commit that names it.

        Args:
            name: the file's name in the commit.
            made: the local file.
        """
        key = f"{storage.table_key(table)}/{name}"
        storage.store().put(key, made.read_bytes())
        if self._is_remote:
            copy = self._part.files / key
            copy.parent.mkdir(parents=True, exist_ok=True)
            made.replace(copy)
        else:
            made.unlink()

    def _copies_of(self, table: str) -> Path:
        """Returns the folder with the copies of a table's files. Its path is that of the table in
        its bucket."""
        return self._part.files / storage.table_key(table)

    def _check_room(self, wanted: int) -> None:
        free = shutil.disk_usage(self.temporary).free
        if wanted > free:
            self.free_ids()
            free = shutil.disk_usage(self.temporary).free
        if wanted > free:
            raise NoRoom(
                f"Files of {wanted >> 20} MB are needed, and there is room for {free >> 20} MB: "
                f"ask Athena, or name a folder on a larger disk in {SCRATCH}."
            )

    def _fetch(self, key: str, target: Path) -> None:
        from mlcore.artifacts.s3_store import Bucket  # noqa: PLC0415 -- takes 120 ms; needed for S3 only

        store = storage.store()
        if not isinstance(store, Bucket):
            raise TypeError(f"{store!r} has no files to fetch")
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=self.temporary)
        try:
            with os.fdopen(handle, "wb") as file:
                store.fetch(key, file)
            Path(name).replace(target)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise


def _read(key: str, first: int, size: int) -> bytes:
    data = storage.store().read(key, first, size)
    if data is None:
        raise FileNotFoundError(key)
    return data


def _options() -> dict[str, str] | None:
    """Returns delta-rs's options for a custom S3 endpoint; None if the environment names none.
    delta-rs reads all other settings from the environment."""
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    if not endpoint or os.environ.get(storage.FOLDER):
        return None
    return {"AWS_ENDPOINT_URL": endpoint, "AWS_ALLOW_HTTP": "true"}
