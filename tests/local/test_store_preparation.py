"""What a start makes of the files of a data folder."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from local.events.batch import DeadLetters
from local.events.checkpoints import Checkpoints
from local.events.stream_poller import StreamPoller
from local.store_preparation import StoreUnusable, prepare_store

from .conftest import TABLE, OpenTable, eventually
from .stream_mapping import mapping

OTHER = f"arn:aws:dynamodb:ddblocal:000000000000:table/{TABLE}-2/stream/2026-01-01"


class Follower:
    """A poller that keeps the names of the items of its records."""

    def __init__(self, opened: OpenTable, name: str) -> None:
        self.names: list[str] = []
        self._reader = opened.reader()
        self.poller = StreamPoller(
            mapping(name=name),
            client=self._reader,
            stream=opened.stream,
            invoke=self._take,
            checkpoints=Checkpoints(opened.folder.checkpoints),
            dead_letters=DeadLetters(opened.folder.dead_letters),
        )
        self.poller.start()

    def _take(self, event: Any) -> None:
        self.names += [record["dynamodb"]["Keys"]["SK"]["S"] for record in event["Records"]]

    def stop(self) -> None:
        self.poller.stop()
        self._reader.close()


def followed(opened: OpenTable, name: str, count: int) -> list[str]:
    """Follows the stream until a number of items came; returns their names."""
    follower = Follower(opened, name)
    eventually(lambda: len(follower.names) >= count)
    follower.stop()
    return follower.names


def copied(opened: OpenTable) -> Path:
    """A copy of the table's file as a power cut may leave it: whole transactions, not the last."""
    copy = opened.folder.path / "copy"
    with sqlite3.connect(opened.file.path) as source, sqlite3.connect(copy) as target:
        source.backup(target)
    source.close()
    target.close()
    return copy


def lose(opened: OpenTable, copy: Path) -> None:
    """Puts the copy in place of the file."""
    opened.dynamodb.close()
    for ending in ("-wal", "-shm"):
        opened.file.path.with_name(opened.file.path.name + ending).unlink(missing_ok=True)
    shutil.copy(copy, opened.file.path)
    with sqlite3.connect(opened.file.path) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
    connection.close()


@pytest.mark.parametrize("kept", [0, 3])
def test_no_record_is_passed_over_after_writes_were_lost(
    opened: OpenTable, kept: int, capfd: pytest.CaptureFixture[str]
) -> None:
    """The checkpoints know of nine records, the file of fewer: those that are written next have
    other numbers than the lost ones, and every reader gets them."""
    for number in range(kept):
        opened.put(f"kept {number}")
    copy = copied(opened)
    for number in range(kept, 9):
        opened.put(f"lost {number}")
    followed(opened, "Ahead", 9)
    Checkpoints(opened.folder.checkpoints).set(OTHER, "Ahead", "one", "1000")
    lose(opened, copy)

    file = prepare_store(opened.folder, TABLE)
    assert file.last_record() == 9
    assert "lacks stream records" in capfd.readouterr().err
    assert prepare_store(opened.folder, TABLE).last_record() == 9
    assert "lacks" not in capfd.readouterr().err
    written = [f"new {number}" for number in range(4)]
    for name in written:
        opened.put(name)
    assert followed(opened, "Ahead", 4) == written
    recent = {name for _, name in file.keys_written_before(9, 31)}
    assert recent - {"-"} == {f"kept {number}" for number in range(kept)}
    assert followed(opened, "Behind", kept + 4)[-4:] == written


def test_a_file_that_is_no_table_is_named(opened: OpenTable) -> None:
    opened.put("a")
    opened.dynamodb.close()
    with sqlite3.connect(opened.file.path) as connection:
        connection.execute("DROP TABLE stream")
    connection.close()
    with pytest.raises(StoreUnusable, match="is damaged"):
        prepare_store(opened.folder, TABLE)
