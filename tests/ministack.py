"""An emulator of AWS for tests, MiniStack, in an environment of its own in .tools."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engines import REGION, ROOT, free_port
from tests.servers import REMEMBERED, environment

# It pins another botocore than the product, hence the environment of its own.
PIN = "ministack==1.5.33"
FOLDER = ROOT / ".tools" / "ministack"
# What it needs besides to run Lambda functions from a SAM template, on their interpreter.
LAMBDA_PINS = (PIN, "aws-sam-translator==1.115.0")
LAMBDA_FOLDER = ROOT / ".tools" / "ministack-lambda"
_PROGRAM = Path(__file__).with_name("ministack_program.py")
START_SECONDS = 120


def executable(python: str | None = None) -> Path:
    """Installs it when it is not there; workers of one test run wait for each other.

    Args:
        python: the interpreter for Lambda functions; none to run none.
    """
    folder, pins = (LAMBDA_FOLDER, LAMBDA_PINS) if python else (FOLDER, (PIN,))
    program, done = folder / "bin" / "ministack", folder / "installed.txt"
    wanted = "\n".join(pins)
    folder.parent.mkdir(exist_ok=True)
    with folder.with_suffix(".lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        if done.exists() and done.read_text() == wanted:
            return program
        search_path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        uv = shutil.which("uv", path=search_path)
        assert uv, "uv is installed by `make setup`"
        for command in (
            ["venv", "--quiet", "--clear", "--python", python or sys.executable, str(folder)],
            ["pip", "install", "--quiet", "--python", str(folder / "bin" / "python"), *pins],
        ):
            subprocess.run([uv, *command], check=True, env=environment())
        done.write_text(wanted)
    return program


@contextlib.contextmanager
def running(folder: Path, python: str | None = None, **more: str) -> Iterator[str]:
    """The URL of a server with nothing in it; what it prints goes to ``folder``."""
    port = free_port()
    log = folder / "ministack.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            # -P: beside the program is a module that has the name of the package.
            [str(executable(python).with_name("python")), "-P", str(_PROGRAM)],
            cwd=folder,
            env=environment(
                BIND_HOST="127.0.0.1",
                GATEWAY_PORT=str(port),
                SFTP_ENABLED="0",
                IOT_MTLS_ENABLED="0",
                **REMEMBERED,
                **more,
            ),
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    url = f"http://127.0.0.1:{port}"
    try:
        deadline = time.monotonic() + START_SECONDS
        while not _answers(url):
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.05)
        yield url
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for unpacked in (*folder.glob("ministack-lambda-*"), folder / "unpacked"):
            shutil.rmtree(unpacked, ignore_errors=True)


def make_bucket(url: str, name: str) -> None:
    request = urllib.request.Request(f"{url}/{name}", method="PUT")
    with urllib.request.urlopen(request, timeout=60):
        pass


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5):
            return True
    except urllib.error.HTTPError:
        return True
    except OSError:
        return False


def use(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes clients of AWS that the test makes from now on talk to the emulator."""
    for name, value in (
        ("AWS_ENDPOINT_URL", endpoint),
        ("AWS_DEFAULT_REGION", REGION),
        ("AWS_ACCESS_KEY_ID", "test"),
        ("AWS_SECRET_ACCESS_KEY", "test"),
    ):
        monkeypatch.setenv(name, value)
