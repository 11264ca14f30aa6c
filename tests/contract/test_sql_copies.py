"""Copies of files in S3: of each the columns that queries name, and no more than there is room."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
import pytest

COLUMNS = ("id", "text", "number", "m", "listed")
ROWS = 60_000


class Bucket:
    """Files that are read by ranges; counts the bytes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.bytes: Counter[str] = Counter()

    def read(self, key: str, first: int, size: int) -> bytes:
        with (self.folder / key).open("rb") as file:
            file.seek(first)
            data = file.read(size)
        self.bytes[key] += len(data)
        return data


@pytest.fixture(scope="module")
def bucket(tmp_path_factory: pytest.TempPathFactory) -> Bucket:
    """Files of some row groups, with filters; one is small, one has a footer beyond the end that is
    asked for at first."""
    from deltalake import (  # noqa: PLC0415
        BloomFilterProperties,
        ColumnProperties,
        WriterProperties,
        write_deltalake,
    )

    from mltables.duckdb_connection import connect  # noqa: PLC0415

    folder = tmp_path_factory.mktemp("bucket")
    with connect(None) as connection:
        connection.execute("SET preserve_insertion_order = true")
        for number in range(4):
            many = 50 if number == 3 else ROWS
            rows = connection.sql(
                f"SELECT md5((n + {number})::VARCHAR) AS id, 'text ' || n % 7 AS text, "
                "n::DOUBLE / 3 AS number, MAP {'k': md5(n::VARCHAR)} AS m, "
                "[{'a': n, 'b': md5(n::VARCHAR)}] AS listed "
                f"FROM range({many}) AS t(n)"
            )
            bloom = BloomFilterProperties(set_bloom_filter_enabled=True, fpp=0.01, ndv=2000)
            properties = WriterProperties(
                compression="ZSTD",
                max_row_group_size=100 if number == 2 else 16_384,
                column_properties={"id": ColumnProperties(bloom_filter_properties=bloom)},
            )
            write_deltalake(str(folder / f"t{number}"), rows, writer_properties=properties)
    footers = [_footer(path) for path in folder.rglob("*.parquet")]
    assert max(footers) > pytest.importorskip("mltables.column_cache").SMALL_FILE_BYTES
    return Bucket(folder)


def _footer(file: Path) -> int:
    return int.from_bytes(file.read_bytes()[-8:-4], "little")


def _files(bucket: Bucket) -> list[Any]:
    from mltables.column_cache import File  # noqa: PLC0415

    paths = sorted(bucket.folder.rglob("*.parquet"))
    return [File(str(path.relative_to(bucket.folder)), path.stat().st_size) for path in paths]


def _rows(files: Sequence[str], columns: Sequence[str]) -> list[tuple[Any, ...]]:
    listed = ", ".join(f"'{file}'" for file in files)
    with duckdb.connect() as connection:
        return connection.execute(
            f"SELECT {', '.join(columns)} FROM read_parquet([{listed}]) "
            f"WHERE {'id' if 'id' in columns else columns[0]}::VARCHAR > '3' ORDER BY ALL"
        ).fetchall()


def _digest(files: Sequence[str], columns: Sequence[str]) -> list[tuple[Any, ...]]:
    """How many of these rows there are, and the sum of their hashes."""
    listed = ", ".join(f"'{file}'" for file in files)
    with duckdb.connect() as connection:
        return connection.execute(
            f"SELECT count(*), sum(hash({', '.join(columns)})) FROM read_parquet([{listed}]) "
            f"WHERE {'id' if 'id' in columns else columns[0]}::VARCHAR > '3'"
        ).fetchall()


def _size(folder: Path) -> int:
    return sum(path.stat().st_blocks * 512 for path in folder.rglob("*.parquet"))


