"""One built function under Lambda's runtime interface emulator, which the SAM CLI ships: no Docker,
and the interpreter, layer and handler of Lambda. Measures; judges no answer."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from tests.arch import project
from tests.engines import ROOT, free_port
from tests.rehearsal.stack import SAM
from tests.servers import environment

RUNTIME = ROOT / ".tools" / "lambda-runtime"
PIN = "awslambdaric==4.2.2"
START_SECONDS = 60
_INIT = re.compile(rb"INIT REPORT\(durationMs: ([\d.]+)")


class Invocation(NamedTuple):
    answer: Any
    init_ms: float
    """From the start of the interpreter to the first event, with all imports."""
    first_ms: float
    second_ms: float
    cpu_ms: float
    """User and system time until the first answer, which hardly depends on what else the machine
    does."""


def emulator() -> Path:
    machine = "arm64" if platform.machine() in ("aarch64", "arm64") else "x86_64"
    [found] = SAM.parents[1].glob(f"lib/python3*/site-packages/samcli/local/rapid/*-{machine}")
    return found


def runtime(python: str) -> Path:
    """An interpreter that has Lambda's runtime client."""
    own = RUNTIME / "bin" / "python"
    if not (RUNTIME / PIN).exists():
        uv = str(Path(sys.executable).with_name("uv"))
        for command in (
            ["venv", "--quiet", "--clear", "--python", python, str(RUNTIME)],
            ["pip", "install", "--quiet", "--python", str(own), PIN],
        ):
            subprocess.run([uv, *command], check=True)
        (RUNTIME / PIN).touch()
    return own


def invoke(
    build: Path, name: str, event: dict[str, Any], python: Path, **variables: str
) -> Invocation:
    """Twice: the first invocation starts the function. ``name`` is its logical id."""
    folder = build / name
    domain = project.handlers()[name]
    port = free_port()
    command = [
        *(str(emulator()), "--log-level", "info"),
        *("--runtime-interface-emulator-address", f"127.0.0.1:{port}"),
        *("--runtime-api-address", f"127.0.0.1:{free_port()}"),
        *(str(python), "-m", "awslambdaric", f"{domain}.app.handler"),
    ]
    settings = environment(
        **variables,
        PYTHONPATH=os.pathsep.join(map(str, (folder, *build.glob("*Layer/python")))),
        AWS_LAMBDA_FUNCTION_NAME=name.removesuffix("Function"),
    )
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            command, cwd=folder, env=settings, stdout=log, stderr=log, start_new_session=True
        )
        try:
            answer, first = _post(port, event)
            cpu = sum(_cpu_ms(child) for child in _children(process.pid))
            _, second = _post(port, event)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        log.seek(0)
        told = log.read()
    found = _INIT.search(told)
    assert found is not None, told.decode(errors="replace")
    init = float(found[1])
    return Invocation(answer, init, max(first - init, 0.0), second, cpu)


def _post(port: int, event: dict[str, Any]) -> tuple[Any, float]:
    url = f"http://127.0.0.1:{port}/2015-03-31/functions/function/invocations"
    deadline = time.monotonic() + START_SECONDS
    while True:
        began = time.perf_counter()
        try:
            with urllib.request.urlopen(url, json.dumps(event).encode(), timeout=60) as answer:
                return json.load(answer), 1000 * (time.perf_counter() - began)
        except OSError:
            assert time.monotonic() < deadline, "the runtime interface emulator did not start"
            time.sleep(0.01)


def _children(parent: int) -> Iterator[int]:
    """The emulator runs on Linux alone."""
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            if int(_fields(path)[1]) == parent:
                yield int(path.parent.name)


def _cpu_ms(process: int) -> float:
    user, system = _fields(Path(f"/proc/{process}/stat"))[11:13]
    return 1000 * (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def _fields(stat: Path) -> list[str]:
    """From the state on; the name before it may hold spaces."""
    return stat.read_text().rpartition(")")[2].split()
