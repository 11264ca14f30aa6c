"""The model catalog's files: in a folder of the local machine, or in the artifact bucket in AWS.

A file's name is its path below the catalog's root, with ``/`` between segments. Nothing outside of
the root can be read.
"""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath
from typing import Final, Protocol

from mlcore import artifacts
from mlcore.entities.workspaces import DEFAULT_WORKSPACE

FOLDER: Final = "CATALOG_FOLDER"
"""Environment: the catalog's folder; set by the local runner."""

KEY: Final = artifacts.internal_key(DEFAULT_WORKSPACE, "catalog")
"""The prefix of the files in the artifact bucket, if there is no folder. Requests for artifacts can
neither read nor write there."""

_MAX_FILES: Final = 2_000


class OutsideCatalog(ValueError):
    """Raised if a path is outside of the model catalog's files or names none of them."""


class Files(Protocol):
    def names(self) -> dict[str, str]:
        """Returns the names of the model catalog's files, each with a text that differs after a
        change of the file (in S3 the ETag and the size, in a folder time and size). Reads no
        further folder after 2,000 files."""

    def read(self, name: str) -> bytes:
        """Returns the content of a file of the model catalog. Raises OutsideCatalog if the file
        does not exist."""


class FolderFiles:
    def __init__(self, path: str) -> None:
        self._root = Path(path).resolve()

    def names(self) -> dict[str, str]:
        names_and_marks = {}
        for folder, _, files in os.walk(self._root):
            for name in files:
                path = Path(folder, name)
                if not path.is_file() or not path.resolve().is_relative_to(self._root):
                    continue
                about = path.stat()
                key = path.relative_to(self._root).as_posix()
                names_and_marks[key] = f"{about.st_mtime_ns} {about.st_size}"
            if len(names_and_marks) > _MAX_FILES:
                break
        return names_and_marks

    def read(self, name: str) -> bytes:
        path = (self._root / name).resolve()
        if not path.is_relative_to(self._root) or not path.is_file():
            raise OutsideCatalog(f"there is no file {name!r} in the catalog")
        return path.read_bytes()


class BucketFiles:
    def names(self) -> dict[str, str]:
        names_and_marks: dict[str, str] = {}
        waiting = [""]
        while waiting and len(names_and_marks) <= _MAX_FILES:
            folder = waiting.pop()
            for entry in artifacts.store().list(f"{KEY}/{folder}" if folder else KEY):
                name = f"{folder}/{entry.name}" if folder else entry.name
                if entry.size is None:
                    waiting.append(name)
                elif opened := artifacts.store().open(f"{KEY}/{name}", 0):
                    names_and_marks[name] = f"{opened.etag} {opened.size}"
        return names_and_marks

    def read(self, name: str) -> bytes:
        data = artifacts.store().get(f"{KEY}/{name}")
        if data is None:
            raise OutsideCatalog(f"there is no file {name!r} in the catalog")
        return data


def files() -> Files:
    """Returns the folder or bucket, as the environment sets it, with the model catalog's files."""
    folder = os.environ.get(FOLDER)
    return FolderFiles(folder) if folder else BucketFiles()


def resolve(path: str, base: str, names: dict[str, str]) -> str:
    """Returns the name of the catalog's file to which the path of a source leads.

    Args:
        path: relative to the folder ``base``. An absolute path is that of a Kubernetes mount: its
            longest suffix that is the name of a file is used, for example ``models/a.yaml`` of
            ``/mnt/catalog/models/a.yaml``.
        names: the catalog's files.

    Raises:
        OutsideCatalog: the path is outside of the catalog, or leads to no file.
    """
    parts = PurePosixPath(path).parts
    if path.startswith("/"):
        for start in range(1, len(parts)):
            name = "/".join(parts[start:])
            if name in names and ".." not in parts:
                return name
        raise OutsideCatalog(f"{path}: no such file or directory in the catalog")
    segments: list[str] = [part for part in base.split("/") if part]
    for part in parts:
        if part == "..":
            if not segments:
                raise OutsideCatalog(f"the path {path!r} leads out of the catalog")
            segments.pop()
        else:
            segments.append(part)
    name = "/".join(segments)
    if name not in names:
        raise OutsideCatalog(f"{path}: no such file or directory in the catalog")
    return name
