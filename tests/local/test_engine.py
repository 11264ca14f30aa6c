"""Who reaches the engine of a runner, and what becomes of one that dies alone."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from local.engine import engine as engines
from local.engine import launcher as engine_launcher
from local.engine.engine import Engine
from local.folder import DataFolder
from mlcore.db.local_socket import SocketConnection, socket_path

from .conftest import PATIENT_SECONDS, Local, eventually

LISTENING = "0A"
NOBODY = 65534
MADE_UP = {
    "X-Amz-Target": "DynamoDB_20120810.ListTables",
    "Content-Type": "application/x-amz-json-1.0",
    "X-Amz-Date": "20200101T000000Z",
    "Authorization": "AWS4-HMAC-SHA256 Credential=anybody/20200101/us-east-1/dynamodb/aws4_request,"
    " SignedHeaders=host, Signature=00",
}
on_linux = pytest.mark.skipif(sys.platform != "linux", reason="the kernel's help is Linux's")


def engine_pid(folder: str | Path) -> int:
    return int(json.loads((Path(folder) / "engine.json").read_text())["pid"])


def ports(pid: int) -> set[int]:
    """The TCP ports that a process listens on."""
    inodes = set()
    for one in Path(f"/proc/{pid}/fd").iterdir():
        try:
            inodes.add(str(one.readlink()))
        except FileNotFoundError:
            continue
    found = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == LISTENING and f"socket:[{fields[9]}]" in inodes:
                found.add(int(fields[1].rpartition(":")[2], 16))
    return found


def answer(port: int) -> str:
    request = urllib.request.Request(f"http://127.0.0.1:{port}/", b"{}", MADE_UP)
    try:
        with urllib.request.urlopen(request, timeout=PATIENT_SECONDS) as reply:
            return str(reply.read())
    except urllib.error.HTTPError as refusal:
        return str(refusal.read())


@on_linux
def test_no_port_answers_in_place_of_the_product(local: Any) -> None:
    runner = local("--ephemeral")
    engine = engine_pid(runner.value("data"))
    open_ports = ports(engine) | ports(runner.process.pid)
    assert runner.port in open_ports
    for port in open_ports:
        assert "TableNames" not in answer(port)
    assert ports(engine) == set()


@on_linux
@pytest.mark.parametrize("place", ["data", "ephemeral"])
def test_other_users_read_nothing(local: Any, tmp_path: Path, place: str) -> None:
    folder = tmp_path / "data"
    folder.mkdir(mode=0o755)
    runner = local("--ephemeral" if place == "ephemeral" else f"--data={folder}")
    assert runner.request("PUT", "/items/a", "1", Content_Type="text/plain")[0] == 200
    path = socket_path(runner.value("engine"))
    assert path is not None
    assert stat.S_IMODE(Path(path).stat().st_mode) == 0o600
    assert stat.S_IMODE(Path(path).parent.stat().st_mode) == 0o700
    for kept in Path(runner.value("data")).iterdir():
        assert not kept.stat().st_mode & 0o077, kept
    if os.geteuid() == 0:
        script = "import socket, sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1])"
        refused = subprocess.run(
            ["/usr/bin/env", "python3", "-c", script, path],
            user=NOBODY,
            group=NOBODY,
            extra_groups=(),
            capture_output=True,
            text=True,
            check=False,
        )
        assert "PermissionError" in refused.stderr
    assert runner.end() == 0
    assert not Path(path).exists()


@on_linux
def test_what_an_earlier_version_left_readable_is_closed(local: Any, tmp_path: Path) -> None:
    folder = tmp_path / "data"
    assert local(f"--data={folder}").end() == 0
    (folder / "dynamodb.sqlite").chmod(0o644)
    assert local(f"--data={folder}").end() == 0
    assert stat.S_IMODE((folder / "dynamodb.sqlite").stat().st_mode) == 0o600


def asked(engine: Engine) -> str:
    path = socket_path(engine.endpoint)
    if path is None:
        return answer(int(engine.endpoint.rpartition(":")[2]))
    connection = SocketConnection(path, 10)
    try:
        connection.request("POST", "/", b"{}", MADE_UP)
        return str(connection.getresponse().read())
    finally:
        connection.close()


LAUNCHER = "import sys; print('the kernel says no', file=sys.stderr); sys.exit(97)"


@pytest.mark.parametrize("support", ["another system", "forbidden"])
def test_where_nothing_can_be_done_the_user_is_warned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any, support: str
) -> None:
    if support == "another system":
        monkeypatch.setattr(engines, "can_serve", lambda: False)
    else:
        # The real launcher runs in the second attempt, which asks nothing of the kernel.
        wrapper = tmp_path / "launcher.py"
        real = engine_launcher.__file__
        wrapper.write_text(
            f"import runpy, sys\nif sys.argv[2] != '-1':\n    {LAUNCHER}\n"
            f"runpy.run_path({real!r}, run_name='__main__')\n"
        )
        monkeypatch.setattr(engine_launcher, "__file__", str(wrapper))
    folder = DataFolder(tmp_path / "data")
    engine = Engine(folder)
    try:
        engine.start()
        assert engine.endpoint.startswith("http://127.0.0.1:")
        assert "TableNames" in asked(engine)
        said = capsys.readouterr().err
        assert "WARNING: this system cannot keep the DynamoDB engine behind" in said
        assert engine.endpoint in said
        assert ("the kernel says no" in said) == (support == "forbidden")
    finally:
        engine.stop()
        folder.close()


def killed(folder: Path) -> int:
    """Kills the engine alone; its number."""
    pid = engine_pid(folder)
    os.kill(pid, signal.SIGKILL)
    return pid


def test_an_engine_that_dies_alone_is_started_again(local: Any, tmp_path: Path) -> None:
    folder = tmp_path / "data"
    runner: Local = local(f"--data={folder}")
    stop = threading.Event()
    acknowledged: list[str] = []
    statuses: set[int] = set()

    def write() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            status = runner.request("PUT", f"/items/{number}", "v", Content_Type="text/plain")[0]
            statuses.add(status)
            if status == 200:
                acknowledged.append(str(number))

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(3):
            before = len(acknowledged)
            eventually(lambda: len(acknowledged) > before + 20)  # noqa: B023 - used at once
            pid = killed(folder)
            eventually(lambda: engine_pid(folder) != pid)  # noqa: B023
        before = len(acknowledged)
        eventually(lambda: len(acknowledged) > before + 20)
    finally:
        stop.set()
        writer.join()
    # A write that was under way is sent again; its connection waits for the next engine.
    assert statuses <= {200, 500}
    for name in acknowledged:
        assert runner.request("GET", f"/items/{name}")[1] == b"v"
    last = acknowledged[-1]
    eventually(lambda: runner.request("GET", f"/items/{last}?kind=COPY")[0] == 200)
    assert runner.output.count("the DynamoDB engine ended with code -9; it is started again") == 3
    assert runner.end() == 0
    assert "Traceback" not in runner.output


def test_an_engine_that_keeps_dying_ends_the_runner(local: Any, tmp_path: Path) -> None:
    folder = tmp_path / "data"
    runner: Local = local(f"--data={folder}")
    for _ in range(engines.MOST_ENDS - 1):
        pid = killed(folder)
        eventually(lambda: engine_pid(folder) != pid)  # noqa: B023 - used at once
    killed(folder)
    assert runner.process.wait(PATIENT_SECONDS) == 1
    assert "the DynamoDB engine ended 5 times within 60 s, now with code -9" in runner.output
    assert "docs/operations.md" in runner.output
    assert "Traceback" not in runner.output
