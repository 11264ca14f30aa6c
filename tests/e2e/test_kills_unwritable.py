"""kill -9 while nothing can be written, because files may not grow or are read-only, and with a
second runner on the same folder: afterwards everything that was answered is there, what was not is
whole or absent, and the product finds nothing wrong.

KILLS is how often something is killed.
"""

from __future__ import annotations

import contextlib
import os
import random
import re
import resource
import shutil
import struct
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.e2e.killing import (
    HASTY,
    KILLS,
    PATIENT,
    SEED,
    Hasty,
    Product,
    done,
    settled,
    wait_for,
)
from tests.e2e.storm import Client, Worker
from tests.engines import ROOT
from tests.servers import environment

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(3600)]

LIMIT = resource.RLIMIT_FSIZE
FILE = f"store/{os.environ.get('TABLE_NAME', 'mlflow-serverless')}.sqlite"
FRAME_BYTES = 24 + 4096
REFUSED = 6
"""Writes that are refused before something is killed."""
PATIENT_SECONDS = 60


def start_another(data: Path) -> subprocess.Popen[str]:
    """A second runner on a folder, on a port of its own."""
    command = [sys.executable, "-m", "local", "--port=0", "--data", str(data)]
    return subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def reason_of_end(process: subprocess.Popen[str]) -> str:
    """Why a runner refuses to start: its only line."""
    output, _ = process.communicate(timeout=PATIENT_SECONDS)
    assert process.returncode == 1, output
    (line,) = output.splitlines()
    return line


def end_of_log(data: Path) -> int:
    """Where SQLite's next transaction begins in its log, whose file may be longer: mxFrame of the
    first header in the shared memory, https://www.sqlite.org/walformat.html."""
    with (data / f"{FILE}-shm").open("rb") as shared:
        (frames,) = struct.unpack("@I", shared.read(20)[16:])
    return 32 + int(frames) * FRAME_BYTES


@contextlib.contextmanager
def full(product: Product, rng: random.Random) -> Iterator[None]:
    """No file grows beyond a size that the store's log soon needs, so that a write ends at any of
    its bytes. What the runner starts meanwhile has the same limit."""
    limit = end_of_log(product.data) + rng.randrange(60_000)
    for process in product.processes():
        with contextlib.suppress(ProcessLookupError):
            resource.prlimit(process, LIMIT, (limit, resource.RLIM_INFINITY))
    try:
        yield
    finally:
        for process in product.processes():
            with contextlib.suppress(ProcessLookupError):
                resource.prlimit(process, LIMIT, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


def can_be_immutable(folder: Path) -> bool:
    """Whether this user and this file system know files that may not even be written through open
    descriptors."""
    probe = folder / "probe"
    probe.touch()
    is_possible = shutil.which("chattr") is not None and not chattr("+i", probe)
    if is_possible:
        chattr("-i", probe)
    return is_possible


def chattr(flag: str, *paths: Path) -> int:
    command = ["chattr", flag, *map(str, paths)]
    return subprocess.run(command, check=False, stderr=subprocess.DEVNULL).returncode


@contextlib.contextmanager
def read_only(product: Product) -> Iterator[None]:
    files = [product.data / f"{FILE}{ending}" for ending in ("", "-wal")]
    chattr("+i", *files)
    try:
        yield
    finally:
        chattr("-i", *files)


def wait_until_refused(product: Product, hasty: Sequence[Hasty]) -> None:
    """Until several writes in a row were refused, while reads are answered."""
    before = sum(writer.lost for writer in hasty)
    deadline = time.monotonic() + PATIENT_SECONDS
    while sum(writer.lost for writer in hasty) < before + REFUSED:
        assert time.monotonic() < deadline, "nothing was refused"
        time.sleep(0.01)
    reader = Client(product.server.url)
    for run in hasty:
        assert reader.call("GET", f"runs/get?run_id={run.run_id}")[0] == 200
    reader.close()


def test_nothing_answered_is_lost_while_nothing_can_be_written(tmp_path: Path) -> None:
    rng = random.Random(SEED)
    product = Product(tmp_path)
    causes = ["full", "read-only"] if can_be_immutable(tmp_path) else ["full"]
    url = product.server.url
    patient = [Worker(url, number, SEED, 10**9) for number in range(PATIENT)]
    hasty = [Hasty(url, number) for number in range(HASTY)]
    writers: list[Worker | Hasty] = [*patient, *hasty]
    happened: dict[str, int] = {}
    try:
        for writer in writers:
            writer.start()
        for number in range(KILLS):
            wait_for(done(writers) + rng.randrange(10, 40), writers)
            assert "is in use by another runner (process" in reason_of_end(
                start_another(product.data)
            )
            cause = causes[number % len(causes)]
            what = ("runner", "both", "stream process")[number % 3]
            happened[f"{what} while {cause}"] = happened.get(f"{what} while {cause}", 0) + 1
            with full(product, rng) if cause == "full" else read_only(product):
                wait_until_refused(product, hasty)
                product.end(what)
                if cause == "read-only" and what != "stream process":
                    reason = reason_of_end(start_another(product.data))
                    assert re.search(r"is read-only\. Make it writable|cannot be used", reason)
            product.recover()
        for writer in writers:
            writer.finish()
        for writer in writers:
            writer.join()
        product.kill("runner")
        faults = [f"at once, {fault}" for writer in hasty for fault in writer.check()]
        output = settled(product.server)
        faults += [fault for writer in writers for fault in writer.check()]
    finally:
        product.server.stop()
    print(  # noqa: T201
        f"seed {SEED}: {done(writers)} writes, kills {happened},"
        f" {sum(worker.client.retries for worker in patient)} repeated,"
        f" {sum(writer.lost for writer in hasty)} never answered\n{output}"
    )
    assert faults == []
    assert not re.search(r"[1-9]\d* (findings|behind|writes on their way)", output)
    log = product.server.log.read_text()
    assert not (product.data / "dead-letters.jsonl").exists(), log[-3000:]


def test_one_of_two_runners_that_start_together_serves(tmp_path: Path) -> None:
    """Killed at any moment of its start, the one leaves the folder to the next one."""
    rng = random.Random(SEED)
    data = tmp_path / "data"
    for _ in range(max(2, KILLS // 4)):
        two = [start_another(data), start_another(data)]
        deadline = time.monotonic() + PATIENT_SECONDS
        while all(runner.poll() is None for runner in two):
            assert time.monotonic() < deadline, "both serve"
            time.sleep(0.01)
        refused = next(runner for runner in two if runner.poll() is not None)
        (serving,) = (runner for runner in two if runner is not refused)
        assert f"is in use by another runner (process {serving.pid})" in reason_of_end(refused)
        time.sleep(rng.uniform(0, 1))
        assert serving.poll() is None
        serving.kill()
        serving.communicate()
    product = Product(tmp_path)
    try:
        assert not re.search(r"[1-9]\d* findings", settled(product.server))
    finally:
        product.server.stop()
