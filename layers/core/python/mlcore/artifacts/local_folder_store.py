"""The artifact store in a local folder, with the same behaviour as the store in S3.

``files`` holds the files under their keys, ``uploads`` unfinished uploads, ``secret`` the key that
signs URLs. Symbolic links are not followed.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import logging
import os
import secrets
import shutil
import stat
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from mlcore import errors
from mlcore.artifacts.folder_urls import Signer
from mlcore.artifacts.paths import is_kept, join
from mlcore.artifacts.store_interface import DirectoryEntry, OpenedFile, StoredFile, UploadedPart

UPLOAD_DAYS: Final = 7
"""Days after which unfinished uploads are deleted."""

_FULL: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_READ_ONLY: Final = (errno.EROFS, errno.EACCES, errno.EPERM)
_logger = logging.getLogger("mlcore.artifacts")

_COMPLETED: Final = "completed"
_KEY: Final = "key"
_COPY_BYTES: Final = 1 << 20
_ATTEMPTS: Final = 5


@contextlib.contextmanager
def _disk_errors_translated() -> Iterator[None]:
    """Translates errors of the disk inside the ``with`` block: logs an OSError and raises
    InsufficientStorage or InternalError instead."""
    try:
        yield
    except OSError as error:
        _logger.error("a file cannot be written: %s", error)
        if error.errno in _FULL:
            raise errors.InsufficientStorage("There is no space left for files.") from error
        if error.errno in _READ_ONLY:
            raise errors.InsufficientStorage("The folder of the files is read-only.") from error
        raise errors.InternalError("The file could not be written.") from error


class Incoming:
    """An artifact file that is written in pieces. :meth:`commit` makes it visible as a whole."""

    def __init__(self, folder: Folder, key: str, target: Path) -> None:
        self._folder, self._key, self._target = folder, key, target
        self._path = folder.uploads / f"incoming-{secrets.token_hex(8)}"
        with _disk_errors_translated():
            self._file = self._path.open("xb")
        self._sum = hashlib.md5(usedforsecurity=False)

    def write(self, data: bytes) -> None:
        self._sum.update(data)
        with _disk_errors_translated():
            self._file.write(data)

    def commit(self) -> str:
        """Makes the written file visible under its key, in place of an older one. Returns the MD5
        digest of its content in quotation marks, with which the server answers an upload
        (``ETag``)."""
        with _disk_errors_translated():
            self._file.close()
            self._folder.publish(self._path, self._target, self._key)
        return f'"{self._sum.hexdigest()}"'

    def commit_new(self) -> str | None:
        """Makes the file visible under its key if the key is free, and returns the file's ETag;
        None if the key has a file already. The caller calls :meth:`discard` afterwards in both
        cases."""
        with _disk_errors_translated():
            self._file.close()
            status = self._path.stat()
            try:
                self._folder.publish(self._path, self._target, self._key, is_new=True)
            except FileExistsError:
                return None
        return _etag(status)

    def discard(self) -> None:
        with contextlib.suppress(OSError):  # flushing its buffer may fail when the disk is full
            self._file.close()
        self._path.unlink(missing_ok=True)


class Folder:
    """A file store in a local folder (in S3's place), which is created if it is missing."""

    def __init__(self, path: str | Path) -> None:
        root = Path(path).resolve()
        self.files, self.uploads = root / "files", root / "uploads"
        for folder in (self.files, self.uploads):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.signer = Signer(_secret(root / "secret"))

    # ------------------------------------------------------------------ files

    def put(self, key: str, data: bytes) -> None:
        incoming = self.open_for_writing(key)
        try:
            incoming.write(data)
            incoming.commit()
        except BaseException:
            incoming.discard()
            raise

    def create(self, key: str, data: bytes) -> str | None:
        incoming = self.open_for_writing(key)
        try:
            incoming.write(data)
            return incoming.commit_new()
        finally:
            incoming.discard()

    def get(self, key: str) -> bytes | None:
        opened = self.open(key, 1 << 62)
        return opened.data if opened else None

    def read(self, key: str, begin: int, length: int) -> bytes | None:
        path = self.find(key)
        if path is None:
            return None
        with contextlib.suppress(FileNotFoundError), path.open("rb") as file:
            file.seek(begin)
            return file.read(length)
        return None

    def open(self, key: str, most: int) -> OpenedFile | None:
        path = self.find(key)
        if path is None:
            return None
        try:
            with path.open("rb") as file:
                status = os.fstat(file.fileno())
                data = file.read() if status.st_size <= most != 0 else None
        except FileNotFoundError:
            return None
        return OpenedFile(status.st_size, _etag(status), int(status.st_mtime), data)

    def list(self, key: str) -> list[DirectoryEntry]:
        entries = []
        with (
            contextlib.suppress(FileNotFoundError, NotADirectoryError),
            os.scandir(self._path(key)) as entries_in_folder,
        ):
            for entry_ in entries_in_folder:
                if entry_.is_dir(follow_symlinks=False):
                    entries.append(DirectoryEntry(entry_.name, None))
                elif entry_.is_file(follow_symlinks=False):
                    entries.append(
                        DirectoryEntry(entry_.name, entry_.stat(follow_symlinks=False).st_size)
                    )
        return sorted(entries, key=lambda entry: entry.name)

    def below(self, key: str, after: str = "") -> Iterator[StoredFile]:
        entries = []
        for parent, _, names in os.walk(self._path(key)):
            folder_key = "/".join(Path(parent).relative_to(self.files).parts)
            entries += [(join(folder_key, name), Path(parent) / name) for name in names]
        for file_key, path in sorted(entries):
            with contextlib.suppress(FileNotFoundError):
                status = path.lstat()
                if file_key > after and stat.S_ISREG(status.st_mode):
                    yield StoredFile(file_key, status.st_size, int(status.st_mtime), _etag(status))

    def is_directory(self, key: str) -> bool:
        return self._path(key).is_dir()

    def delete(self, key: str) -> None:
        path = self.find(key)
        if path is not None:
            path.unlink(missing_ok=True)
            self._drop_empty(path.parent)

    def delete_tree(self, key: str, keep: Sequence[str] = ()) -> None:
        path = self._path(key)
        if not path.is_dir():
            if not is_kept(key, keep):
                self.delete(key)
            return
        if keep:
            self.delete_older(key, float("inf"), keep)
            return
        for entry in sorted(path.iterdir()):
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry, ignore_errors=True)
            else:
                entry.unlink(missing_ok=True)
        self._drop_empty(path)

    def delete_older(self, key: str, before: float, keep: Sequence[str] = ()) -> None:
        for parent, _, names in os.walk(self._path(key), topdown=False):
            folder = Path(parent)
            folder_key = "/".join(folder.relative_to(self.files).parts)
            for name in names:
                if is_kept(join(folder_key, name), keep):
                    continue
                with contextlib.suppress(FileNotFoundError):
                    if (folder / name).lstat().st_mtime <= before:
                        (folder / name).unlink()
            self._drop_empty(folder)

    def find(self, key: str) -> Path | None:
        """Returns the path on disk of the artifact with this key; None if it does not exist."""
        path = self._path(key)
        return path if path.is_file() else None

    def open_for_writing(self, key: str) -> Incoming:
        """Starts a streamed write into the local folder. Returns the writer of its chunks."""
        return Incoming(self, key, self._path(key))

    def publish(self, source: Path, target: Path, key: str, *, is_new: bool = False) -> None:
        """Makes a complete file visible under its key.

        Args:
            is_new: whether the key must be free. If it has a file, the file stays and
                FileExistsError is raised.

        Raises:
            InvalidParameterValue: the key is a directory, or lies below a file.
        """
        for attempt in range(_ATTEMPTS):
            try:
                target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
                if is_new:
                    target.hardlink_to(source)
                else:
                    source.replace(target)
            except FileNotFoundError:
                # A concurrent deletion of its last file has removed the directory.
                if attempt + 1 == _ATTEMPTS:
                    raise
            except (IsADirectoryError, NotADirectoryError, FileExistsError):
                if is_new and target.is_file():
                    raise
                raise errors.InvalidParameterValue(
                    f"'{key}' cannot be written: it is a directory, or lies below a file."
                ) from None
            else:
                return

    # ------------------------------------------------------------------ URLs

    def download_url(
        self, key: str, *, seconds: int, content_type: str, disposition: str, origin: str
    ) -> str:
        return self.signer.url(
            "GET", key, seconds, origin, type=content_type, disposition=disposition
        )

    def upload_url(self, key: str, *, seconds: int, content_type: str | None, origin: str) -> str:
        return self.signer.url("PUT", key, seconds, origin)

    def part_url(self, key: str, upload_id: str, number: int, *, seconds: int, origin: str) -> str:
        return self.signer.url("PUT", key, seconds, origin, upload=upload_id, part=str(number))

    # ------------------------------------------------------------------ uploads in parts

    def create_upload(self, key: str) -> str:
        self.drop_abandoned()
        upload_id = secrets.token_hex(16)
        self._path(key)
        upload = self.uploads / upload_id
        try:
            with _disk_errors_translated():
                upload.mkdir(mode=0o700)
                (upload / _KEY).write_text(key)
        except BaseException:
            shutil.rmtree(upload, ignore_errors=True)
            raise
        return upload_id

    def open_part_for_writing(self, key: str, upload_id: str, number: int) -> Incoming:
        """Starts a streamed write of one part of a multipart upload. Returns the writer of its
        chunks."""
        return Incoming(self, key, self._upload(key, upload_id) / str(number))

    def complete_upload(self, key: str, upload_id: str, parts: Sequence[UploadedPart]) -> None:
        upload = self._upload(key, upload_id)
        completed = upload / _COMPLETED
        if completed.exists():
            return
        incoming = self.open_for_writing(key)
        try:
            digests = [_copy(upload / str(part.number), incoming) for part in parts]
            if digests == [part.etag.strip('"') for part in parts]:
                incoming.commit()
            elif not completed.exists():  # else an earlier request has just removed the parts
                raise errors.InvalidParameterValue(
                    "A part is missing, or was uploaded with another ETag."
                )
        finally:
            incoming.discard()
        with _disk_errors_translated(), contextlib.suppress(FileNotFoundError):  # aborted meanwhile
            completed.touch()
            for leftover in upload.glob("[0-9]*"):
                leftover.unlink(missing_ok=True)

    def abort_upload(self, key: str, upload_id: str) -> None:
        with contextlib.suppress(errors.ResourceDoesNotExist):
            shutil.rmtree(self._upload(key, upload_id), ignore_errors=True)

    def drop_abandoned(self) -> int:
        """Deletes multipart uploads (finished ones, too) and unfinished files that were not changed
        for UPLOAD_DAYS; returns how many."""
        before = time.time() - UPLOAD_DAYS * 86_400
        abandoned = [path for path in self.uploads.iterdir() if _modified_time(path) < before]
        for path in abandoned:
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)
        return len(abandoned)

    # ------------------------------------------------------------------ paths

    def _path(self, key: str) -> Path:
        """Returns the file's path on disk. Raises InvalidParameterValue if the key leads out of the
        folder, has an empty segment, or leads through a symbolic link."""
        segments = key.split("/") if key else []
        path = self.files.joinpath(*segments)
        try:
            is_inside = os.path.realpath(path) == str(path)
        except (OSError, ValueError):
            is_inside = False
        if not is_inside or "" in segments:
            raise errors.InvalidParameterValue("Invalid path")
        return path

    def _upload(self, key: str, upload_id: str) -> Path:
        path = self.uploads / upload_id
        with contextlib.suppress(OSError):
            if upload_id.isalnum() and (path / _KEY).read_text() == key:
                return path
        raise errors.ResourceDoesNotExist("No such upload, or it has ended.")

    def _drop_empty(self, folder: Path) -> None:
        while folder != self.files:
            try:
                folder.rmdir()
            except OSError as error:
                if error.errno != errno.ENOENT:
                    return
            folder = folder.parent


