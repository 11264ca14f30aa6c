"""Scripts with a client whose import takes longer than they do: a process for each interpreter and
client imports it once, and each script is a fork of that process."""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import select
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from tests.servers import REMEMBERED, environment

PROGRAM: Final = Path(__file__).with_name("warm_client.py")
SECONDS: Final = 240.0
"""How long a script may take, unless its test says otherwise."""


class WarmClient:
    """Runs one script after the other."""

    def __init__(self, interpreter: str, module: str) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self._import_errors = Path(self._folder.name, "import")
        with self._import_errors.open("w") as errors:
            self._process = subprocess.Popen(
                [interpreter, str(PROGRAM), module],
                env=environment(**REMEMBERED),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                start_new_session=True,
            )

    def run(
        self, command: Sequence[str], folder: Path, variables: Mapping[str, str], seconds: float
    ) -> subprocess.CompletedProcess[str]:
        """The errors begin with those of the import, as if an interpreter was started for the
        script. A failure has what the script printed in a note."""
        output, errors = Path(self._folder.name, "output"), Path(self._folder.name, "errors")
        for path in (output, errors):
            path.write_text("")
        task = {
            "arguments": list(command),
            "folder": str(folder),
            "environment": dict(variables),
            "output": str(output),
            "errors": str(errors),
        }
        try:
            code = self._answer(json.dumps(task), command, seconds)
        except BaseException as failure:
            printed = f"{output.read_text(errors='replace')}\n{errors.read_text(errors='replace')}"
            failure.add_note(f"{self._import_errors.read_text(errors='replace')}\n{printed}")
            raise
        import_errors = self._import_errors.read_text()
        return subprocess.CompletedProcess(
            command, code, output.read_text(), import_errors + errors.read_text()
        )

    def _answer(self, task: str, command: Sequence[str], seconds: float) -> int:
        """The exit code of the script."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(task, file=self._process.stdin, flush=True)
        if not select.select([self._process.stdout], [], [], seconds)[0]:
            raise subprocess.TimeoutExpired(command, seconds)
        code = self._process.stdout.readline()
        assert code, f"the client of {command} has ended"
        return int(code)

    def close(self) -> None:
        """Ends a script that still runs, too."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        with contextlib.suppress(OSError):
            self._process.communicate()
        self._folder.cleanup()


_running: dict[tuple[str, str], WarmClient] = {}
"""By interpreter and module."""


def run(
    interpreter: str,
    module: str,
    command: Sequence[str],
    folder: Path,
    variables: Mapping[str, str],
    seconds: float = SECONDS,
) -> subprocess.CompletedProcess[str]:
    """Runs a script, with its arguments, in a folder, with the client that the module is."""
    key = interpreter, module
    if key not in _running:
        _running[key] = WarmClient(interpreter, module)
    try:
        return _running[key].run(command, folder, variables, seconds)
    except BaseException:  # of whom nobody knows which answer comes next
        _running.pop(key).close()
        raise


@atexit.register
def _close() -> None:
    for client in _running.values():
        client.close()
