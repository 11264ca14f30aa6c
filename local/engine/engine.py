"""The DynamoDB engine as a child process.

Starts it, starts it again when it dies alone, ends it, and ends the one that a killed runner left
behind.
"""

from __future__ import annotations

import array
import contextlib
import json
import os
import platform
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path

from local.engine import launcher as engine_launcher
from local.engine.unix_socket import CannotServe, EngineSocket, can_serve
from local.folder import DataFolder
from local.log import report
from mlcore.db.local_socket import endpoint

_ROOT = Path(__file__).resolve().parents[2]
_OVERRIDE = "MLFLOW_SERVERLESS_ENGINE"
_START_SECONDS = 60.0
_STOP_SECONDS = 5.0

MOST_ENDS = 5
ENDS_SECONDS = 60.0
"""An engine that ends more often than this is not started again."""

_PAUSE_SECONDS = 0.5
_SAID_CHARACTERS = 500
_KEEPS_ENDING = (
    f"the DynamoDB engine ended {MOST_ENDS} times within {ENDS_SECONDS:g} s, now with code "
    "{code}; the runner ends. {log} has what the engine said. If there is memory and room on the "
    "disk, start again: the file is checked then, and docs/operations.md tells how to restore it."
)
_OPEN = (
    "WARNING: this system cannot keep the DynamoDB engine behind a private socket ({why}). Every "
    "process of this machine, of other users too, and web pages that guess its port can read and "
    "change all data, password hashes included, at {endpoint}. Use this runner on a machine that "
    "nobody else works on."
)


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


def _make_private(folder: DataFolder) -> None:
    """What an earlier version left readable to others no longer is."""
    for ending in ("", "-wal", "-shm"):
        with contextlib.suppress(OSError):
            folder.database.with_name(folder.database.name + ending).chmod(0o600)