def _copy(source: Path, incoming: Incoming) -> str:
    """Appends the content of ``source`` to a file that is being written. Returns the content's MD5
    digest; "" if ``source`` does not exist."""
    total = hashlib.md5(usedforsecurity=False)
    for data in _chunks(source):
        total.update(data)
        incoming.write(data)
    return total.hexdigest() if source.exists() else ""


def _chunks(path: Path) -> Iterator[bytes]:
    with contextlib.suppress(FileNotFoundError), path.open("rb") as file:
        while data := file.read(_COPY_BYTES):
            yield data


def _etag(status: os.stat_result) -> str:
    return f'"{status.st_mtime_ns:x}-{status.st_size:x}"'


def _modified_time(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return time.time()


def _secret(path: Path) -> bytes:
    """Returns the key that signs URLs. Creates it once, so that URLs remain valid after a restart.
    If the key exists, nothing is written, so a folder on a full disk can still be opened."""
    with contextlib.suppress(FileNotFoundError):
        return path.read_bytes()
    with contextlib.suppress(FileExistsError):
        temporary = path.with_name(f"secret-{secrets.token_hex(8)}")
        temporary.touch(mode=0o600)
        temporary.write_bytes(secrets.token_bytes(32))
        try:
            os.link(temporary, path)
        finally:
            temporary.unlink()
    return path.read_bytes()
