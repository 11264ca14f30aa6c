"""Runs the code of one scorer on one trace or session, in a process of its own without rights.

The answer of the process is untrusted; :mod:`mlcore.scorer_cage.answers` checks it.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
import sysconfig
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

from mlcore.entities.evaluation.code_scorers import MAX_SECONDS, source_digest
from mlcore.environment import in_lambda
from mlcore.scorer_cage import answers, child_processes, server_stop
from mlcore.scorer_cage.answers import ScorerFeedback

PACKAGES: Final = "MLFLOW_SCORER_PACKAGES"
"""Environment: installed packages that scorers may import, separated by commas."""
MEMORY_BYTES: Final = 768 * 1024 * 1024
"""Memory limit of the process, including about 15 MB for the interpreter, and the memory that
imported packages use."""
MAX_ANSWER_BYTES: Final = 256 * 1024
_SEALED: Final = b"sealed\n"  # mlcore.scorer_cage.inside, which the server does not import
_REFUSED: Final = 3  # likewise
_LAYER: Final = str(Path(__file__).resolve().parents[2])
_PROGRAM: Final = (
    "import sys; sys.path.insert(0, {!r}); from mlcore.scorer_cage.inside import main; main()"
)
_LIBRARY_PATH: Final = "LD_LIBRARY_PATH"  # Lambda's interpreter needs it to start
_ONE_THREAD: Final = {
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "BLIS_NUM_THREADS": "1",
    "NUMEXPR_NUM_THREADS": "1",
    "NUMBA_NUM_THREADS": "1",
    "POLARS_MAX_THREADS": "1",
    "RAYON_NUM_THREADS": "1",
    "JE_ARROW_MALLOC_CONF": "background_thread:false",
}
"""Environment variables by which libraries start no threads when they are imported. A process with
further threads is not sealed, because the filter of system calls would not apply to them."""
_LAMBDA_PATHS: Final = ("/opt/scorer_packages", "/opt/python")
"""Folders into which Lambda unpacks layers: those of ``operate.scorer_layer``, and all others."""
_STOP_SECONDS: Final = 2.0
_POLL_SECONDS: Final = 0.002
_CHUNK: Final = 65_536


class CageUnavailable(Exception):
    """Raised if this operating system does not offer what the cage (the process without rights for
    a scorer's code) needs; the message says what is missing."""


class ServerStops(Exception):
    """Raised if the run of a code scorer ends because the server stops, not by the scorer's
    fault."""


class CageLimits(NamedTuple):
    seconds: float = MAX_SECONDS
    memory_bytes: int = MEMORY_BYTES
    answer_bytes: int = MAX_ANSWER_BYTES
    namespaces: bool = True
    """Whether the process must also be in namespaces of its own. Lambda offers none."""
    packages: tuple[str, ...] = ()
    """Installed packages that the scorer may import, beside the standard library."""
    package_paths: tuple[str, ...] = ()
    """Folders in which packages are searched; empty for those of this installation."""


class Judgement(NamedTuple):
    """The feedback and the costs of one execution of a scorer in its process."""

    feedback: tuple[ScorerFeedback, ...]
    failure: str | None
    """The reason if there is no feedback: the process was stopped, died, or its answer was
    malformed."""
    wall_ms: int
    """Time in ms from the start of the process to its end."""
    cpu_ms: int
    """Processor time in ms, including the start of the interpreter."""
    dollars: float = 0.0
    """The price of the run in AWS, in US dollars; 0 on a laptop."""


def allowed_packages() -> tuple[str, ...]:
    """Returns the Python packages that code scorers may import, as the operator has configured."""
    return tuple(filter(None, map(str.strip, os.environ.get(PACKAGES, "").split(","))))


def judge(scorer: Mapping[str, Any], call: Mapping[str, Any], limits: CageLimits) -> Judgement:
    """Runs a scorer in a cage (a process without rights) and returns its feedback and its costs.

    Args:
        scorer: the scorer's JSON, as
            :meth:`mlcore.entities.evaluation.code_scorers.CodeScorer.in_the_cage` returns it.
        call: JSON of ``inputs``, ``outputs``, ``expectations``, and of ``trace`` or ``session``: a
            trace is ``{"info": …, "spans": […]}``.
        limits: of time, memory and the answer's size; and the packages that the scorer may import.

    Raises:
        CageUnavailable: the system offers no cage, or the scorer's source differs from its
            ``source_digest``. The scorer has not run.
        ServerStops: :func:`server_stop.stop_all` was called.
    """
    if scorer.get("source_digest") != source_digest(scorer):
        raise CageUnavailable("The scorer's source was changed on its way, so it was not run.")
    if sys.platform != "linux":
        raise CageUnavailable(
            "Scorers that are code run only on Linux, which can lock a process up. "
            "Run the scorer with mlflow.genai.evaluate from a client."
        )
    request = {
        "scorer": dict(scorer),
        "call": dict(call),
        "packages": limits.packages,
        "layer": _LAYER,
        "package_paths": (limits.package_paths or _package_paths()) if limits.packages else (),
        "namespaces": limits.namespaces,
        "server": os.getpid(),
        "memory_bytes": limits.memory_bytes,
        "cpu_seconds": int(limits.seconds) + 1,
    }
    started = time.monotonic()
    if server_stop.requested.is_set():
        raise ServerStops
    ended = _Process(json.dumps(request).encode(), limits).wait()
    wall_ms = round((time.monotonic() - started) * 1000)
    # A scorer can end its process with any exit code, but only after the process was sealed.
    is_sealed = ended.answer.startswith(_SEALED)
    if ended.exit_code == _REFUSED and not is_sealed:
        reason = ended.answer.decode(errors="replace")
        raise CageUnavailable(
            f"This system cannot lock up a process for a scorer's code ({reason}). "
            "Run the scorer with mlflow.genai.evaluate from a client."
        )
    failure = ended.failure
    feedback: tuple[ScorerFeedback, ...] = ()
    if failure is None:
        try:
            feedback = answers.parse(ended.answer.removeprefix(_SEALED))
        except answers.MalformedAnswer as error:
            failure = f"The scorer's answer cannot be used: {error}"
    return Judgement(feedback, failure, wall_ms, ended.cpu_ms)


class _Ended(NamedTuple):
    answer: bytes
    exit_code: int
    failure: str | None
    cpu_ms: int


class _Process:
    """The process of one judgement."""

    def __init__(self, request: bytes, limits: CageLimits) -> None:
        self._limits = limits
        self._ending = threading.Lock()
        """Held while the process is reaped. After that, another process may have its id, so it must
        not be killed any more."""
        environment = {name: os.environ[name] for name in (_LIBRARY_PATH,) if name in os.environ}
        environment |= _ONE_THREAD
        descriptor = os.memfd_create("request")
        with os.fdopen(descriptor, "w+b") as file:
            file.write(request)
            file.seek(0)
            self._process = subprocess.Popen(  # noqa: S603 -- a fixed program
                [sys.executable, "-I", "-S", "-c", _PROGRAM.format(_LAYER)],
                stdin=file,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=environment,
                cwd="/",
                close_fds=True,
                start_new_session=True,
            )
        server_stop.running.add(self)
        if server_stop.requested.is_set():
            self.stop()

    def stop(self) -> None:
        """Kills the process and all processes that it has started; :meth:`wait` then raises
        ServerStops. Another thread may call this."""
        with self._ending:
            if self._process.returncode is None:
                child_processes.kill(
                    [*child_processes.descendants(self._process.pid), self._process.pid]
                )

    def wait(self) -> _Ended:
        """Receives the answer and waits for the end of the process. Returns both. Raises
        ServerStops."""
        answer, failure, is_ended = b"", None, False
        try:
            answer, failure = self._receive()
            is_ended = failure is None
        finally:
            status, cpu_ms = self._end(is_ended)
            server_stop.running.discard(self)
        if server_stop.requested.is_set():
            raise ServerStops
        code = os.waitstatus_to_exitcode(status)
        if failure is None and code != 0:
            failure = f"The scorer's process ended without an answer ({_ending(code)})."
        return _Ended(answer, code, failure, cpu_ms)

    def _receive(self) -> tuple[bytes, str | None]:
        """Returns the answer of the process, and the reason to stop it (None if it ended by
        itself)."""
        deadline = time.monotonic() + self._limits.seconds
        pipe = self._process.stdout
        answer = bytearray()
        with selectors.DefaultSelector() as selector:
            selector.register(pipe, selectors.EVENT_READ)  # type: ignore[arg-type]
            while selector.select(max(0.0, deadline - time.monotonic())):
                part = os.read(pipe.fileno(), _CHUNK)  # type: ignore[union-attr]
                if not part:
                    return bytes(answer), None
                answer += part
                if len(answer) > self._limits.answer_bytes:
                    most = self._limits.answer_bytes
                    return b"", f"The scorer's answer is longer than {most} bytes."
        return b"", f"The scorer timed out after {self._limits.seconds:g} seconds."

    def _end(self, is_ended: bool) -> tuple[int, int]:
        """Stops the process, if it still runs, and all processes that it has started. Returns its
        exit status and its processor time in ms."""
        self._process.stdout.close()  # type: ignore[union-attr]
        has_ended = self._has_ended(_STOP_SECONDS if is_ended else 0)
        if not has_ended:
            started = child_processes.descendants(self._process.pid)
            # The parent of the process in the namespaces forwards the signal, and its own processor
            # time then includes that of the scorer.
            os.kill(self._process.pid, signal.SIGTERM)
            child_processes.kill(started)
            self._has_ended(_STOP_SECONDS)
        # The process is not reaped yet, so no other process can have its id.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        with self._ending:
            _, status, usage = os.wait4(self._process.pid, 0)
            self._process.returncode = os.waitstatus_to_exitcode(status)
        return status, round((usage.ru_utime + usage.ru_stime) * 1000)

    def _has_ended(self, seconds: float) -> bool:
        """Waits at most ``seconds`` for the end of the process, without reaping it. Returns whether
        it has ended."""
        deadline = time.monotonic() + seconds
        while True:
            options = os.WEXITED | os.WNOHANG | os.WNOWAIT
            if os.waitid(os.P_PID, self._process.pid, options) is not None:
                return True
            if time.monotonic() >= deadline:
                return False
            time.sleep(_POLL_SECONDS)


def _ending(code: int) -> str:
    """Describes how a process ended: by its exit code, or by the signal in it."""
    number = -code if code < 0 else code - 128
    try:
        name = signal.Signals(number).name
    except ValueError:
        return f"exit code {code}"
    return f"{name}: it may have used too much memory or time"


def _package_paths() -> tuple[str, ...]:
    if in_lambda():
        return tuple(filter(os.path.isdir, _LAMBDA_PATHS))
    paths = sysconfig.get_paths()
    return tuple(dict.fromkeys((paths["purelib"], paths["platlib"])))