def test_only_columns_that_are_named_are_fetched_and_once(bucket: Bucket, tmp_path: Path) -> None:
    copies = pytest.importorskip("mltables.column_cache")
    kept = copies.ColumnCache(tmp_path / "copies", bucket.read)
    files = _files(bucket)[:2]
    whole = sum(file.size for file in files)
    bucket.bytes.clear()
    links = kept.linked(files, ["text"], tmp_path / "1")
    first = bucket.bytes.total()
    assert copies.SMALL_FILE_BYTES <= first < whole / 2
    assert _size(tmp_path / "copies") <= first + 64_000
    originals = [str(bucket.folder / file.key) for file in files]
    assert _rows(links, ["text"]) == _rows(originals, ["text"])
    assert kept.linked(files, ["text"], tmp_path / "2") != links
    assert bucket.bytes.total() == first, "what is there is not fetched again"
    links = kept.linked(files, ["text", "listed"], tmp_path / "3")
    assert first < bucket.bytes.total() < whole
    assert _rows(links, ["listed"]) == _rows(originals, ["listed"])
    # And by a filter.
    links = kept.linked(files, ["id"], tmp_path / "4")
    row_id = _rows(originals, ["id"])[77][0]
    with duckdb.connect() as connection:
        sql = f"SELECT count(*) FROM read_parquet({links}) WHERE id = '{row_id}'"
        assert connection.execute(sql).fetchall()[0][0] >= 1
        assert connection.execute(sql.replace(row_id, "no id")).fetchall() == [(0,)]


def test_queries_in_any_order_read_what_is_there_within_the_room(
    bucket: Bucket, tmp_path: Path
) -> None:
    """Whatever was dropped between them; a query whose copies are dropped keeps its own."""
    copies = pytest.importorskip("mltables.column_cache")
    folder = tmp_path / "copies"
    files = _files(bucket)
    most = int(1.2 * max(file.size for file in files)) + 4 * copies.SMALL_FILE_BYTES
    kept = copies.ColumnCache(folder, bucket.read, lambda: most - _size(folder))
    rng = random.Random(3)
    refused = 0
    before: tuple[list[str], list[str], list[tuple[Any, ...]]] = ([], [], [])
    for number in range(24):
        some = rng.sample(files, rng.randrange(1, 3))
        columns = rng.sample(COLUMNS, rng.randrange(1, 4))
        try:
            links = kept.linked(some, columns, tmp_path / f"query {number}")
        except copies.NoRoomForColumns:
            refused += 1
            continue
        originals = [str(bucket.folder / file.key) for file in some]
        expected = _digest(originals, columns)
        assert _digest(links, columns) == expected
        if before[0]:
            assert _digest(before[0], before[1]) == before[2]
        before = (links, columns, expected)
        assert _size(folder) <= most + 64_000 * len(files)
    assert refused < 12


def test_what_does_not_fit_is_said(bucket: Bucket, tmp_path: Path) -> None:
    copies = pytest.importorskip("mltables.column_cache")
    kept = copies.ColumnCache(tmp_path / "copies", bucket.read, lambda: copies.SMALL_FILE_BYTES)
    with pytest.raises(copies.NoRoomForColumns, match="use Athena"):
        kept.linked(_files(bucket)[:1], COLUMNS, tmp_path / "1")


def test_all_copies_have_an_end_on_a_large_disk(
    bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copies = pytest.importorskip("mltables.column_cache")
    files = _files(bucket)[:3]
    monkeypatch.setattr(copies, "MAX_CACHE_BYTES", int(1.5 * max(file.size for file in files)))
    kept = copies.ColumnCache(tmp_path / "copies", bucket.read)
    for number in range(6):
        kept.linked([files[number % 3]], COLUMNS, tmp_path / f"query {number}")
        assert _size(tmp_path / "copies") <= copies.MAX_CACHE_BYTES + 64_000


@pytest.mark.parametrize(
    "error",
    [duckdb.IOException("IO Error: No space left on device"), duckdb.OutOfMemoryException("no")],
)
def test_rows_of_a_reader_that_do_not_fit_are_the_queries_fault(
    tmp_path: Path, error: duckdb.Error, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = pytest.importorskip("mltables.statement_execution")

    def failing(*_: Any) -> None:
        raise error

    monkeypatch.setattr(query.permitted_rows, "row_sources", failing)
    # The timer that would end a process is not for this one.
    monkeypatch.setattr(query, "_set_deadline", lambda _seconds: None)
    request = {"sql": "SELECT 1 AS one", "seconds": 9, "starting": 9}
    assert "use Athena" in query.prepare_rows(request, tmp_path)["error"]
    monkeypatch.setattr(query.permitted_rows, "row_sources", lambda *_: [])
    assert query.prepare_rows(request, tmp_path)["sql"] == "SELECT 1 AS one"
