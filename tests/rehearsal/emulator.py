"""One built function under Lambda's runtime interface emulator, which the SAM CLI ships: no Docker,
and the interpreter, layer and handler of Lambda. Measures; judges no answer."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from tests.arch import project
from tests.engines import ROOT
from tests.rehearsal.function_process import FunctionProcess
from tests.rehearsal.stack import SAM
from tests.servers import environment

RUNTIME = ROOT / ".tools" / "lambda-runtime"
PIN = "awslambdaric==4.2.2"
MACHINE: Final = "arm64" if platform.machine() in ("aarch64", "arm64") else "x86_64"
"""The architecture of this machine, by Lambda's name."""
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
    [path] = SAM.parents[1].glob(f"lib/python3*/site-packages/samcli/local/rapid/*-{MACHINE}")
    return path


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
    settings = environment(**variables, AWS_LAMBDA_FUNCTION_NAME=name.removesuffix("Function"))
    places = [folder, *build.glob("*Layer/python")]
    text = json.dumps(event)
    with tempfile.TemporaryFile() as log:
        handler = f"{domain}.app.handler"
        function = FunctionProcess(emulator(), python, handler, places, settings, log)
        try:
            answer, first = function.answer(text)
            cpu = sum(_cpu_ms(child) for child in _children(function.process.pid))
            _, second = function.answer(text)
        finally:
            function.stop()
        log.seek(0)
        output = log.read()
    match = _INIT.search(output)
    assert match is not None, output.decode(errors="replace")
    init = float(match[1])
    return Invocation(answer, init, max(first - init, 0.0), second, cpu)


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
