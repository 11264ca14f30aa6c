"""Each wall of the cage by itself, and what happens on a system that does not offer one."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from mlcore.scorer_cage import cage
from mlcore.scorer_cage.cage import CageUnavailable
from tests.cage.scorers import LIMITS, run

LAYER = Path(cage.__file__).parents[2]
BEHIND_NAMESPACES = """
import json, os, socket, sys, time
sys.path.insert(0, sys.argv[1])
port, victim, file = int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
"".encode("idna")
from mlcore.scorer_cage import namespaces
answer = os.dup(1)
namespaces.enter()
def refused(attempt):
    try:
        attempt()
    except OSError as error:
        return type(error).__name__ + " " + str(error.errno)
    return "worked"
capabilities = namespaces.ctypes.create_string_buffer(24)
header = (namespaces.ctypes.c_uint32 * 2)(0x20080522, 0)
namespaces._libc.capget(header, capabilities)
os.write(answer, json.dumps({
    "connect": refused(lambda: socket.create_connection(("127.0.0.1", port), 2)),
    "read": refused(lambda: open(file)),
    "write": refused(lambda: open("/made", "w")),
    "signal": refused(lambda: os.kill(victim, 0)),
    "mount": "worked" if namespaces._libc.mount(b"x", b"/", b"tmpfs", 0, None) == 0 else "refused",
    "root": os.listdir("/"),
    "pid": os.getpid(),
    "user": os.getuid(),
    "capabilities": capabilities.raw.strip(b"\\0").hex(),
}).encode())
"""


def test_namespaces_alone_hide_files_network_and_processes(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("x")
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        subprocess.Popen(["sleep", "60"]) as victim,
    ):
        port = listener.getsockname()[1]
        arguments = [str(LAYER), str(port), str(victim.pid), str(secret)]
        ended = subprocess.run(
            [sys.executable, "-c", BEHIND_NAMESPACES, *arguments],
            capture_output=True,
            text=True,
            check=False,
        )
        victim.kill()
    assert json.loads(ended.stdout or "{}") == {
        "connect": "OSError 101",
        "read": "FileNotFoundError 2",
        "write": "OSError 30",
        "signal": "ProcessLookupError 3",
        "mount": "refused",
        "root": [],
        "pid": 1,
        "user": 65534,
        "capabilities": "",
    }, ended.stderr


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("mlcore.scorer_cage.namespaces._ALL = 1", "unshare failed: Invalid argument"),
        ("mlcore.scorer_cage.namespaces._MOUNT_POINT = b'/missing'", ""),
        (
            "mlcore.scorer_cage.syscalls._SECCOMP = dict.fromkeys(('x86_64', 'aarch64'), 9999)",
            "seccomp failed",
        ),
        ("mlcore.scorer_cage.syscalls.platform.machine = lambda: 's390x'", "'s390x'"),
        ("mlcore.scorer_cage.syscalls._REFUSE = 0x7fff0000", "let open through"),
    ],
    ids=["no namespaces", "no mount", "no seccomp", "another processor", "a filter without holes"],
)
def test_refuses_where_the_system_offers_no_cage(
    monkeypatch: pytest.MonkeyPatch, change: str, reason: str
) -> None:
    program = (
        "import sys; sys.path.insert(0, {!r}); import mlcore.scorer_cage.inside; "
        f"{change}; mlcore.scorer_cage.inside.main()"
    )
    monkeypatch.setattr(cage, "_PROGRAM", program)
    with pytest.raises(CageUnavailable, match="cannot lock up a process") as refused:
        run("return 'it ran'")
    assert reason in str(refused.value)


def test_refuses_on_other_systems(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(CageUnavailable, match="only on Linux"):
        run("return 'it ran'")


def test_the_filter_alone_needs_no_namespaces() -> None:
    made = run("import os\nreturn os.getpid() > 1", LIMITS._replace(namespaces=False))
    assert made.feedback[0].value is True
    made = run("import os\nreturn os.getpid() == 1")
    assert made.feedback[0].value is True
