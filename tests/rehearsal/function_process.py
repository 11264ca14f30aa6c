"""A function under Lambda's runtime interface emulator, as a process of this machine. Imports
nothing that is installed, so that any interpreter can run it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

START_SECONDS = 60


class FunctionProcess:
    """A running function, which answers one event after the other.

    Args:
        emulator: the program that the SAM CLI ships.
        python: an interpreter that has Lambda's runtime client.
        places: where modules are imported from; the first is the working directory.
    """

    def __init__(
        self,
        emulator: Path,
        python: Path,
        handler: str,
        places: list[Path],
        variables: Mapping[str, str],
        log: IO[bytes],
    ) -> None:
        port = _free_port()
        self._url = f"http://127.0.0.1:{port}/2015-03-31/functions/function/invocations"
        self.process = subprocess.Popen(
            [
                *(str(emulator), "--log-level", "info"),
                *("--runtime-interface-emulator-address", f"127.0.0.1:{port}"),
                *("--runtime-api-address", f"127.0.0.1:{_free_port()}"),
                *(str(python), "-m", "awslambdaric", handler),
            ],
            cwd=places[0],
            env={**variables, "PYTHONPATH": os.pathsep.join(map(str, places))},
            stdout=log,
            stderr=log,
            start_new_session=True,
        )

    def answer(self, event: str) -> tuple[Any, float]:
        """The function's answer to an event in JSON, and the milliseconds until it came. Waits for
        the emulator's start."""
        deadline = time.monotonic() + START_SECONDS
        while True:
            began = time.perf_counter()
            try:
                with urllib.request.urlopen(self._url, event.encode(), timeout=60) as answer:
                    return json.load(answer), 1000 * (time.perf_counter() - began)
            except OSError:
                assert time.monotonic() < deadline, "the runtime interface emulator did not start"
                time.sleep(0.01)

    def stop(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


def _free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port: int = listening.getsockname()[1]
        return port
