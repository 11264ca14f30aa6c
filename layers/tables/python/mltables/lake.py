"""The place of the tables, and their files as this machine can read them."""

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

from mlcore.system_tables import location
from mltables import scratch
from mltables.copies import Copies, File
from mltables.scratch import SCRATCH, Part

FETCHING: Final = 8


class NoRoom(RuntimeError):
    """The scratch folder's disk has no room for the files that are needed; the message may be shown
    to whoever asks."""


class Lake:
    """The tables of this deployment.

    Files never change once they are written. Copies of those in S3 are kept in a part of the
    scratch folder for the next process, but only of files that a table still has.
    """

    def __init__(self) -> None:
        self.scratch = scratch.base()
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

    @functools.cached_property
    def _part(self) -> Part:
        return Part(self.scratch)

    @property
    def temporary(self) -> Path:
        """A folder of this lake alone. What a killed process leaves in it the next one removes."""
        return self._part.temporary

    def close(self) -> None:
        """Leaves copies and the temporary folder to others; at its end a process does so, too."""
        if "_part" in self.__dict__:
            self._part.close()
            del self._part

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
        key = kept.relative_to(self._part.files)
        with ThreadPoolExecutor(FETCHING) as pool:
            list(pool.map(lambda file: self._fetch(f"{key}/{file}", kept / file), missing))
        return [str(kept / file) for file in files]

    def columns(
        self,
        table: DeltaTable,
        files: Sequence[tuple[str, int]],
        columns: Collection[str],
        folder: Path,
    ) -> list[str]:
        """Where columns of files can be read: the files themselves, or links in a folder to copies
        of these columns, which all processes of this user share.

        Args:
            files: names and sizes, as the table's log has them.

        Raises:
            TooMuch: there is no room for the copies.
        """
        if not _is_remote(table):
            return self.paths(table, [name for name, _ in files])
        key = table.table_uri.removeprefix("s3://").rstrip("/").partition("/")[2]
        copies = Copies(self.scratch / f"columns-{os.getuid()}", _read)
        return copies.linked([File(f"{key}/{name}", size) for name, size in files], columns, folder)

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
            copy = self._part.files / key
            copy.parent.mkdir(parents=True, exist_ok=True)
            made.replace(copy)
        else:
            made.unlink()

    def _copies_of(self, table: DeltaTable) -> Path:
        """The folder of a table's copies, which is named as the table's is in its bucket."""
        key = table.table_uri.removeprefix("s3://").rstrip("/").partition("/")[2]
        return self._part.files / key

    def _check_room(self, wanted: int) -> None:
        free = shutil.disk_usage(self.temporary).free
        if wanted > free:
            raise NoRoom(
                f"Files of {wanted >> 20} MB are needed, and there is room for {free >> 20} MB: "
                f"ask Athena, or name a folder on a larger disk in {SCRATCH}."
            )

    def _fetch(self, key: str, target: Path) -> None:
        from mlcore.artifacts.s3 import Bucket  # noqa: PLC0415 -- 120 ms that a folder does not need

        store = location.store()
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


def _is_remote(table: DeltaTable) -> bool:
    return table.table_uri.startswith("s3://")


def _read(key: str, first: int, size: int) -> bytes:
    found = location.store().read(key, first, size)
    if found is None:
        raise FileNotFoundError(key)
    return found


def _options() -> dict[str, str] | None:
    """What delta-rs needs to know of an endpoint of one's own; all else is in the environment."""
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    if not endpoint or os.environ.get(location.FOLDER):
        return None
    return {"AWS_ENDPOINT_URL": endpoint, "AWS_ALLOW_HTTP": "true"}
