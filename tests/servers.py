"""Starts and stops the servers that tests talk to over HTTP: the local runner and stock MLflow."""

from __future__ import annotations

import contextlib
import http.client
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.engines import ROOT, free_port

START_SECONDS = 120
FOLLOW_SECONDS = 120
# A proxy or a bystander's settings must not change what the client or the server does.
_DROPPED = ("MLFLOW_", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy")


class Server(NamedTuple):
    """A running server; ``process`` leads a process group of its own."""

    url: str
    process: subprocess.Popen[bytes]
    log: Path

    def kill(self) -> None:
        """kill -9, as a crash would: nothing gets the chance to tidy up."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def stop(self) -> None:
        """SIGTERM, then SIGKILL for what is left after ten seconds."""
        self.process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(10)
        self.kill()


REMEMBERED = {"PYTHONDONTWRITEBYTECODE": ""}
"""For programs of .tools, which start often and are installed without bytecode: what they import is
compiled once, wherever the environment says otherwise."""


def environment(**more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_DROPPED)}
    quiet = {"MLFLOW_DISABLE_TELEMETRY": "true", "DO_NOT_TRACK": "true", "NO_PROXY": "127.0.0.1"}
    return {**kept, **quiet, **more}


def healthy(url: str, path: str = "/health") -> bool:
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=5)
    try:
        connection.request("GET", path)
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def start(
    command: list[str],
    port: int,
    folder: Path,
    cwd: Path,
    printed: str = "",
    *,
    health: str = "/health",
    **more: str,
) -> Server:
    """Starts a server and waits until GET ``health`` answers 200 and its output holds ``printed``.

    The output goes to server.log, behind that of an earlier server in the same folder.
    """
    log = folder / "server.log"
    with log.open("ab") as output:
        before = output.tell()
        process = subprocess.Popen(
            command,
            cwd=cwd,
            env=environment(**more),
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    server = Server(f"http://127.0.0.1:{port}", process, log)
    deadline = time.monotonic() + START_SECONDS
    while not (healthy(server.url, health) and printed.encode() in log.read_bytes()[before:]):
        if process.poll() is not None or time.monotonic() > deadline:
            server.kill()
            raise RuntimeError(f"{' '.join(command)} did not start:\n{log.read_text()[-4000:]}")
        time.sleep(0.05)
    return server


def start_product(folder: Path, *arguments: str, port: int | None = None, **more: str) -> Server:
    """The local runner; throws its data away unless the arguments name ``--data``. It publishes
    system tables for those who ask for fresh ones; most tests never ask."""
    port = port or free_port()
    chosen = arguments if "--data" in arguments else ("--ephemeral", *arguments)
    rarely = ("--parameter", "SystemTablesMinutes=59")
    command = [sys.executable, "-m", "local", "--port", str(port), *rarely, *chosen]
    return start(command, port, folder, ROOT, printed="\nready\n", **more)


ADMIN = ("admin", "an-admin-password")

_BASIC_AUTH = """[mlflow]
default_permission = READ
database_uri = sqlite:///{folder}/auth.db
admin_username = admin
admin_password = an-admin-password
authorization_function = mlflow.server.auth:authenticate_request_basic_auth
auth_cache_ttl_seconds = 3600
"""

_OURS = {"PYTHONPATH": str(ROOT)}
"""Where the program that starts the stock server is."""


def start_stock(folder: Path, *arguments: str, **more: str) -> Server:
    """Stock MLflow on SQLite, one worker."""
    return _start_stock(folder, arguments, {**more, **_OURS})


def start_stock_with_login(folder: Path, *arguments: str) -> Server:
    """As :func:`start_stock`, with its basic-auth app."""
    settings = folder / "basic_auth.ini"
    settings.write_text(_BASIC_AUTH.format(folder=folder))
    more = {"MLFLOW_AUTH_CONFIG_PATH": str(settings), "MLFLOW_FLASK_SERVER_SECRET_KEY": "x"}
    return _start_stock(folder, ("--app-name", "basic-auth", *arguments), {**more, **_OURS})


def start_old_stock(folder: Path, python: Path) -> Server:
    """As :func:`start_stock`, with the MLflow of another interpreter, whose gunicorn it finds by
    its place."""
    path = f"{python.parent}{os.pathsep}{os.environ['PATH']}"
    more = {"PATH": path, "PYTHONWARNINGS": "ignore", **REMEMBERED}
    return _start_stock(folder, (), more, (str(python), "-m", "mlflow", "server"))


def _start_stock(
    folder: Path,
    arguments: tuple[str, ...],
    more: dict[str, str],
    program: tuple[str, ...] = (sys.executable, "-m", "tests.stock_server"),
) -> Server:
    port = free_port()
    command = [
        *(*program, "--host", "127.0.0.1", "--port", str(port)),
        *("--workers", "1", "--backend-store-uri", f"sqlite:///{folder / 'mlflow.db'}"),
        *("--artifacts-destination", str(folder / "artifacts")),
        *arguments,
    ]
    # Its job runners start eight processes that no test needs; and it looks for newer prices of
    # models in the internet, for seconds.
    quiet = {
        "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
        "MLFLOW_MODEL_CATALOG_URI": "",
        **more,
    }
    return start(command, port, folder, folder, **quiet)


@contextlib.contextmanager
def stopped(server: Server) -> Iterator[Server]:
    """Stops the server when the block ends."""
    try:
        yield server
    finally:
        server.stop()


def announced_table(server: Server) -> str:
    """The endpoint of the table of our runner, as it says at its last start."""
    return re.findall(r"^ *table +(\S+)", server.log.read_text(), re.MULTILINE)[-1]


def followed(server: Server, **more: str) -> str:
    """Waits until the indexer has followed: what ``verify`` says as soon as it finds nothing wrong
    and nothing behind."""
    command = [sys.executable, "-m", "local.admin", "verify"]
    deadline = time.monotonic() + FOLLOW_SECONDS
    while True:
        answer = subprocess.run(
            command,
            cwd=ROOT,
            env=environment(AWS_ENDPOINT_URL_DYNAMODB=announced_table(server), **more),
            capture_output=True,
            text=True,
            check=False,
        )
        waiting = re.search(r"[1-9]\d* (behind|writes on their way)", answer.stdout)
        if answer.returncode == 0 and not waiting:
            return answer.stdout
        assert time.monotonic() < deadline, answer.stdout[-5000:] + answer.stderr[-5000:]
        time.sleep(0.5)
