"""The DynamoDB engine as a child process.

Starts it, ends it, and ends the one that a killed runner left behind.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import platform
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from local.folder import DataFolder

_ROOT = Path(__file__).resolve().parent.parent
_OVERRIDE = "MLFLOW_SERVERLESS_ENGINE"
_START_SECONDS = 10.0
_STOP_SECONDS = 5.0
_PR_SET_PDEATHSIG = 1


class EngineFailed(Exception):
    """The engine is absent or does not start; the message says what to do."""


def executable() -> Path:
    """The engine's binary, as ``make setup`` installs it.

    Raises:
        EngineFailed: it is not installed.
    """
    system = {"Linux": "linux", "Darwin": "darwin"}.get(platform.system(), platform.system())
    machine = {"x86_64": "x64", "AMD64": "x64", "aarch64": "arm64"}.get(
        platform.machine(), platform.machine()
    )
    installed = _ROOT / ".tools/node_modules/@dynoxide" / f"{system}-{machine}" / "dynoxide"
    chosen = Path(os.environ.get(_OVERRIDE) or installed)
    if not chosen.is_file():
        raise EngineFailed(f"the DynamoDB engine is not installed ({chosen}): run make setup")
    return chosen


def _die_with(parent: int) -> Callable[[], None] | None:
    """Something for the child to run first, so that the kernel ends it when the runner dies."""
    if sys.platform != "linux":
        return None
    prctl = ctypes.CDLL(None, use_errno=True).prctl

    def prepare() -> None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
        if os.getppid() != parent:  # the runner died before the line above
            os._exit(1)

    return prepare


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _command_of(pid: int) -> str:
    """The command line of a process, empty when there is none."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        if Path("/proc/self").exists():
            return ""
    listed = subprocess.run(
        ["ps", "-o", "command=", "-p", str(pid)],  # noqa: S607 - where there is no /proc
        capture_output=True,
        text=True,
        check=False,
    )
    return listed.stdout


def stop_abandoned(folder: DataFolder) -> bool:
    """Ends the engine that an earlier runner left on this folder; True when there was one.

    Only a process whose command line names this folder's file is touched, so a reused process id is
    safe.
    """
    try:
        pid = int(json.loads(folder.engine_record.read_text())["pid"])
    except (OSError, ValueError, KeyError, TypeError):
        return False
    found = False
    deadline = time.monotonic() + _STOP_SECONDS
    while str(folder.database) in _command_of(pid):
        found = True
        late = time.monotonic() > deadline
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL if late else signal.SIGTERM)
        time.sleep(0.02)
        if late and time.monotonic() > deadline + _STOP_SECONDS:
            raise EngineFailed(f"process {pid} holds {folder.database} and cannot be ended")
    folder.engine_record.unlink(missing_ok=True)
    return found


class Engine:
    """A running engine on a folder's file.

    Start it in the main thread: it dies with the thread that started it.
    """

    def __init__(self, folder: DataFolder) -> None:
        """Starts the engine and waits until it accepts connections.

        Raises:
            EngineFailed: it is absent, or ends at once.
        """
        binary = executable()
        stop_abandoned(folder)
        self._folder = folder
        self.port = _free_port()
        with folder.engine_log.open("wb") as log:
            self.process = subprocess.Popen(
                [
                    str(binary),
                    "serve",
                    "--host=127.0.0.1",
                    f"--port={self.port}",
                    f"--db-path={folder.database}",
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                # A Ctrl-C in the terminal is for the runner: running requests still need the
                # engine.
                start_new_session=True,
                preexec_fn=_die_with(os.getpid()),  # noqa: PLW1509 - no thread runs yet
            )
        folder.engine_record.write_text(json.dumps({"pid": self.process.pid, "port": self.port}))
        self._wait()

    @property
    def endpoint(self) -> str:
        """The URL for DynamoDB clients."""
        return f"http://127.0.0.1:{self.port}"

    def _wait(self) -> None:
        deadline = time.monotonic() + _START_SECONDS
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port)):
                return
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.stop()
                log = self._folder.engine_log.read_text(errors="replace").strip()
                raise EngineFailed(
                    f"the DynamoDB engine does not start: {log or 'it says nothing'}"
                )
            time.sleep(0.005)

    def stop(self) -> None:
        """Ends the engine; what it acknowledged is in its file."""
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self._folder.engine_record.unlink(missing_ok=True)
