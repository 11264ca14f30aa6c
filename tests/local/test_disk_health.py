"""A disk that is full, a file that is damaged: what callers, the log and the health check are told,
and how the runner ends."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from local.store.table_file import TableFile

from .conftest import PATIENT_SECONDS, ROOT, TABLE, Local, eventually

MEGABYTE = 1 << 20
FILE = f"store/{TABLE}.sqlite"
DISK_MEGABYTES = 32
WITHIN = ("unshare", "--user", "--map-root-user", "--mount")
MOUNT = f'mount -t tmpfs -o size={DISK_MEGABYTES}m none "$0" && exec "$@"'

FILES = "/api/2.0/mlflow-artifacts/artifacts/0/run/artifacts"


def ask(runner: Local, path: str, **fields: Any) -> tuple[int, Any]:
    status, body, _ = runner.request(
        "POST", f"/api/2.0/mlflow/{path}", json.dumps(fields), Content_Type="application/json"
    )
    return status, json.loads(body)


def upload(runner: Local, name: str, size: int) -> tuple[int, str]:
    status, body, _ = runner.request(
        "PUT", f"{FILES}/{name}", bytes(size), Content_Type="application/octet-stream"
    )
    return status, body.decode()


def health(runner: Local) -> tuple[int, str]:
    status, body, _ = runner.request("GET", "/health")
    return status, body.decode()


class Disk:
    """A small disk that only the runner on it sees, and its content from here."""

    def __init__(self, product: Any, folder: Path) -> None:
        folder.mkdir()
        within = (*WITHIN, "sh", "-c", MOUNT, str(folder))
        self.runner: Local = product(data=folder / "data", within=within)
        self.path = Path(f"/proc/{self.runner.process.pid}/root{folder}")

    def fill(self) -> None:
        with (self.path / "ballast").open("ab", buffering=0) as ballast:
            for size in (MEGABYTE, 4096, 1):
                with contextlib.suppress(OSError):
                    while ballast.write(bytes(size)):
                        pass

    def empty(self) -> None:
        (self.path / "ballast").unlink()


def can_mount(folder: Path) -> bool:
    folder.mkdir()
    command = (*WITHIN, "sh", "-c", MOUNT, str(folder), "true")
    return (
        shutil.which(WITHIN[0]) is not None and not subprocess.run(command, check=False).returncode
    )


@pytest.fixture
def disk(product: Any, tmp_path: Path) -> Disk:
    if not can_mount(tmp_path / "mountable"):
        pytest.skip("this user may not mount a small disk")
    return Disk(product, tmp_path / "disk")


def write_until_it_fails(runner: Local) -> Any:
    """The answer to the first write that the table does not take."""
    for number in range(2000):
        fields = {"name": f"e{number}", "tags": [{"key": "k", "value": "x" * 5000}]}
        status, body = ask(runner, "experiments/create", **fields)
        if status != 200:
            return status, body
    raise AssertionError("the disk is not full")


def test_a_full_disk_is_told_and_passes(disk: Disk) -> None:
    runner = disk.runner
    assert health(runner) == (200, "OK")
    disk.fill()
    for size in (6 * MEGABYTE, 5 * MEGABYTE, 100_000):
        status, text = upload(runner, "a.bin", size)
        assert status == 507, text
        assert "There is no space left for files." in text
    status, text = health(runner)
    assert status == 503
    assert "No space left on device" in text
    assert str(disk.runner.value("data")) in text

    status, body = write_until_it_fails(runner)
    assert (status, body["error_code"]) == (429, "REQUEST_LIMIT_EXCEEDED")
    eventually(lambda: "database or disk is full" in runner.output)
    assert eventually(lambda: "data cannot be written: No space left on device" in runner.output)
    assert health(runner)[0] == 503

    disk.empty()
    assert health(runner) == (200, "OK")
    eventually(lambda: "the data can be written again" in runner.output)
    assert ask(runner, "experiments/create", name="afterwards")[0] == 200
    assert upload(runner, "a.bin", 6 * MEGABYTE)[0] == 200

    disk.fill()
    write_until_it_fails(runner)
    assert runner.end() == 0
    # The indexer's failed batches are told with theirs; the end has none.
    assert 'File "' + str(ROOT / "local/__main__.py") not in runner.output


def test_a_start_on_a_full_disk_says_so(product: Any, tmp_path: Path) -> None:
    if not can_mount(tmp_path / "mountable"):
        pytest.skip("this user may not mount a small disk")
    folder = tmp_path / "disk"
    folder.mkdir()
    full = 'mount -t tmpfs -o size=64k none "$0" && head -c 40k /dev/zero > "$0/b" && exec "$@"'
    runner = product(
        data=folder / "data", within=(*WITHIN, "sh", "-c", full, str(folder)), ready=False
    )
    assert runner.process.wait(PATIENT_SECONDS) == 1
    assert "Traceback" not in runner.output
    assert "data cannot be written: No space left on device" in runner.output


def overwrite(folder: Path) -> None:
    """Everything but the first page of the file becomes noise."""
    path = folder / FILE
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(os.urandom(path.stat().st_size - 4096))


def test_damage_is_told_while_it_runs_and_at_the_next_start(product: Any, tmp_path: Path) -> None:
    runner = product()
    folder = tmp_path / "data"
    for number in range(20):
        assert ask(runner, "experiments/create", name=f"e{number}")[0] == 200
    # What was written goes from the log into the file.
    assert runner.end() == 0
    runner = product("--no-indexer")
    overwrite(folder)
    status, body = ask(runner, "experiments/create", name="lost")
    # It depends on the page that is damaged whether a read fails or a write, which may be done.
    refused = {(429, "REQUEST_LIMIT_EXCEEDED"), (503, "TEMPORARILY_UNAVAILABLE")}
    assert (status, body["error_code"]) in refused
    eventually(lambda: "database disk image is malformed" in runner.output)
    status, text = health(runner)
    assert status == 503
    assert f"{folder}/{FILE} is damaged" in text
    assert "docs/operations.md" in text
    assert eventually(lambda: f"{folder}/{FILE} is damaged" in runner.output)
    assert runner.end() == 0
    assert "Traceback" not in runner.output

    before = (folder / FILE).read_bytes()
    again = product(ready=False)
    assert again.process.wait(PATIENT_SECONDS) == 1
    assert f"local: the database file {folder}/{FILE} is damaged" in again.output
    assert "restore the file: docs/operations.md" in again.output
    assert "Traceback" not in again.output
    assert (folder / FILE).read_bytes() == before


def test_what_is_no_database_is_named(product: Any, tmp_path: Path) -> None:
    folder = tmp_path / "data"
    (folder / FILE).parent.mkdir(parents=True)
    (folder / FILE).write_bytes(b"hello " * 5000)
    runner = product(ready=False)
    assert runner.process.wait(PATIENT_SECONDS) == 1
    assert "is damaged (file is not a database)" in runner.output


def test_the_check_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sqlite3  # noqa: PLC0415

    path = tmp_path / "large.sqlite"
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, v BLOB)")
        connection.execute(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)"
            " INSERT INTO t SELECT i, randomblob(500) FROM n"
        )
        connection.execute("CREATE INDEX v ON t(v)")
    file = TableFile(path)
    assert file.damage(60.0) is None
    size = path.stat().st_size
    with path.open("r+b") as content:
        content.seek(size * 9 // 10)
        content.write(os.urandom(size // 20))
    assert file.damage(60.0)
    # No time, no finding: a start is not held up by a large file.
    assert file.damage(0.0) is None
    # How long a busy machine takes to begin is no time of the check.
    slow = tmp_path / "python"
    slow.write_text(f'#!/bin/sh\nsleep 1\nexec {sys.executable} "$@"\n')
    slow.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(slow))
    assert file.damage(0.9)
