"""`sam local start-api` on a machine without Docker:

    python sam_api.py EMULATOR PYTHON ARGUMENTS

with the interpreter of the SAM CLI's environment. Each function is a process under Lambda's
runtime interface emulator, with its code and layers where the template has them, in place of a
container that mounts them. Command line, template, variables, routes, events and the HTTP
service are the SAM CLI's own.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import threading
from collections import defaultdict
from pathlib import Path
from typing import Any

from tests.rehearsal.function_process import FunctionProcess


class Processes:
    """Takes the place of the SAM CLI's ``LambdaRuntime``."""

    def __init__(self, emulator: Path, python: Path) -> None:
        self._emulator = emulator
        self._python = python
        self._running: dict[str, FunctionProcess] = {}
        self._alone: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)

    def invoke(
        self, function_config: Any, event: str, *_: Any, stdout: Any, **_options: Any
    ) -> None:
        """Writes the answer as the container's output would have it. A function answers one event
        at a time."""
        name = function_config.name
        with self._alone[name]:
            if name not in self._running:
                self._running[name] = self._started(function_config)
            answer = self._running[name].answer(event)[0]
        stdout.write_str(json.dumps(answer))

    def _started(self, function: Any) -> FunctionProcess:
        code = Path(function.code_abs_path)
        layers = [Path(layer.codeuri) for layer in function.layers]
        # As in a container, where the machine's own variables are not.
        machine = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
        variables = {**machine, **function.env_vars.resolve()}
        places = [code, *((code.parent / layer / "python") for layer in layers)]
        return FunctionProcess(
            self._emulator, self._python, function.handler, places, variables, sys.stderr.buffer
        )

    def clean_running_containers_and_related_resources(self) -> None:
        for process in self._running.values():
            process.stop()

    clean_runtime_containers = clean_running_containers_and_related_resources


def main(emulator: str, python: str, *arguments: str) -> None:
    """Serves until it is interrupted."""
    processes = Processes(Path(emulator), Path(python))
    context: Any = importlib.import_module("samcli.commands.local.cli_common.invoke_context")
    context.InvokeContext.lambda_runtime = property(lambda _context: processes)
    context.InvokeContext._get_container_manager = staticmethod(lambda *_: None)
    importlib.import_module("samcli.cli.main").cli(
        ["local", "start-api", *arguments], prog_name="sam"
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
