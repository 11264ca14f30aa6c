"""The cache of Parquet columns: local copies of S3 files that hold only the columns queries have
read.

A copy is a sparse file of the original's size: it holds the footer and the bytes of some columns,
each at its original position, and the holes take no space. Files never change once they are
written, so copies stay for later queries as long as there is space. A query may only read columns
that its copy holds.

The folder of a file contains ``<copy>.parquet`` and ``<copy>.json``, a list of the cached columns.
The list is written after the columns and deleted before them. A query reads a hard link in its own
folder, which survives the eviction of the copy.
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

from mltables.duckdb_connection import connect

Read = Callable[[str, int, int], bytes]
"""Reads part of an object: key, first byte, number of bytes."""

CONCURRENT_REQUESTS: Final = 16
"""Most concurrent requests to S3."""
SMALL_FILE_BYTES: Final = 256 << 10
"""Files up to this many bytes are fetched whole. Of a larger file this many bytes at the end are
fetched first, because they contain the footer."""
MAX_GAP_BYTES: Final = 128 << 10
"""Byte ranges with a gap of at most this many bytes between them are joined."""
MAX_REQUEST_BYTES: Final = 8 << 20
"""Most bytes of one request."""
RESERVED_DISK_BYTES: Final = 192 << 20
"""Bytes of the disk that the cache leaves free."""
MAX_CACHE_BYTES: Final = 4 << 30
"""Most bytes that the cache uses, even if the disk has more space."""

_MAGIC: Final = b"PAR1"
_BLOCK: Final = 512
_TRAILER: Final = 8
"""The last bytes of a Parquet file: the length of the footer, and the magic number."""


_ALL: Final = frozenset("*")


class NoRoomForColumns(Exception):
    """Raised if the disk has no space to cache the table columns that an SQL query reads."""

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
    """The links in the query's folder."""
    column_list: Path
    columns: frozenset[str]
    """The cached columns; ``*`` for all."""


class ColumnCache:
    """A cache of SQL queries: a local folder with partial copies of Parquet files in S3. Each copy
    has the columns that queries have needed so far."""

    def __init__(self, folder: Path, read: Read, room: Callable[[], int] | None = None) -> None:
        """Args:
        folder: the folder of the cache.
        read: reads bytes of a file.
        room: returns how many bytes the cache may still add; by default computed from the free
            disk space.
        """
        self._folder, self._read = folder, read
        self._room = room or self._room_on_disk
        folder.mkdir(parents=True, exist_ok=True)

    def linked(self, files: Sequence[File], columns: Collection[str], target: Path) -> list[str]:
        """Creates links in ``target`` to local copies of the files that hold at least these
        columns, and returns the links in the order of ``files``. Fetches the columns that are
        missing. Raises NoRoomForColumns if the columns do not fit even after all other copies are
        evicted."""
        target.mkdir(parents=True, exist_ok=True)
        links = {file: target / f"{number}.parquet" for number, file in enumerate(files)}
        copies = [copy for file in files if (copy := self._cached_copy(file, links[file]))]
        new = list(links.keys() - {copy.file for copy in copies})
        self._make_room(sum(min(file.size, SMALL_FILE_BYTES) for file in new), files)
        with ThreadPoolExecutor(CONCURRENT_REQUESTS) as pool:
            copies += pool.map(lambda file: self._new_copy(file, links[file]), new)
            lacking = [copy for copy in copies if not _has_columns(copy, columns)]
            ranges = _byte_ranges([copy.link for copy in lacking], columns)
            self._make_room(sum(size for range_ in ranges.values() for _, size in range_), files)
            pieces = [(copy, *piece) for copy in lacking for piece in ranges[copy.link]]
            list(pool.map(lambda piece: self._fetch(*piece), pieces))
        for copy in lacking:
            _write_column_list(copy.column_list, copy.columns | set(columns))
        return [str(links[file]) for file in files]

    # ---------------------------------------------------------------- copies

    def _cached_copy(self, file: File, link: Path) -> _Copy | None:
        for column_list in sorted((self._folder / file.key).glob("*.json")):
            try:
                columns = frozenset(json.loads(column_list.read_text()))
                os.link(column_list.with_suffix(".parquet"), link)
                os.utime(column_list)  # eviction goes by this time: least recently read first
            except FileNotFoundError:  # another query drops it
                continue
            return _Copy(file, link, column_list, columns)
        return None

    def _new_copy(self, file: File, link: Path) -> _Copy:
        """Creates a copy with the end of the file, which contains the footer; the end of a small
        file is the whole file."""
        size = min(file.size, SMALL_FILE_BYTES)
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
        _write_column_list(copy.column_list, copy.columns)
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
        """Evicts the least recently read copies until ``wanted`` bytes fit. Keeps those of
        ``files``."""
        if self._room() >= wanted:
            return
        needed = {self._folder / file.key for file in files}
        used = []
        for column_list in self._folder.rglob("*.json"):
            if column_list.parent not in needed:
                try:
                    used.append((column_list.stat().st_mtime, column_list))
                except FileNotFoundError:  # another query drops it
                    continue
        for _, column_list in sorted(used):
            column_list.unlink(missing_ok=True)
            column_list.with_suffix(".parquet").unlink(missing_ok=True)
            with contextlib.suppress(OSError):  # another query begins a copy there
                column_list.parent.rmdir()
            if self._room() >= wanted:
                return
        raise NoRoomForColumns

    def _room_on_disk(self) -> int:
        taken = sum(file.stat().st_blocks * _BLOCK for file in self._folder.rglob("*.parquet"))
        return min(
            shutil.disk_usage(self._folder).free - RESERVED_DISK_BYTES, MAX_CACHE_BYTES - taken
        )


def _has_columns(copy: _Copy, columns: Collection[str]) -> bool:
    return copy.columns == _ALL or copy.columns.issuperset(columns)


def _write_column_list(column_list: Path, columns: Iterable[str]) -> None:
    written = column_list.with_suffix(f".{secrets.token_hex(4)}")
    written.write_text(json.dumps(sorted(columns)))
    written.replace(column_list)


# ------------------------------------------------------------------ footers


def _byte_ranges(
    files: Sequence[Path], columns: Collection[str]
) -> Mapping[Path, list[tuple[int, int]]]:
    """Returns the byte ranges (first, length) that hold the columns in each file, without the
    footers."""
    ranges: dict[Path, list[tuple[int, int]]] = {file: [] for file in files}
    if not files:
        return ranges
    for name, chunks in _column_chunks([str(file) for file in files], list(columns)).items():
        runs: list[tuple[int, int]] = []
        for first, end in chunks:
            if runs and first - runs[-1][1] <= MAX_GAP_BYTES:
                runs[-1] = (runs[-1][0], max(end, runs[-1][1]))
            else:
                runs.append((first, end))
        ranges[Path(name)] = [
            (start, min(MAX_REQUEST_BYTES, end - start))
            for first, end in runs
            for start in range(first, end, MAX_REQUEST_BYTES)
        ]
    return ranges


def _column_chunks(
    files: Sequence[str], columns: Sequence[str]
) -> Mapping[str, list[tuple[int, int]]]:
    """Returns for each file the sorted (begin, end) of its column chunks and their Bloom
    filters."""
    with connect(None) as connection:
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
    chunks: dict[str, list[tuple[int, int]]] = {}
    for name, first, end in rows:
        chunks.setdefault(name, []).append((first, end))
    return chunks
