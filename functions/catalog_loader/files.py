"""The files of the catalog: a folder on a laptop, a part of the artifact bucket in AWS.

A name is a path below the catalog, with "/" between segments. No name leads out of it.
"""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath
from typing import Final, Protocol

from mlcore import artifacts
from mlcore.entities.workspaces import DEFAULT_WORKSPACE

FOLDER: Final = "CATALOG_FOLDER"
"""Environment: the folder; set by the local runner."""

KEY: Final = artifacts.internal(DEFAULT_WORKSPACE, "catalog")
"""Else, where the files are in the artifact bucket; no other API reads or writes there."""

_MOST_FILES: Final = 2_000


class OutsideCatalog(ValueError):
    """A path leads out of the catalog, or to nothing."""


class Files(Protocol):
    def names(self) -> dict[str, str]:
        """All files, each with a mark that changes with what it holds."""

    def read(self, name: str) -> bytes:
        """Raises OutsideCatalog: it is not there."""


class Folder:
    def __init__(self, path: str) -> None:
        self._root = Path(path).resolve()

    def names(self) -> dict[str, str]:
        found = {}
        for folder, _, files in os.walk(self._root):
            for name in files:
                path = Path(folder, name)
                if not path.is_file() or not path.resolve().is_relative_to(self._root):
                    continue
                about = path.stat()
                key = path.relative_to(self._root).as_posix()
                found[key] = f"{about.st_mtime_ns} {about.st_size}"
            if len(found) > _MOST_FILES:
                break
        return found

    def read(self, name: str) -> bytes:
        path = (self._root / name).resolve()
        if not path.is_relative_to(self._root) or not path.is_file():
            raise OutsideCatalog(f"there is no file {name!r} in the catalog")
        return path.read_bytes()


class InBucket:
    def names(self) -> dict[str, str]:
        found: dict[str, str] = {}
        waiting = [""]
        while waiting and len(found) <= _MOST_FILES:
            folder = waiting.pop()
            for entry in artifacts.store().list(f"{KEY}/{folder}" if folder else KEY):
                name = f"{folder}/{entry.name}" if folder else entry.name
                if entry.size is None:
                    waiting.append(name)
                elif opened := artifacts.store().open(f"{KEY}/{name}", 0):
                    found[name] = f"{opened.etag} {opened.size}"
        return found

    def read(self, name: str) -> bytes:
        data = artifacts.store().get(f"{KEY}/{name}")
        if data is None:
            raise OutsideCatalog(f"there is no file {name!r} in the catalog")
        return data


def files() -> Files:
    """The files of this process."""
    folder = os.environ.get(FOLDER)
    return Folder(folder) if folder else InBucket()


def find(path: str, base: str, names: dict[str, str]) -> str:
    """The name of a file that a source names.

    Args:
        path: relative to the folder ``base``; an absolute one is where the file was mounted once:
            the longest end of it that is in the catalog counts.

    Raises:
        OutsideCatalog: it leads out of the catalog, or to nothing.
    """
    parts = PurePosixPath(path).parts
    if path.startswith("/"):
        for at in range(1, len(parts)):
            name = "/".join(parts[at:])
            if name in names and ".." not in parts:
                return name
        raise OutsideCatalog(f"{path}: no such file or directory in the catalog")
    whole: list[str] = [part for part in base.split("/") if part]
    for part in parts:
        if part == "..":
            if not whole:
                raise OutsideCatalog(f"the path {path!r} leads out of the catalog")
            whole.pop()
        else:
            whole.append(part)
    name = "/".join(whole)
    if name not in names:
        raise OutsideCatalog(f"{path}: no such file or directory in the catalog")
    return name
