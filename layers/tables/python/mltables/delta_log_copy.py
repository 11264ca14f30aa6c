"""A copy of the Delta log of a table in S3, which a writer keeps in the scratch folder.

Delta's library reads and lists the log several times for each commit, and each request costs money.
A writer reads this copy instead: it asks S3 only whether the copy's last entry is still there and,
unless it is sure to commit, for later entries; a commit writes one object. If others have committed
since then, S3 refuses the object, because its name exists already.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, NamedTuple

from deltalake import DeltaTable

from mlcore import errors
from mlcore.artifacts.store_interface import StoredFile
from mlcore.system_tables import storage

LOG: Final = "_delta_log"
_LAST_CHECKPOINT: Final = "_last_checkpoint"
_ENTRY: Final = re.compile(r"(\d{20})\.(json|checkpoint\.parquet)")
_FETCHING: Final = 8


class _End(NamedTuple):
    """The last entry of the copy: its key and ETag. ``is_last`` is false if S3 has later ones."""

    key: str
    etag: str
    is_last: bool


class LogCopy:
    """The local copy of one table's Delta log. One process uses it at a time."""

    def __init__(self, folder: Path, table: str) -> None:
        """
        Args:
            folder: the folder of the copy, which no other table and no other bucket uses.
        """
        self._folder, self._log, self._end = folder, folder / LOG, folder / "end.json"
        self._key = log_key(table)

    def open(self, *, may_be_behind: bool) -> DeltaTable | None:
        """Opens the Delta table by its local copy of the log; None if the table does not exist. If
        the table was deleted and created again, the log is copied anew.

        Args:
            may_be_behind: whether entries of other writers may be missing. Looking for them costs a
                request, which a caller that always commits can save: its commit fails if there are
                any.
        """
        end = self._read_end()
        if end is None or not self._has(end):
            if not self._copy():
                return None
        elif not (end.is_last and may_be_behind):
            self._add(storage.store().below(self._key, end.key))
        self._drop_old()
        return DeltaTable(str(self._folder))

    def commit(self, version: int, entry: bytes) -> bool:
        """Writes the log entry of a table version to the Delta log in S3 and to its local copy.
        Returns False if the log in S3 has an entry of this version already."""
        key = entry_key(self._key, version)
        etag = storage.store().create(key, entry)
        if etag is None:
            self.expect_more()
            return False
        self._write(Path(key).name, entry)
        self._write_end(_End(key, etag, is_last=True))
        return True

    def expect_more(self) -> None:
        """Records that the Delta log in S3 has entries that the copy lacks."""
        if end := self._read_end():
            self._write_end(end._replace(is_last=False))

    def checkpoint(self, delta: DeltaTable) -> None:
        """Writes a checkpoint of the version that the open table has to the Delta log in S3 and to
        the copy."""
        delta.create_checkpoint()
        for name in (f"{delta.version():020}.checkpoint.parquet", _LAST_CHECKPOINT):
            storage.store().put(f"{self._key}/{name}", (self._log / name).read_bytes())

    def _has(self, end: _End) -> bool:
        """Whether S3 still has the last entry of the copy. It has not if the table was deleted and
        created again."""
        stored = storage.store().open(end.key, 0)
        return stored is not None and stored.etag == end.etag

    def _copy(self) -> bool:
        """Copies the log from its last checkpoint on. Returns False if the table has no log."""
        shutil.rmtree(self._folder, ignore_errors=True)
        self._log.mkdir(parents=True)
        store, after = storage.store(), ""
        if checkpoint := store.get(f"{self._key}/{_LAST_CHECKPOINT}"):
            after = f"{self._key}/{json.loads(checkpoint)['version']:020}"
            self._write(_LAST_CHECKPOINT, checkpoint)
        return self._add(store.below(self._key, after))

    def _add(self, files: Iterable[StoredFile]) -> bool:
        """Copies these objects of the log. Returns False if there are none. Raises
        ResourceDoesNotExist if one has been deleted since the log was listed."""
        entries = [file for file in files if _ENTRY.fullmatch(Path(file.key).name)]
        with ThreadPoolExecutor(_FETCHING) as pool:
            contents = list(pool.map(lambda file: storage.store().get(file.key), entries))
        for file, content in zip(entries, contents, strict=True):
            if content is None:
                raise errors.ResourceDoesNotExist(f"No such file: {file.key}")
            self._write(Path(file.key).name, content)
        if not entries:
            return False
        last = entries[-1]
        self._write_end(_End(last.key, last.etag, is_last=True))
        return True

    def _drop_old(self) -> None:
        """Deletes the copied entries before the last checkpoint."""
        versions = {
            path: (int(match[1]), match[2])
            for path in self._log.iterdir()
            if (match := _ENTRY.fullmatch(path.name))
        }
        last = max((version for version, kind in versions.values() if kind != "json"), default=0)
        for path, (version, _) in versions.items():
            if version < last:
                path.unlink()

    def _read_end(self) -> _End | None:
        try:
            return _End(*json.loads(self._end.read_text()))
        except FileNotFoundError:
            return None

    def _write_end(self, end: _End) -> None:
        _replace(self._end, json.dumps(end).encode())

    def _write(self, name: str, content: bytes) -> None:
        _replace(self._log / name, content)


def log_key(table: str) -> str:
    """Returns the key prefix of a table's Delta log in ``storage.store()``."""
    return f"{storage.table_key(table)}/{LOG}"


def entry_key(log: str, version: int) -> str:
    """Returns the key of the entry for a version in the Delta log with this key prefix."""
    return f"{log}/{version:020}.json"


def _replace(path: Path, content: bytes) -> None:
    """Writes a file atomically: a killed process leaves the old file or the new one."""
    new = path.with_name(f".{path.name}.new")
    new.write_bytes(content)
    new.replace(path)
