"""Copies of the tables' files in S3 on this machine: of each file the columns that queries named.

A copy is a file of the original's size with holes, which take no room: its footer is there, and the
bytes of some columns, each at its place. Files never change once they are written, so copies are
kept for the next query, as long as there is room. A query must read no other columns of them.

Below a folder for each file lie ``<copy>.parquet`` and ``<copy>.json``, the latter with the columns
that are there; it is written after them and removed before them. A query reads a link in its own
folder, which stays when the copy is dropped to make room.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, NamedTuple

from mltables.database import connected

Read = Callable[[str, int, int], bytes]
"""Key, first byte, number of bytes."""

FETCHING: Final = 16
"""Requests at a time."""
WHOLE: Final = 256 << 10
"""Files of so many bytes are fetched as they are; of others so many are asked for at the end, where
the footer is."""
APART: Final = 128 << 10
"""What lies closer together is fetched by one request."""
PIECE: Final = 8 << 20
"""Of one request at most."""
RESERVED: Final = 192 << 20
"""Bytes of the disk that copies leave free."""
MOST: Final = 4 << 30
"""Bytes of all copies, however large the disk is."""

_MAGIC: Final = b"PAR1"
_BLOCK: Final = 512
_TRAILER: Final = 8
"""Length of the footer, and the magic number."""


_ALL: Final = frozenset("*")


class TooMuch(Exception):
    """There is no room for what a query reads."""

    def __init__(self) -> None:
        super().__init__(
            "The query reads more of the tables' files than there is room for: name fewer columns, "
            "or add a condition on insert_time, start_time, run_id or experiment_id beside the "
            "table's name. For all of it use Athena."
        )


class File(NamedTuple):
    key: str
    size: int


class _Copy(NamedTuple):
    file: File
    link: Path
    """In the query's folder."""
    about: Path
    columns: frozenset[str]
    """Those that are there; ``*`` for all."""


class Copies:
    """The copies in a folder."""

    def __init__(self, folder: Path, read: Read, room: Callable[[], int] | None = None) -> None:
        """``room`` tells how many bytes copies may take besides those that are there."""
        self._folder, self._read = folder, read
        self._room = room or self._room_on_disk
        folder.mkdir(parents=True, exist_ok=True)

    def linked(self, files: Sequence[File], columns: Collection[str], target: Path) -> list[str]:
        """Links to copies with these columns; others may be missing in them.

        Raises:
            TooMuch: they do not fit, even without all copies that this query does not read.
        """
        target.mkdir(parents=True, exist_ok=True)
        links = {file: target / f"{number}.parquet" for number, file in enumerate(files)}
        copies = [copy for file in files if (copy := self._found(file, links[file]))]
        new = list(links.keys() - {copy.file for copy in copies})
        self._make_room(sum(min(file.size, WHOLE) for file in new), files)
        with ThreadPoolExecutor(FETCHING) as pool:
            copies += pool.map(lambda file: self._begun(file, links[file]), new)
            lacking = [copy for copy in copies if not _has(copy, columns)]
            ranges = _ranges([copy.link for copy in lacking], columns)
            self._make_room(sum(size for one in ranges.values() for _, size in one), files)
            pieces = [(copy, *piece) for copy in lacking for piece in ranges[copy.link]]
            list(pool.map(lambda piece: self._fetch(*piece), pieces))
        for copy in lacking:
            _tell(copy.about, copy.columns | set(columns))
        return [str(links[file]) for file in files]

    # ---------------------------------------------------------------- copies

    def _found(self, file: File, link: Path) -> _Copy | None:
        for about in sorted((self._folder / file.key).glob("*.json")):
            try:
                columns = frozenset(json.loads(about.read_text()))
                os.link(about.with_suffix(".parquet"), link)
                os.utime(about)  # by which the copies are dropped that were not read for longest
            except FileNotFoundError:  # another query drops it
                continue
            return _Copy(file, link, about, columns)
        return None

    def _begun(self, file: File, link: Path) -> _Copy:
        """A copy with the footer, or the whole of a small file."""
        size = min(file.size, WHOLE)
        end = self._read(file.key, file.size - size, size)
        footer = int.from_bytes(end[-_TRAILER:-4], "little") + _TRAILER
        if footer > size:
            end = self._read(file.key, file.size - footer, footer)
        data = self._folder / file.key / f"{secrets.token_hex(8)}.parquet"
        data.parent.mkdir(parents=True, exist_ok=True)
        with link.open("wb") as written:
            written.write(_MAGIC)
            written.truncate(file.size)
            written.seek(file.size - len(end))
            written.write(end)
        os.link(link, data)
        copy = _Copy(
            file, link, data.with_suffix(".json"), _ALL if len(end) == file.size else frozenset()
        )
        _tell(copy.about, copy.columns)
        return copy

    def _fetch(self, copy: _Copy, first: int, size: int) -> None:
        data = self._read(copy.file.key, first, size)
        if len(data) != size:
            raise OSError(f"{copy.file.key} has no {size} bytes from {first} on")
        handle = os.open(copy.link, os.O_WRONLY)
        try:
            os.pwrite(handle, data, first)
        finally:
            os.close(handle)

    # ------------------------------------------------------------------ room

    def _make_room(self, wanted: int, files: Iterable[File]) -> None:
        """Drops what was not read for longest, but nothing of some files."""
        if self._room() >= wanted:
            return
        needed = {self._folder / file.key for file in files}
        used = []
        for about in self._folder.rglob("*.json"):
            if about.parent not in needed:
                try:
                    used.append((about.stat().st_mtime, about))
                except FileNotFoundError:  # another query drops it
                    continue
        for _, about in sorted(used):
            about.unlink(missing_ok=True)
            about.with_suffix(".parquet").unlink(missing_ok=True)
            with contextlib.suppress(OSError):  # another query begins a copy there
                about.parent.rmdir()
            if self._room() >= wanted:
                return
        raise TooMuch

    def _room_on_disk(self) -> int:
        taken = sum(one.stat().st_blocks * _BLOCK for one in self._folder.rglob("*.parquet"))
        return min(shutil.disk_usage(self._folder).free - RESERVED, MOST - taken)


