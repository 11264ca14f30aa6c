"""The runner as a process of its own, and a table without the runner."""

from __future__ import annotations

import http.client
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from local.cloudformation import Resolver, load
from local.data_folder import DataFolder
from local.store import store
from local.store.file_maintenance import TableFile
from local.store.stream import StreamReader
from local.table import ensure
from tests.engines import dynoxide
from tests.store_client import StoreClient

__all__ = ["dynoxide"]

ROOT = Path(__file__).resolve().parents[2]
FIXTURE = Path(__file__).parent / "fixtures/template.yaml"
TABLE = "mlflow-serverless"
START_SECONDS = 120  # usually two; other tests run beside it
PATIENT_SECONDS = 60
"""For what usually happens within one; the time of whoever waits for it is no assertion."""


class Local:
    """A running runner; its output is in ``log``."""

    def __init__(
        self,
        folder: Path,
        *arguments: str,
        ready: bool = True,
        within: Sequence[str] = (),
        **environ: str,
    ) -> None:
        """``within`` is a command that executes the one that it is given."""
        self.log = folder / f"runner-{time.monotonic_ns()}.log"
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("AWS_", "TABLE_NAME"))}
        with self.log.open("wb") as output:
            self.process = subprocess.Popen(
                [
                    *within,
                    sys.executable,
                    "-m",
                    "local",
                    "--port=0",
                    f"--template={FIXTURE}",
                    *arguments,
                ],
                cwd=ROOT,
                env={**clean, **environ},
                stdout=output,
                stderr=output,
            )
        self.port = 0
        if ready:
            try:
                self._wait()
            except BaseException:
                self.kill()
                raise

    @property
    def output(self) -> str:
        return self.log.read_text()

    def _wait(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while "\nready\n" not in self.output:
            assert self.process.poll() is None, self.output
            assert time.monotonic() < deadline, self.output
            time.sleep(0.02)
        line = next(x for x in self.output.splitlines() if x.startswith("mlflow-serverless "))
        self.port = int(line.rpartition(":")[2])

    def value(self, name: str) -> str:
        """What the start-up lines say of ``data`` or ``engine``."""
        line = next(x for x in self.output.splitlines() if x.startswith(f"  {name} "))
        return line.split()[1]

    def request(
        self, method: str, path: str, body: bytes | str | None = None, **headers: str
    ) -> Any:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENT_SECONDS)
        try:
            connection.request(
                method, path, body, {k.replace("_", "-"): v for k, v in headers.items()}
            )
            answer = connection.getresponse()
            return answer.status, answer.read(), answer.headers
        finally:
            connection.close()

    def kill(self) -> None:
        """Kills the process if it still runs."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def end(self, number: int = signal.SIGTERM) -> int:
        """Sends a signal and answers the exit code."""
        self.process.send_signal(number)
        return self.process.wait(PATIENT_SECONDS)


@pytest.fixture
def local(tmp_path: Any) -> Any:
    """Starts runners; ends those that still run."""
    started: list[Local] = []

    def start(*arguments: str, **options: Any) -> Local:
        started.append(Local(tmp_path, *arguments, **options))
        return started[-1]

    yield start
    for runner in started:
        runner.kill()


@pytest.fixture
def product(tmp_path: Path) -> Iterator[Any]:
    """Starts runners of the product itself on one folder."""
    started: list[Local] = []
    template = f"--template={ROOT / 'template.yaml'}"

    def start(*arguments: str, data: Path | None = None, **options: Any) -> Local:
        folder = f"--data={data or tmp_path / 'data'}"
        started.append(Local(tmp_path, template, folder, *arguments, **options))
        return started[-1]

    yield start
    for runner in started:
        runner.kill()


class OpenTable:
    """An empty table in the store of a data folder, with a client and its stream."""

    def __init__(self, folder: Path) -> None:
        self.folder = DataFolder(folder)
        self.folder.store.mkdir()
        self.endpoint = store.endpoint_of(self.folder.store)
        self.dynamodb = StoreClient(self.endpoint)
        document = load(FIXTURE)
        self.properties = Resolver(document).resolve(document["Resources"]["Table"]["Properties"])
        self.stream = ensure(self.dynamodb, TABLE, self.properties) or ""
        self.file = TableFile(store.table_path(self.folder.store, TABLE))

    def reader(self) -> StreamReader:
        return StreamReader(self.file.path, TABLE)

    def put(self, name: str, **attributes: str) -> None:
        item = {key: {"S": value} for key, value in attributes.items()}
        self.dynamodb.put_item(TableName=TABLE, Item={"PK": {"S": "P"}, "SK": {"S": name}, **item})

    def close(self) -> None:
        self.dynamodb.close()
        self.folder.close()


@pytest.fixture
def opened(tmp_path: Any) -> Iterator[OpenTable]:
    table = OpenTable(tmp_path / "data")
    yield table
    table.close()


def eventually(condition: Any, seconds: float = PATIENT_SECONDS) -> Any:
    """Waits until the condition is true and answers its value."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < deadline, "it never became true"
        time.sleep(0.01)
