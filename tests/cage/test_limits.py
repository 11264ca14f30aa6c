"""A scorer's time, memory, processes and output are bounded, and what it took is measured."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from mlcore.scorer_cage import cage, child_processes, server_stop
from tests.cage.scorers import LIMITS, run

SHORT = LIMITS._replace(seconds=1)
MEGABYTE = 1024 * 1024
ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("namespaces", [True, False])
@pytest.mark.parametrize(
    "body",
    [
        "while True: pass",
        "import time\ntime.sleep(600)",
        "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nwhile True: pass",
        "import threading\nlock = threading.Lock()\nlock.acquire()\nlock.acquire()",
        "import re\nre.match('(a+)+$', 'a' * 40 + 'b')",
        "return 9 ** 9 ** 9",
    ],
    ids=["loop", "sleep", "ignored signals", "deadlock", "regular expression", "long number"],
)
def test_stops_a_scorer_that_takes_too_long(body: str, namespaces: bool) -> None:
    limits = SHORT._replace(namespaces=namespaces, packages=(*LIMITS.packages, "signal"))
    started = time.monotonic()
    made = run(body, limits)
    assert made.failure == "The scorer timed out after 1 seconds."
    assert made.feedback == ()
    assert 1 <= time.monotonic() - started < 12
    assert made.wall_ms >= 1000


def test_leaves_no_process_behind() -> None:
    run("while True: pass", SHORT)
    listed = subprocess.run(
        ["ps", "-eo", "stat,args"], capture_output=True, text=True, check=True
    ).stdout
    assert "mlcore.scorer_cage.inside" not in "\n".join(
        line for line in listed.splitlines() if not line.startswith("Z")
    )


def test_a_server_that_stops_ends_judgements(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_stop, "requested", threading.Event())
    with ThreadPoolExecutor(1) as pool:
        judgement = pool.submit(run, "import time\ntime.sleep(600)")
        _wait(lambda: bool(server_stop.running))
        server_stop.stop_all()
        with pytest.raises(cage.ServerStops):
            judgement.result(10)
    assert not server_stop.running
    with pytest.raises(cage.ServerStops):
        run("return 1")


@pytest.mark.parametrize("namespaces", [True, False], ids=["namespaces", "filter alone"])
def test_a_server_that_dies_leaves_no_process_behind(namespaces: bool) -> None:
    program = (
        "from tests.cage.scorers import LIMITS, run; "
        f"run('while True: pass', LIMITS._replace(namespaces={namespaces}))"
    )
    with subprocess.Popen([sys.executable, "-c", program], cwd=ROOT, env=_environment()) as server:
        _wait(lambda: len(child_processes.descendants(server.pid)) == 1 + namespaces)
        time.sleep(0.5)
        started = child_processes.descendants(server.pid)
        server.kill()
    _wait(lambda: not any(map(_runs, started)))


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


def _runs(process: int) -> bool:
    try:
        status = Path(f"/proc/{process}/stat").read_text(encoding="utf-8")
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] not in ("Z", "X")


def _wait(is_true: Callable[[], bool]) -> None:
    until = time.monotonic() + 20
    while not is_true():
        assert time.monotonic() < until
        time.sleep(0.02)


def test_counts_the_processor_time_of_a_scorer_that_was_stopped() -> None:
    busy, idle = run("while True: pass", SHORT), run("import time\ntime.sleep(9)", SHORT)
    assert busy.cpu_ms > idle.cpu_ms


@pytest.mark.parametrize(
    "body",
    [
        "x = 'a' * 10 ** 10",
        "x = [0]\nwhile True: x += x",
        "import mmap\nkept = [mmap.mmap(-1, 10 ** 8) for _ in range(100)]\nreturn len(kept)",
        "return bytearray(10 ** 10)",
    ],
    ids=["a text", "a list", "mapped memory", "bytes"],
)
def test_bounds_memory(body: str) -> None:
    made = run(body)
    assert made.failure is not None or made.feedback[0].error is not None


def test_a_scorer_that_crashes_the_interpreter_fails_alone(tmp_path: Path) -> None:
    made = run("import ctypes\nctypes.string_at(0)")
    assert made.failure == (
        "The scorer's process ended without an answer "
        "(SIGSEGV: it may have used too much memory or time)."
    )
    assert not list(tmp_path.glob("core*"))
    small = LIMITS._replace(memory_bytes=128 * MEGABYTE)  # more takes longer to fill
    deep = run("import sys\nsys.setrecursionlimit(10 ** 9)\nf = lambda n: f(n + 1)\nf(0)", small)
    # How the interpreter fails depends on which of its limits it meets first.
    assert deep.failure is not None or deep.feedback[0].error is not None
    assert run("return True").feedback[0].value is True


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("import os\nwhile True: os.write(3, b'x' * 65536)", "longer than 262144 bytes"),
        ("return 'x' * 1000000", "longer than 262144 bytes"),
        ("raise ValueError('x' * 10000000)", "longer than 262144 bytes"),
        ("import os\nos._exit(0)", "not JSON"),
        ("import os\nos._exit(7)", "exit code 7"),
    ],
)
def test_bounds_the_answer(body: str, reason: str) -> None:
    made = run(body)
    assert made.feedback == ()
    assert reason in (made.failure or "")


def test_discards_what_a_scorer_prints() -> None:
    body = (
        "import sys\nfor _ in range(1000): print('x' * 1000)\nprint(1, file=sys.stderr)\nreturn 1"
    )
    assert run(body).feedback[0].value == 1


def test_no_thread_and_no_process_in_ten_thousand_attempts() -> None:
    body = """
import os, threading
made = 0
for _ in range(5000):
    try:
        threading.Thread(target=int).start()
        made += 1
    except RuntimeError:
        pass
    try:
        if os.fork() == 0:
            os._exit(0)
        made += 1
    except PermissionError:
        pass
return made"""
    assert run(body, LIMITS._replace(seconds=60)).feedback[0].value == 0


def test_eight_scorers_at_the_same_time_keep_apart() -> None:
    made: dict[int, object] = {}

    def run_one(number: int) -> None:
        made[number] = run("return inputs", signature="(inputs)", inputs=number).feedback[0].value

    threads = [threading.Thread(target=run_one, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made == {number: number for number in range(8)}
