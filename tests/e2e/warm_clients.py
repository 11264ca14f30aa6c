"""Scripts with a client whose import takes longer than they do: a process for each interpreter
imports the client once, and each script is a fork of it."""

from __future__ import annotations

import atexit
import contextlib
import json
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.servers import REMEMBERED, environment

PROGRAM = Path(__file__).with_name("warm_client.py")


class WarmClient:
    """Runs one script after the other."""

    def __init__(self, interpreter: str, module: str) -> None:
        self._process = subprocess.Popen(
            [interpreter, str(PROGRAM), module],
            env=environment(**REMEMBERED),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(
        self, command: Sequence[str], folder: Path, variables: Mapping[str, str]
    ) -> subprocess.CompletedProcess[str]:
        """Waits until the script has ended: how long it may take is its test's."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with tempfile.TemporaryDirectory() as kept:
            output, errors = Path(kept, "output"), Path(kept, "errors")
            task = {
                "arguments": list(command),
                "folder": str(folder),
                "environment": dict(variables),
                "output": str(output),
                "errors": str(errors),
            }
            print(json.dumps(task), file=self._process.stdin, flush=True)
            code = self._process.stdout.readline()
            assert code, f"the client of {command} has ended"
            texts = [path.read_text() if path.exists() else "" for path in (output, errors)]
            return subprocess.CompletedProcess(command, int(code), *texts)

    def close(self) -> None:
        self._process.kill()
        with contextlib.suppress(OSError):
            self._process.communicate()


_running: dict[str, WarmClient] = {}


def run(
    interpreter: str,
    module: str,
    command: Sequence[str],
    folder: Path,
    variables: Mapping[str, str],
) -> subprocess.CompletedProcess[str]:
    """Runs a script, with its arguments, in a folder, with the client that the module is."""
    if interpreter not in _running:
        _running[interpreter] = WarmClient(interpreter, module)
    try:
        return _running[interpreter].run(command, folder, variables)
    except BaseException:  # of whom nobody knows which answer comes next
        _running.pop(interpreter).close()
        raise


@atexit.register
def _close() -> None:
    for client in _running.values():
        client.close()
