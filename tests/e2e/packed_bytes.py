"""What the files of a data folder hold, also where they are compressed: packs and their frames,
rows and blobs of SQLite, columns of Parquet."""

from __future__ import annotations

import contextlib
import gzip
import io
import lzma
import sqlite3
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

import pyarrow.parquet as pq
from backports import zstd

DEEPEST: Final = 3
"""A row of the store holds a pack, which holds frames."""


class Found(NamedTuple):
    """Bytes of a file, and how they were reached."""

    path: Path
    way: str
    content: bytes


def _zstd(content: bytes) -> bytes:
    return zstd.ZstdDecompressor().decompress(content)


def _gzip(content: bytes) -> bytes:
    return zlib.decompressobj(31).decompress(content)


def _zlib(content: bytes) -> bytes:
    return zlib.decompressobj().decompress(content)


def _xz(content: bytes) -> bytes:
    return lzma.LZMADecompressor().decompress(content)


_FORMS: Final[tuple[tuple[str, bytes, Callable[[bytes], bytes]], ...]] = (
    ("zstd", b"\x28\xb5\x2f\xfd", _zstd),
    ("gzip", b"\x1f\x8b\x08", _gzip),
    ("zlib", b"\x78\x9c", _zlib),
    ("zlib", b"\x78\xda", _zlib),
    ("xz", b"\xfd7zXZ\0", _xz),
)
_ERRORS: Final = (zstd.ZstdError, zlib.error, lzma.LZMAError, EOFError, gzip.BadGzipFile)


def contents(folder: Path) -> Iterator[Found]:
    """Yields all that the files below a folder hold, first as it is, then unpacked."""
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            content = path.read_bytes()
            yield from _unpacked(path, "", content, 0)
            if content.startswith(b"SQLite format 3"):
                for row in _rows(path):
                    yield from _unpacked(path, "row", row, 0)
            if content.startswith(b"PAR1"):
                table = pq.read_table(io.BytesIO(content))
                yield Found(path, "parquet", str(table.to_pylist()).encode())


def _unpacked(path: Path, way: str, content: bytes, depth: int) -> Iterator[Found]:
    yield Found(path, way, content)
    if depth == DEEPEST:
        return
    for name, magic, unpack in _FORMS:
        start = content.find(magic)
        while start >= 0:
            with contextlib.suppress(*_ERRORS):
                inner = unpack(content[start:])
                if inner:
                    yield from _unpacked(path, f"{way}/{name}", inner, depth + 1)
            start = content.find(magic, start + 1)


def _rows(path: Path) -> Iterator[bytes]:
    """Yields the values of all rows of a database, with what its write-ahead log adds."""
    with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
        named = "SELECT name FROM sqlite_master WHERE type = 'table'"
        for (table,) in database.execute(named).fetchall():
            for row in database.execute(f'SELECT * FROM "{table}"'):
                for value in row:
                    if isinstance(value, bytes):
                        yield value
                    elif isinstance(value, str):
                        yield value.encode()