class Engine:
    """An engine on a folder's file: from :meth:`start` until :meth:`stop`.

    A thread of its own starts the process, for the kernel ends it with the thread that started it;
    answers for its socket; and starts it again when it ends alone. Connections wait meanwhile.
    """

    def __init__(self, folder: DataFolder, gave_up: Callable[[str], None] = report) -> None:
        """``gave_up`` is called, in another thread, when the engine keeps ending, with what the
        user is to know."""
        self._folder = folder
        self._gave_up = gave_up
        self._socket: EngineSocket | None = None
        self._port = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._launching = threading.Lock()
        self._started = threading.Event()
        self._stopping = threading.Event()
        self._failure = ""
        self._thread = threading.Thread(target=self._run, name="engine", daemon=True)

    def start(self) -> None:
        """Starts the engine and waits until it accepts connections.

        Raises:
            EngineFailed: it is absent, or ends at once.
        """
        executable()
        stop_abandoned(self._folder)
        _make_private(self._folder)
        try:
            self._folder.engine_log.write_bytes(b"")
            if can_serve():
                self._socket = EngineSocket(self._folder.engine_socket)
            else:
                self._open_port("this system has no such thing")
        except OSError as error:
            raise EngineFailed(f"the DynamoDB engine cannot be started: {error}") from error
        self._thread.start()
        if not self._started.wait(_START_SECONDS):
            self._failure = f"it is not ready after {_START_SECONDS:g} s"
        if self._failure:
            self.stop()
            raise EngineFailed(f"the DynamoDB engine does not start: {self._failure}")

    @property
    def endpoint(self) -> str:
        """The URL for DynamoDB clients."""
        if self._socket:
            return endpoint(str(self._socket.path))
        return f"http://127.0.0.1:{self._port}"

    def stop(self) -> None:
        """Ends the engine; what it acknowledged is in its file."""
        self._stopping.set()
        with self._launching:
            process = self._process
        if process and process.poll() is None:
            process.terminate()
            try:
                process.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        if self._thread.is_alive():
            self._thread.join()
        if self._socket:
            self._socket.close()
        self._folder.engine_record.unlink(missing_ok=True)

    # -- in the engine's thread ----------------------------------------------------------------

    def _run(self) -> None:
        ends: deque[float] = deque(maxlen=MOST_ENDS)
        try:
            while True:
                code = self._live()
                if self._stopping.is_set():
                    return
                if not self._started.is_set():
                    self._failure = self._said() or f"it ends with code {code}"
                    return
                ends.append(time.monotonic())
                if len(ends) == MOST_ENDS and ends[-1] - ends[0] < ENDS_SECONDS:
                    self._gave_up(_KEEPS_ENDING.format(code=code, log=self._folder.engine_log))
                    return
                report(f"the DynamoDB engine ended with code {code}; it is started again")
                self._stopping.wait(_PAUSE_SECONDS * (len(ends) - 1))
        except Exception as error:
            self._failure = str(error)
            if self._started.is_set():
                self._gave_up(f"the DynamoDB engine cannot be started again: {error}")
        finally:
            self._started.set()

    def _live(self) -> int | None:
        """One process, from its start to its end; its exit code, None when it was not started."""
        ours, theirs = socket.socketpair()
        with ours:
            with theirs:
                process = self._launch(theirs)
            if process is None:
                return None
            why = self._follow(process, ours)
        code = process.wait()
        if why and not self._started.is_set() and not self._stopping.is_set():
            self._open_port(why)
            return self._live()
        return code

    def _launch(self, channel: socket.socket) -> subprocess.Popen[bytes] | None:
        """Starts a process unless the engine is to stop."""
        guarded = self._socket is not None
        with self._launching, self._folder.engine_log.open("ab") as log:
            if self._stopping.is_set():
                return None
            process = self._process = subprocess.Popen(
                [
                    *(sys.executable, "-I", "-S", engine_launcher.__file__),
                    *(str(os.getpid()), str(channel.fileno() if guarded else -1)),
                    *(str(executable()), "serve", "--host=127.0.0.1"),
                    *(f"--port={self._port}", f"--db-path={self._folder.database}"),
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=(channel.fileno(),) if guarded else (),
                # A Ctrl-C in the terminal is for the runner: running requests still need the
                # engine.
                start_new_session=True,
                umask=0o077,
            )
        record = {"pid": process.pid, "endpoint": self.endpoint}
        written = self._folder.engine_record.with_suffix(".new")
        written.write_text(json.dumps(record))
        written.replace(self._folder.engine_record)
        return process

    def _follow(self, process: subprocess.Popen[bytes], channel: socket.socket) -> str:
        """Attends to a process until it ends; answers why it cannot be guarded, "" when it can."""
        if self._socket is None:
            self._wait_for_port(process)
            return ""
        _, rights, _, _ = channel.recvmsg(1, socket.CMSG_SPACE(array.array("i").itemsize))
        if not rights:
            code = process.wait()
            return self._said() if code == engine_launcher.CANNOT_GUARD else ""
        notifications = array.array("i", rights[0][2])[0]
        ended = os.pidfd_open(process.pid)
        try:
            self._socket.serve(notifications, ended, self._started.set)
        except CannotServe as error:
            return str(error)
        finally:
            os.close(ended)
            os.close(notifications)
        return ""

    def _open_port(self, why: str) -> None:
        if self._socket:
            self._socket.close()
            self._socket = None
        self._port = _free_port()
        self._folder.engine_log.write_bytes(b"")
        report(_OPEN.format(why=why, endpoint=self.endpoint))

    def _wait_for_port(self, process: subprocess.Popen[bytes]) -> None:
        while process.poll() is None and not self._started.is_set():
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self._port)):
                self._started.set()
            time.sleep(0.005)

    def _said(self) -> str:
        with contextlib.suppress(OSError):
            return self._folder.engine_log.read_text(errors="replace").strip()[-_SAID_CHARACTERS:]
        return ""
