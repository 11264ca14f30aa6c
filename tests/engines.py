"""Where the tests have their tables: the product's own store, or a DynamoDB engine that is started.

``TEST_ENGINE=dynoxide`` runs the tests of the contract on dynoxide in place of the store.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import platform
import random
import shutil
import signal
import socket
import sqlite3
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import boto3
import botocore.config
import pytest

from local import template
from local.store import store
from tests.store_client import StoreClient

ROOT = Path(__file__).resolve().parents[1]
REGION = "us-east-1"
START_SECONDS = 60
_PORTS = range(20_000, 32_000)
_numbers = itertools.count(random.SystemRandom().choice(_PORTS))
"""Processes that ask at the same moment begin at different places."""

__all__ = [
    "Engine",
    "client",
    "create_table",
    "dynoxide",
    "extenddb",
    "running_dynoxide",
    "running_store",
    "table_engine",
]

STORE, DYNOXIDE = "store", "dynoxide"
CHOSEN = os.environ.get("TEST_ENGINE", STORE)

store.register()


class Engine(NamedTuple):
    """The store or a running engine; ``lags``: its global indexes follow with a delay."""

    name: str
    endpoint: str
    lags: bool


@functools.cache
def client(endpoint: str) -> Any:
    """A DynamoDB client of the tests, which tries once: a test wants to see the first answer.

    One for each engine, for making it takes longer than most tests; closing it closes its
    connections, and it opens others when it is used again.
    """
    if store.folder_of(endpoint):
        return StoreClient(endpoint)
    return boto3.client(
        "dynamodb",
        endpoint_url=endpoint,
        region_name=REGION,
        config=botocore.config.Config(retries={"total_max_attempts": 1}, read_timeout=30),
    )


@functools.cache
def _wanted() -> dict[str, Any]:
    """The template's table; reading it takes longer than to create it."""
    return template.read(ROOT / "template.yaml", "any", REGION).table


def table_definition(name: str) -> dict[str, Any]:
    """The parameters of CreateTable for the table of template.yaml."""
    wanted = _wanted()
    kept = ("AttributeDefinitions", "KeySchema", "LocalSecondaryIndexes", "GlobalSecondaryIndexes")
    return {
        "TableName": name,
        "BillingMode": "PAY_PER_REQUEST",
        **{key: wanted[key] for key in kept},
        "StreamSpecification": {"StreamEnabled": True, **wanted["StreamSpecification"]},
    }


def create_table(endpoint: str, name: str | None = None) -> str:
    """Creates the table of template.yaml and returns its name, a new one unless given."""
    name = name or f"mlflow-{uuid4().hex}"
    with contextlib.closing(client(endpoint)) as engine:
        engine.create_table(**table_definition(name))
        deadline = time.monotonic() + START_SECONDS
        while engine.describe_table(TableName=name)["Table"]["TableStatus"] != "ACTIVE":
            if time.monotonic() > deadline:
                raise TimeoutError(f"{name} did not become ACTIVE")
            time.sleep(0.02)
    return name


def free_port() -> int:
    """One below those that systems give to whoever asks for any, and to callers: nobody gets it
    between this answer and its use, nor while a server that has it is started again."""
    while True:
        port = _PORTS[0] + next(_numbers) % len(_PORTS)
        with contextlib.suppress(OSError), socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
            return port


def binary(name: str) -> Path:
    """The engine's program: what ``DYNOXIDE`` or ``EXTENDDB`` names, else that of `make setup`."""
    override = os.environ.get(name.upper())
    if override:
        return Path(override)
    system = {"Linux": "linux", "Darwin": "darwin"}.get(platform.system(), "unknown")
    machine = {"x86_64": "x64", "aarch64": "arm64", "arm64": "arm64"}.get(platform.machine(), "")
    return ROOT / ".tools" / "node_modules" / f"@{name}" / f"{system}-{machine}" / name


@contextlib.contextmanager
def started(command: list[str], port: int, folder: Path, **environment: str) -> Iterator[str]:
    """Runs an engine until the block ends; yields its endpoint. Errors show its output."""
    log = folder / "engine.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env={**os.environ, **environment},
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        deadline = time.monotonic() + START_SECONDS
        while True:
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"{command[0]} did not start:\n{log.read_text()[-2000:]}")
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 0.2):
                break
            time.sleep(0.01)
        yield f"http://127.0.0.1:{port}"
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@contextlib.contextmanager
def memory_folder() -> Iterator[Path]:
    """A folder that is gone afterwards, in memory where the system offers it."""
    shared = Path("/dev/shm")
    folder = Path(tempfile.mkdtemp(dir=shared if os.access(shared, os.W_OK) else None))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def running_dynoxide() -> Iterator[Engine]:
    with memory_folder() as folder:
        port, database = free_port(), folder / "d.sqlite"
        command = [str(binary("dynoxide")), "serve", "--host", "127.0.0.1", "--port", str(port)]
        with started([*command, "--db-path", str(database)], port, folder) as endpoint:
            _index_stream(database)
            yield Engine("dynoxide", endpoint, lags=False)


def _index_stream(database: Path) -> None:
    """Without this index each write to a table with a stream takes longer than the last."""
    with contextlib.closing(sqlite3.connect(database, timeout=10)) as connection, connection:
        connection.execute(
            "CREATE INDEX IF NOT EXISTS app_sr_seq ON "
            "_stream_records(table_name, CAST(sequence_number AS INTEGER))"
        )


@contextlib.contextmanager
def running_extenddb() -> Iterator[Engine]:
    with memory_folder() as folder:
        port = free_port()
        with started(
            [str(binary("extenddb")), "serve", "--foreground"],
            port,
            folder,
            EXTENDDB__SERVER__PORT=str(port),
            EXTENDDB__STORAGE__SQLITE__PATH=":memory:",
        ) as endpoint:
            yield Engine("extenddb", endpoint, lags=True)


@contextlib.contextmanager
def running_store() -> Iterator[Engine]:
    """The product's own store in a folder of its own; nothing runs."""
    with memory_folder() as folder:
        yield Engine(STORE, store.endpoint_of(folder), lags=False)


@pytest.fixture(scope="session")
def table_engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    """The store, or the engine that TEST_ENGINE or the test names: one for each worker of the test
    run; tests take a table of their own in it."""
    name = getattr(request, "param", CHOSEN)
    with {STORE: running_store, DYNOXIDE: running_dynoxide}[name]() as engine:
        yield engine


@pytest.fixture(scope="session")
def dynoxide() -> Iterator[Engine]:
    """One engine for each worker of the test run; tests take a table of their own in it."""
    with running_dynoxide() as engine:
        yield engine


@pytest.fixture(scope="session")
def extenddb() -> Iterator[Engine]:
    """The second engine: its global indexes lag and its stream has several shards."""
    with running_extenddb() as engine:
        yield engine
