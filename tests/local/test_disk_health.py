"""A disk that is full, a file that is damaged: what callers, the log and the health check are told,
and how the runner ends."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from local.store.database import DISK_FULL
from local.store.file_maintenance import TableFile

from .conftest import PATIENT_SECONDS, ROOT, TABLE, Local, eventually

MEGABYTE = 1 << 20
FILE = f"store/{TABLE}.sqlite"
DISK_MEGABYTES = 32
LIMIT = resource.RLIMIT_FSIZE
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
    assert (status, body["error_code"], body["message"]) == (507, "INTERNAL_ERROR", DISK_FULL)
    assert ask(runner, "experiments/search", max_results=5)[0] == 200
    assert ask(runner, "runs/search", experiment_ids=["0"])[0] == 200
    eventually(lambda: "database or disk is full" in runner.output)
    assert eventually(lambda: "data cannot be written: No space left on device" in runner.output)
    assert health(runner)[0] == 503

    disk.empty()
    assert health(runner) == (200, "OK")
    eventually(lambda: "the data can be written again" in runner.output)
    assert ask(runner, "experiments/create", name="afterwards")[0] == 200
    # The indexer, which could not write either, has given up nothing.
    filter_string = "name ILIKE '%fterwards'"
    assert eventually(lambda: ask(runner, "experiments/search", filter=filter_string)[1])
    assert not (disk.path / "data/dead-letters.jsonl").exists()
    assert upload(runner, "a.bin", 6 * MEGABYTE)[0] == 200

    disk.fill()
    write_until_it_fails(runner)
    assert runner.end() == 0
    # The indexer's failed batches are told with theirs; the end has none.
    assert 'File "' + str(ROOT / "local/__main__.py") not in runner.output


STARTS = {
    "a new folder on a full disk": (
        'mount -t tmpfs -o size=64k none "$0" && head -c 40k /dev/zero > "$0/b"',
        "data cannot be written: No space left on device",
    ),
    "a disk without any room": (
        'mount -t tmpfs -o size=64k none "$0" && mkdir "$0/data"'
        ' && { cat /dev/zero > "$0/b" 2>&-; true; }',
        "No space left on device",
    ),
    "a known folder on a full disk": (
        'mount -t tmpfs -o size=9m none "$0" && cp -r "$0.known" "$0/data"'
        ' && { cat /dev/zero > "$0/b" 2>&-; true; }',
        "No space left on device",
    ),
    "a new folder on a read-only disk": (
        'mount -t tmpfs none "$0" && mount -o remount,ro "$0"',
        "cannot use the folder {data}: Read-only file system",
    ),
    "a known folder on a read-only disk": (
        'mount -t tmpfs none "$0" && cp -r "$0.known" "$0/data" && mount -o remount,ro "$0"',
        "cannot use the folder {data}: Read-only file system",
    ),
    "a read-only file": (
        'mount -t tmpfs none "$0" && cp -r "$0.known" "$0/data"'
        f' && mount --bind "$0/data/{FILE}" "$0/data/{FILE}"'
        f' && mount -o remount,bind,ro "$0/data/{FILE}"',
        f"the database file {{data}}/{FILE} is read-only. Make it writable",
    ),
}
"""What is mounted and done before the start, and what the runner says."""


@pytest.mark.parametrize("case", STARTS)
def test_a_start_without_writing_says_why_and_what_to_do(
    product: Any, tmp_path: Path, case: str
) -> None:
    if not can_mount(tmp_path / "mountable"):
        pytest.skip("this user may not mount a small disk")
    folder = tmp_path / "disk"
    folder.mkdir()
    mount, reason = STARTS[case]
    if "known" in mount:
        known = product("--no-indexer", data=tmp_path / "disk.known")
        assert ask(known, "experiments/create", name="before")[0] == 200
        assert known.end() == 0
    within = (*WITHIN, "sh", "-c", f'{mount} && exec "$@"', str(folder))
    runner = product(data=folder / "data", within=within, ready=False)
    assert runner.process.wait(PATIENT_SECONDS) == 1, runner.output
    lines = [line for line in runner.output.splitlines() if "Can't drop" not in line]
    assert len(lines) == 1, lines
    assert lines[0].startswith("local: ")
    assert reason.format(data=folder / "data") in lines[0]
    assert "choose another folder with --data" in lines[0]


def writing_processes(runner: Local) -> list[int]:
    """The runner and the process that follows the stream."""
    children = Path(f"/proc/{runner.process.pid}/task/{runner.process.pid}/children")
    return [runner.process.pid, *map(int, children.read_text().split())]


def test_a_limit_of_file_sizes_is_told_and_passes(product: Any) -> None:
    """The system's answer to a full quota and to a file that is too large is the same for SQLite:
    an error of writing."""
    runner = product()
    assert ask(runner, "experiments/create", name="before")[0] == 200
    limits = {process: resource.prlimit(process, LIMIT) for process in writing_processes(runner)}
    for process, (_, hard) in limits.items():
        resource.prlimit(process, LIMIT, (0, hard))
    for _ in range(3):
        status, body = ask(runner, "experiments/create", name="refused")
        assert (status, body["error_code"]) == (507, "INTERNAL_ERROR")
        assert "Remove the cause, then repeat the request" in body["message"]
    status, text = upload(runner, "a.bin", 1000)
    assert (status, "no space left" in text) == (507, True)
    assert ask(runner, "experiments/search", max_results=5)[0] == 200
    assert health(runner)[0] == 503
    for process, (soft, hard) in limits.items():
        resource.prlimit(process, LIMIT, (soft, hard))
    assert ask(runner, "experiments/create", name="refused")[0] == 200
    assert upload(runner, "a.bin", 1000)[0] == 200
    assert eventually(lambda: health(runner) == (200, "OK"))
    assert runner.end() == 0


def immutable(paths: Iterable[Path], flag: str) -> bool:
    """Sets or takes away the attribute that keeps even open files from being written; returns
    whether this user and this file system can."""
    command = ["chattr", flag, *map(str, paths)]
    return (
        shutil.which(command[0]) is not None
        and not subprocess.run(command, check=False, stderr=subprocess.DEVNULL).returncode
    )


def test_files_that_become_read_only_are_told_and_pass(product: Any, tmp_path: Path) -> None:
    runner = product()
    assert ask(runner, "experiments/create", name="before")[0] == 200
    # Not the shared memory of SQLite's processes: to make that read-only ends them.
    files = [tmp_path / "data" / FILE, tmp_path / "data" / f"{FILE}-wal"]
    if not immutable(files, "+i"):
        pytest.skip("this user cannot make files immutable here")
    try:
        for _ in range(3):
            status, body = ask(runner, "experiments/create", name="refused")
            assert (status, body["error_code"]) == (507, "INTERNAL_ERROR")
            assert "then repeat the request" in body["message"]
        with ThreadPoolExecutor(8) as callers:  # some of them open connections of their own
            body = {"experiment_ids": ["0"]}
            results = list(callers.map(lambda _: ask(runner, "runs/search", **body), range(40)))
            answers = callers.map(
                lambda number: ask(runner, "experiments/create", name=f"r{number}"), range(40)
            )
        assert {status for status, _ in results} == {200}
        assert {status for status, _ in answers} == {507}
        assert health(runner)[0] == 503
        assert "cannot be written" in health(runner)[1]
    finally:
        immutable(files, "-i")
    with ThreadPoolExecutor(8) as callers:
        answers = callers.map(
            lambda number: ask(runner, "experiments/create", name=f"r{number}"), range(40)
        )
    assert {status for status, _ in answers} == {200}
    assert eventually(lambda: health(runner) == (200, "OK"))
    assert runner.end() == 0


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
