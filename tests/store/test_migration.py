"""A data folder whose table is in an engine's file is converted, once, whatever interrupts it."""

from __future__ import annotations

import contextlib
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from local.store import migration
from local.store.store import Store, endpoint_of, table_path
from local.store.stream import StreamReader
from mlcore.db.client import transport
from mlcore.db.transport import DYNAMODB
from tests.engines import ROOT, binary, free_port, memory_folder, started, table_definition
from tests.store.comparison import Comparison
from tests.store.operations import Operations

TABLE = "mlflow-under-test"
REQUESTS = 500
MANY = 3000


@contextlib.contextmanager
def engine_on(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A client of an engine whose file is ``dynamodb.sqlite`` in the folder."""
    port = free_port()
    command = [str(binary("dynoxide")), "serve", "--host", "127.0.0.1", "--port", str(port)]
    file = str(folder / "dynamodb.sqlite")
    with started([*command, "--db-path", file], port, folder) as endpoint:
        monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", endpoint)
        client = transport("dynamodb", DYNAMODB)
        yield client
        client.close()


@pytest.fixture
def folder() -> Iterator[Path]:
    with memory_folder() as made:
        (made / "store").mkdir()
        yield made


def fill(client: Any) -> None:
    client.call("CreateTable", table_definition(TABLE))
    time_to_live = {"Enabled": True, "AttributeName": "ttl"}
    client.call("UpdateTimeToLive", {"TableName": TABLE, "TimeToLiveSpecification": time_to_live})
    operations = Operations(1, TABLE)
    for _ in range(REQUESTS):
        with contextlib.suppress(Exception):
            client.call(*operations.draw())
    for at in range(0, MANY, 25):
        puts = [
            {"PutRequest": {"Item": {"PK": {"S": "many"}, "SK": {"S": f"{n:05d}"}}}}
            for n in range(at, at + 25)
        ]
        client.call("BatchWriteItem", {"RequestItems": {TABLE: puts}})


def converted(folder: Path, progress: migration.Progress = lambda done, total: None) -> Store:
    path = table_path(folder / "store", TABLE)
    assert migration.holds(folder / "dynamodb.sqlite", TABLE)
    assert not migration.holds(folder / "dynamodb.sqlite", "another-table")
    migration.convert(folder / "dynamodb.sqlite", TABLE, path, progress)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    return Store(endpoint_of(folder / "store"))


def test_everything_is_there_and_the_stream_goes_on(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with engine_on(folder, monkeypatch) as engine:
        fill(engine)
        progress: list[tuple[int, int]] = []
        with contextlib.closing(converted(folder, lambda *now: progress.append(now))) as store:
            assert progress == sorted(progress)
            assert progress[-1][0] == progress[-1][1] > MANY
            comparison = Comparison(store, folder / "store", engine, TABLE)
            comparison.compare("Scan", {"TableName": TABLE})
            for index in ("LSI1", "GSI1"):
                comparison.compare("Scan", {"TableName": TABLE, "IndexName": index})
            descriptions = [
                each.call("DescribeTable", {"TableName": TABLE})["Table"]
                for each in (engine, store)
            ]
            for name in ("LatestStreamArn", "KeySchema"):
                assert descriptions[0][name] == descriptions[1][name]
            ttl = store.call("DescribeTimeToLive", {"TableName": TABLE})["TimeToLiveDescription"]
            assert ttl == {"TimeToLiveStatus": "ENABLED", "AttributeName": "ttl"}

            reader = StreamReader(table_path(folder / "store", TABLE), TABLE)
            latest = reader.get_shard_iterator(ShardIteratorType="LATEST")["ShardIterator"]
            comparison.run(2, 500)
            page = reader.get_records(ShardIterator=latest, Limit=1)
            assert int(page["Records"][0]["dynamodb"]["SequenceNumber"]) == int(latest) + 1
            reader.close()


class _Interrupted(Exception):
    pass


def test_an_interrupted_conversion_goes_on(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(migration, "ROWS", 700)
    with engine_on(folder, monkeypatch) as engine:
        fill(engine)
        before: list[int] = []

        def interrupt(done: int, total: int) -> None:
            before.append(done)
            if len(before) % 3 == 0:
                raise _Interrupted

        rounds = 0
        while True:
            rounds += 1
            try:
                store = converted(folder, interrupt)
            except _Interrupted:
                assert not table_path(folder / "store", TABLE).exists()
            else:
                break
        assert rounds > 3
        assert before[:-1] == sorted(set(before)), "nothing was copied twice"
        with contextlib.closing(store):
            comparison = Comparison(store, folder / "store", engine, TABLE)
            comparison.compare("Scan", {"TableName": TABLE})


def test_what_was_written_since_an_interruption_is_there(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migration, "ROWS", 700)

    def interrupt(done: int, total: int) -> None:
        if done > 1000:
            raise _Interrupted

    with engine_on(folder, monkeypatch) as engine:
        fill(engine)
        with pytest.raises(_Interrupted):
            converted(folder, interrupt)
        engine.call(
            "PutItem", {"TableName": TABLE, "Item": {"PK": {"S": "a"}, "SK": {"S": "first"}}}
        )
        with contextlib.closing(converted(folder)) as store:
            comparison = Comparison(store, folder / "store", engine, TABLE)
            comparison.compare("Scan", {"TableName": TABLE})


def test_the_runner_converts_a_folder_that_was_killed_meanwhile(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with engine_on(folder, monkeypatch) as engine:
        fill(engine)
        count = engine.call("Scan", {"TableName": TABLE, "Select": "COUNT"})["Count"]
    command = [sys.executable, "-m", "local.admin", "sizes", "--all", f"--data={folder}"]
    environ = {k: v for k, v in os.environ.items() if not k.startswith("AWS_")}
    for wait in (0.4, 0.7):
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            env={**environ, "TABLE_NAME": TABLE},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        time.sleep(wait)
        process.send_signal(signal.SIGKILL)
        process.wait()
    stderr = subprocess.run(
        command,
        cwd=ROOT,
        env={**environ, "TABLE_NAME": TABLE},
        capture_output=True,
        text=True,
        check=False,
    ).stderr
    assert "Traceback" not in stderr
    assert (folder / "dynamodb.sqlite").exists()
    with contextlib.closing(Store(endpoint_of(folder / "store"))) as store:
        assert store.call("Scan", {"TableName": TABLE, "Select": "COUNT"})["Count"] == count