def _has(copy: _Copy, columns: Collection[str]) -> bool:
    return copy.columns == _ALL or copy.columns.issuperset(columns)


def _tell(about: Path, columns: Iterable[str]) -> None:
    written = about.with_suffix(f".{secrets.token_hex(4)}")
    written.write_text(json.dumps(sorted(columns)))
    written.replace(about)


# ------------------------------------------------------------------ footers


def _ranges(
    files: Sequence[Path], columns: Collection[str]
) -> Mapping[Path, list[tuple[int, int]]]:
    """First byte and length of what a reader of columns needs of files, besides their footers."""
    found: dict[Path, list[tuple[int, int]]] = {file: [] for file in files}
    if not files:
        return found
    for name, chunks in _chunks([str(file) for file in files], list(columns)).items():
        runs: list[tuple[int, int]] = []
        for first, end in chunks:
            if runs and first - runs[-1][1] <= APART:
                runs[-1] = (runs[-1][0], max(end, runs[-1][1]))
            else:
                runs.append((first, end))
        found[Path(name)] = [
            (start, min(PIECE, end - start))
            for first, end in runs
            for start in range(first, end, PIECE)
        ]
    return found


def _chunks(files: Sequence[str], columns: Sequence[str]) -> Mapping[str, list[tuple[int, int]]]:
    """By file, where the bytes of columns and of their filters begin and end, in order."""
    with connected(None) as connection:
        rows = connection.execute(
            """
            WITH chunks AS (
                SELECT *, least(
                    data_page_offset,
                    coalesce(nullif(dictionary_page_offset, 0), data_page_offset),
                    coalesce(nullif(index_page_offset, 0), data_page_offset)
                ) AS first_byte
                FROM parquet_metadata($files)
                WHERE list_contains($columns, split_part(path_in_schema, ', ', 1))
            )
            SELECT file_name, first_byte, first_byte + total_compressed_size FROM chunks
            UNION ALL
            SELECT file_name, bloom_filter_offset, bloom_filter_offset + bloom_filter_length
            FROM chunks WHERE bloom_filter_length > 0
            ORDER BY ALL
            """,
            {"files": list(files), "columns": list(columns)},
        ).fetchall()
    found: dict[str, list[tuple[int, int]]] = {}
    for name, first, end in rows:
        found.setdefault(name, []).append((first, end))
    return found
