"""Connections to a table's file: how many there are, and what ends with it."""

from __future__ import annotations

import os
import resource
import sqlite3
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from botocore.exceptions import ClientError

from local.store import database
from local.store.database import DISK_FULL, IDLE_CONNECTIONS, READ_ONLY, Unusable, Unwritable
from local.store.store import Store, endpoint_of
from tests.engines import table_definition
from tests.store.conftest import TABLE, OpenStore

MANY = 40


def at_once(count: int, act: Callable[[int], None]) -> None:
    threads = [threading.Thread(target=act, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_writers_that_wait_have_no_connection(
    opened: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened_connections = []
    connect = database.connect

    def counted(*arguments: object) -> object:
        opened_connections.append(1)
        return connect(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(database, "connect", counted)
    file = opened.table().database
    statement = "INSERT OR REPLACE INTO tokens VALUES (?, 'x', 1)"
    started = threading.Barrier(MANY + 1)

    def write(number: int) -> None:
        started.wait()
        file.write(statement, (f"{number}",))

    threads = [threading.Thread(target=write, args=(number,)) for number in range(MANY)]
    with file.transaction():
        for thread in threads:
            thread.start()
        started.wait()
    for thread in threads:
        thread.join()
    assert len(opened_connections) <= 1
    assert file.row("SELECT count(*) FROM tokens")[0] == MANY


def test_a_burst_leaves_few_connections(opened: OpenStore) -> None:
    file = opened.table().database
    connections = [file._take() for _ in range(MANY)]
    for connection in connections:
        file._return(connection)
    assert len(file._idle) <= IDLE_CONNECTIONS


def test_a_writer_that_waits_while_the_file_is_closed_is_told(opened: OpenStore) -> None:
    file = opened.table().database
    failures: list[Exception] = []

    def write() -> None:
        try:
            file.write("DELETE FROM tokens", ())
        except Exception as error:
            failures.append(error)

    waiting = threading.Thread(target=write)
    closing = threading.Thread(target=file.close)
    with file.transaction() as connection:
        connection.execute("INSERT INTO tokens VALUES ('kept', 'x', 1)")
        waiting.start()
        closing.start()
        while not file._closed:
            time.sleep(0.001)
    waiting.join()
    closing.join()
    # Whichever came first: it has written, or it was told that the file is closed.
    assert all(isinstance(error, Unusable) for error in failures)
    assert not file._idle
    for act in (lambda: file.row("SELECT 1"), lambda: file.write("DELETE FROM tokens", ())):
        with pytest.raises(Unusable, match="closed"):
            act()


def fill(file: database.Database) -> None:
    """Writes until SQLite has no page left."""
    for number in range(1000):
        file.write("INSERT INTO tokens VALUES (?, ?, 1)", (f"fill {number}", "x" * 3000))


def test_a_full_disk_is_refused_and_passes(opened: OpenStore) -> None:
    file = opened.table().database
    (pages,) = file.row("PRAGMA page_count")
    file.row(f"PRAGMA max_page_count={pages + 5}")
    with pytest.raises(Unwritable) as refused:
        fill(file)
    assert refused.value.advice == DISK_FULL
    before = file.row("SELECT count(*) FROM tokens")
    both = "INSERT INTO tokens VALUES ('half', '', 1), ('whole', ?, 1)"
    with pytest.raises(Unwritable), file.transaction() as connection:
        connection.execute(both, ("x" * 30_000,))
    assert file.row("SELECT count(*) FROM tokens") == before
    file.row(f"PRAGMA max_page_count={pages + 5000}")
    assert file.write("INSERT INTO tokens VALUES ('after', ?, 1)", ("x" * 30_000,)) == 1


def test_a_limit_of_file_sizes_is_refused_and_passes(opened: OpenStore) -> None:
    file = opened.table().database
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    log = file.path.with_name(f"{file.path.name}-wal")
    file.write("INSERT INTO tokens VALUES ('before', '', 1)", ())
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (log.stat().st_size + 3000, limits[1]))
        with pytest.raises(Unwritable) as refused:
            fill(file)
        assert "quota" in refused.value.advice
        assert file.row("SELECT count(*) FROM tokens WHERE token = 'before'") == (1,)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    count = file.row("SELECT count(*) FROM tokens")[0]
    # What was refused does not exist for a reader that recovers the log, either.
    another = database.Database(file.path)
    assert another.row("SELECT count(*) FROM tokens")[0] == count
    another.close()
    fill_one = file.write("INSERT INTO tokens VALUES ('after', ?, 1)", ("x" * 30_000,))
    assert fill_one == 1


def test_a_connection_to_a_file_that_was_read_only_is_opened_again(
    opened: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = opened.table().database
    connect = database.connect

    def to_read(path: Path) -> database.Connection:
        """As SQLite opens a file without the right to write, whoever runs the test."""
        connection = sqlite3.connect(
            f"{path.as_uri()}?mode=ro",
            uri=True,
            isolation_level=None,
            check_same_thread=False,
            factory=database.Connection,
        )
        assert isinstance(connection, database.Connection)
        return connection

    first = file._take()
    with monkeypatch.context() as patch:
        patch.setattr(database, "connect", to_read)
        patch.setattr("local.store.database.os.access", lambda *_: False)
        others = [file._take() for _ in range(3)]
        for connection in others:
            file._return(connection)
        for _ in range(2):
            with pytest.raises(Unwritable) as refused:
                file.write("INSERT INTO tokens VALUES ('x', '', 1)", ())
            assert refused.value.advice == READ_ONLY
            with pytest.raises(Unwritable), file.transaction() as writing:
                writing.execute("INSERT INTO tokens VALUES ('x', '', 1)")
            assert file.row("SELECT count(*) FROM tokens") == (0,)
    assert database.connect is connect
    for number in range(4):
        assert file.write("INSERT INTO tokens VALUES (?, '', 1)", (f"{number}",)) == 1
    file._return(first)


def test_a_file_that_became_writable_unseen_is_opened_again(opened: OpenStore) -> None:
    file = opened.table().database
    file.row("PRAGMA query_only=ON")
    with pytest.raises(Unwritable):
        file.write("INSERT INTO tokens VALUES ('x', '', 1)", ())
    assert file.write("INSERT INTO tokens VALUES ('x', '', 1)", ()) == 1


def test_one_of_many_creators_makes_the_table(opened: OpenStore) -> None:
    definition = table_definition("mlflow-many")
    clients = [Store(endpoint_of(opened.folder)) for _ in range(8)]
    made: list[int] = []
    codes: list[str] = []

    def create(number: int) -> None:
        try:
            clients[number].call("CreateTable", definition)
            made.append(number)
        except ClientError as error:
            codes.append(error.response["Error"]["Code"])

    at_once(len(clients), create)
    for client in clients:
        client.close()
    assert len(made) == 1
    assert set(codes) == {"ResourceInUseException"}
    assert not list(opened.folder.glob("*.new*"))


def test_a_draft_of_a_killed_process_goes(opened: OpenStore) -> None:
    old, young = (opened.folder / f"mlflow-b.sqlite.{n}-1.new" for n in (1, 2))
    for draft in (old, young):
        draft.touch()
    os.utime(old, (1, 1))
    opened.client.call("CreateTable", table_definition("mlflow-b"))
    assert not old.exists()
    assert young.exists()


def test_what_names_no_store_is_refused() -> None:
    with pytest.raises(ValueError, match="no endpoint of a store"):
        Store("http://localhost")


def test_a_request_without_what_it_needs_is_refused(opened: OpenStore) -> None:
    for operation in ("GetItem", "PutItem", "UpdateItem", "DeleteItem", "Query", "BatchGetItem"):
        with pytest.raises(ClientError, match="ValidationException"):
            opened.client.call(operation, {"TableName": TABLE})
