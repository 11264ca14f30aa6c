"""Starts servers that a command needs while it runs: MLflow's own server on a database, or this
product on a data folder that no other process serves."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from operate.module_loading import CannotRun

START_SECONDS: Final = 180
_STOP_SECONDS: Final = 20
_SHOWN_CHARACTERS: Final = 2000
_ROOT: Final = Path(__file__).resolve().parents[1]


@contextlib.contextmanager
def stock_server(database: str, files: Path) -> Iterator[str]:
    """Context manager: runs the installed MLflow's server on a database and a file folder,
    reachable from this machine only. Yields its address.

    Raises:
        CannotRun: the server does not start; the message contains the end of its output.
    """
    port = _free_port()
    options = ("--host", "127.0.0.1", "--port", str(port), "--workers", "1")
    # Passed as a variable, because other users of the machine can see arguments, and the URI may
    # contain a password.
    variables = {
        "MLFLOW_BACKEND_STORE_URI": database,
        "MLFLOW_ARTIFACTS_DESTINATION": str(files),
        "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
        "MLFLOW_DISABLE_TELEMETRY": "true",
        "MLFLOW_MODEL_CATALOG_URI": "",
        "MLFLOW_ALLOW_FILE_STORE": "true",  # a folder of runs is only read
    }
    command = [sys.executable, "-m", "operate.stock_server", *options]
    with _running("MLflow's server", command, f"http://127.0.0.1:{port}", variables) as url:
        yield url


@contextlib.contextmanager
def product(data: Path) -> Iterator[str]:
    """Context manager: runs this product on a data folder, without the indexer. Yields its address.

    Raises:
        CannotRun: the product does not start.
    """
    port = _free_port()
    options = ("--port", str(port), "--data", str(data), "--no-indexer")
    command = [sys.executable, "-m", "local", *options]
    with _running("this product", command, f"http://127.0.0.1:{port}", {}) as url:
        yield url


@contextlib.contextmanager
def _running(
    name: str, command: list[str], url: str, variables: Mapping[str, str]
) -> Iterator[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("MLFLOW_")}
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            command,
            cwd=_ROOT,
            env={**kept, **variables},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            deadline = time.monotonic() + START_SECONDS
            while not _answers(url):
                if process.poll() is not None or time.monotonic() > deadline:
                    output.seek(0)
                    text = output.read().decode(errors="replace").strip()
                    if "Traceback" in text:
                        text = text.splitlines()[-1]
                    raise CannotRun(f"{name} does not start: {text[-_SHOWN_CHARACTERS:]}")
                time.sleep(0.1)
            yield url
        finally:
            process.terminate()
            try:
                process.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/health", timeout=5) as answer:  # noqa: S310 - http
            return bool(answer.status == 200)
    except OSError:
        return False


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
