"""Reads the archive of a skill's folder: a tar file, compressed with gzip.

Nothing is written to a disk. The path of an entry is checked before its content is read, and the
archive is decompressed only as far as the limits allow.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
import zlib
from collections.abc import Iterator, Mapping
from typing import Final

from mlcore.artifacts import safe_path
from mlcore.errors import InvalidParameterValue
from mlcore.limits import skills as limits
from mlcore.limits.skill_paths import Tree, relative_path, shown

_METADATA_BYTES: Final = 1024 * limits.MAX_CONTENT_FILES
"""Decompressed bytes that headers and padding may take."""
_CHUNK_BYTES: Final = 1024 * 1024
_FAILURES: Final = (tarfile.TarError, EOFError, OSError, zlib.error, RecursionError, ValueError)
_UNDOWNLOADABLE: Final = "%?#"


class Content:
    """The files of a skill by path, and ``digest``, the SHA-256 of all of them."""

    def __init__(self, files: Mapping[str, bytes], digest: str) -> None:
        self.files = files
        self.digest = digest


def read(archive: bytes) -> Content:
    """Returns the files in a skill's archive.

    Raises:
        InvalidParameterValue: the data is not a gzip-compressed tar file; it has no file, or more
            entries or bytes than allowed; or an entry is neither a file nor a folder, has an unsafe
            path or one that cannot be downloaded, or has the same name as another one.
    """
    if not archive:
        raise InvalidParameterValue("The 'content' part is empty.")
    most = limits.max_content_bytes()
    tree = Tree()
    files: dict[str, bytes] = {}
    normal_paths: dict[str, str] = {}
    size = 0
    with _Limited(archive) as stream:
        try:
            with tarfile.open(fileobj=stream, mode="r|") as tar:
                for member in _members(tar, stream):
                    path = _path_of(member)
                    if path is None:
                        continue
                    if member.isdir():
                        tree.add_folder(path, member.name)
                        continue
                    normal_paths[path] = tree.add_file(path, member.name)
                    size += member.size
                    if size > most:
                        raise InvalidParameterValue(
                            f"Archive content exceeds the skill content size limit of {most} bytes."
                        )
                    files[path] = _content(tar, member)
            while stream.read(_CHUNK_BYTES):
                pass  # gzip checks its sum only at the end
        except _FAILURES as error:
            raise InvalidParameterValue(
                f"'content.tar.gz' is not a readable tar archive: {error}"
            ) from None
    if not files:
        raise InvalidParameterValue("The uploaded skill content contains no files.")
    _check_names((*tree.folders(), *files))
    return Content(files, _digest({normal_paths[path]: data for path, data in files.items()}))


class _Limited(io.RawIOBase):
    """A stream of the decompressed archive. Reading more than the declared sizes of its members and
    their headers allow raises InvalidParameterValue."""

    def __init__(self, archive: bytes) -> None:
        self._inner = gzip.GzipFile(fileobj=io.BytesIO(archive), mode="rb")
        self._left = self._most = _METADATA_BYTES

    def allow(self, size: int) -> None:
        """Increases the limit by the size of a member's content, rounded up to whole tar blocks."""
        padded = -(-size // tarfile.BLOCKSIZE) * tarfile.BLOCKSIZE
        self._left += padded
        self._most += padded

    def read(self, size: int = -1) -> bytes:
        data = self._inner.read(self._left + 1 if size < 0 else min(size, self._left + 1))
        self._left -= len(data)
        if self._left < 0:
            raise InvalidParameterValue(
                f"Archive metadata decompresses to more than {self._most} bytes, which "
                "exceeds the allowance for tar headers."
            )
        return data


def _members(tar: tarfile.TarFile, stream: _Limited) -> Iterator[tarfile.TarInfo]:
    """Yields the entries of an archive. Raises InvalidParameterValue for an entry that is neither a
    file nor a folder or has a negative size, and for too many entries."""
    count = 0
    while (member := tar.next()) is not None:
        count += 1
        if count > limits.MAX_CONTENT_FILES:
            raise InvalidParameterValue(
                f"Archive contains more than {limits.MAX_CONTENT_FILES} entries."
            )
        if member.size < 0:
            raise InvalidParameterValue(
                f"Archive entry '{shown(member.name)}' declares a negative size."
            )
        if not member.isdir() and not member.isreg():
            raise InvalidParameterValue(
                f"Archive entry '{shown(member.name)}' is not a regular file or directory."
            )
        if member.isreg():
            stream.allow(min(member.size, limits.max_content_bytes()))
        yield member


def _path_of(member: tarfile.TarInfo) -> str | None:
    """Returns the path of an entry; None for the root folder itself."""
    name = member.name.removeprefix("./")
    path = None
    if name not in ("", "."):
        try:
            path = relative_path(name)
        except InvalidParameterValue as error:
            raise InvalidParameterValue(
                f"Archive entry '{shown(member.name)}' has an unsafe path: {error.message}"
            ) from None
    if path is None and not member.isdir():
        raise InvalidParameterValue("Archive root entry must be a directory.")
    return path


def _content(tar: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    file = tar.extractfile(member)
    data = b"" if file is None else file.read()
    if len(data) != member.size:
        raise InvalidParameterValue(f"Archive entry '{shown(member.name)}' has been cut off.")
    return data


def _check_names(paths: tuple[str, ...]) -> None:
    """Refuses file names that the artifact routes could not serve later. Raises
    InvalidParameterValue."""
    for path in paths:
        if any(character in path for character in _UNDOWNLOADABLE) or safe_path(path) != path:
            raise InvalidParameterValue(
                "Uploaded skill content contains a name that cannot be downloaded back through the "
                f"artifact API: '{path}'. Names must not contain "
                f"{', '.join(map(repr, _UNDOWNLOADABLE))}."
            )


def _digest(files: Mapping[str, bytes]) -> str:
    """Returns the SHA-256 of files in the order of their paths: for each the length of its path,
    the path, the length of its content, the content; lengths in 8 bytes."""
    total = hashlib.sha256()
    for path, data in sorted((path.encode(), data) for path, data in files.items()):
        total.update(len(path).to_bytes(8, "big") + path + len(data).to_bytes(8, "big"))
        total.update(data)
    return total.hexdigest()
