"""A scorer's code cannot leave its cage: not by files, network, processes, secrets or the kernel,
neither with namespaces and filter nor with the filter alone.

Each escape first succeeds in a process without a cage."""

from __future__ import annotations

import json
import os
import socket
import sqlite3
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from mlcore.scorer_cage.cage import CageLimits, judge
from tests.cage.escapes import ESCAPES, NOT_OUTSIDE, PACKAGES, Targets
from tests.cage.scorers import as_code

SECRET = "the-secret-word-of-the-server"
CAGES = {"namespaces": True, "filter alone": False}
REFUSALS = (
    "Operation not permitted",
    "can't start new thread",
    "unable to open database file",
    "No module named 'smuggled'",
    "No usable temporary directory",
    "Temporary failure in name resolution",
)
"""How a sealed process learns that the kernel refused."""
OUTSIDE = """
import json, sys
inputs = json.load(sys.stdin)
made = {}
exec(inputs['program'], {}, made)
print(made['escape'](inputs))
"""


@pytest.fixture
def targets(monkeypatch: pytest.MonkeyPatch) -> Iterator[Targets]:
    """What escapes can reach, made anew for each of them."""
    monkeypatch.setenv("SERVER_SECRET", SECRET)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    # Not pytest's folder, which other users may not enter: the escape must fail at the cage.
    with tempfile.TemporaryDirectory() as made, socket.create_server(("127.0.0.1", 0)) as listener:
        folder = Path(made)
        folder.chmod(0o777)
        file = folder / "secret.txt"
        file.write_text(SECRET)
        file.chmod(0o666)
        (folder / "link").symlink_to(file)
        with sqlite3.connect(folder / "tenant.db") as database:
            database.execute("CREATE TABLE t AS SELECT 'secret' AS word")
        database.close()
        with zipfile.ZipFile(folder / "package.zip", "w") as package:
            package.writestr("smuggled.py", "")
        descriptor = os.open(file, os.O_RDONLY)
        os.set_inheritable(descriptor, True)
        victim = subprocess.Popen(["sleep", "60"])
        with socket.socket(socket.AF_UNIX) as unix:
            unix.bind(str(folder / "socket"))
            unix.listen()
            (folder / "socket").chmod(0o777)
            yield Targets(
                SECRET,
                str(file),
                str(folder / "link"),
                str(folder),
                str(folder / "tenant.db"),
                str(folder / "package.zip"),
                listener.getsockname()[1],
                str(folder / "socket"),
                victim.pid,
                os.getpid(),
                descriptor,
            )
        assert victim.poll() is None or victim.returncode != 0
        victim.kill()
        victim.wait()
        os.close(descriptor)


def _state(targets: Targets) -> list[tuple[str, int, int]]:
    """The files of the folder with their sizes and modes, and the secret."""
    entries = sorted(Path(targets.folder).iterdir())
    return [(entry.name, entry.lstat().st_size, entry.lstat().st_mode) for entry in entries]


def _function(body: str) -> str:
    return "def escape(inputs):\n" + "\n".join(f"    {line}" for line in body.split("\n"))


@pytest.mark.parametrize("name", sorted(ESCAPES.keys() - NOT_OUTSIDE))
def test_works_without_a_cage(targets: Targets, name: str) -> None:
    inputs = {**targets._asdict(), "program": _function(ESCAPES[name])}
    ended = subprocess.run(
        [sys.executable, "-c", OUTSIDE],
        input=json.dumps(inputs),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert "escaped" in ended.stdout, ended.stderr


@pytest.mark.parametrize("cage", CAGES)
@pytest.mark.parametrize("name", sorted(ESCAPES))
def test_fails_in_the_cage(targets: Targets, name: str, cage: str) -> None:
    before = _state(targets)
    made = judge(
        as_code("escape", ESCAPES[name].lstrip("\n"), "(inputs)"),
        {"inputs": targets._asdict()},
        CageLimits(seconds=20, namespaces=CAGES[cage], packages=PACKAGES),
    )
    assert made.failure is None
    (feedback,) = made.feedback
    outcome = feedback.value or feedback.error
    assert feedback.value in (None, "no"), f"{name} worked: {outcome}"
    if feedback.error is not None:
        assert any(words in str(outcome) for words in REFUSALS), outcome
    assert _state(targets) == before
