"""A client that is imported once and forks for each script:

    python warm_client.py MODULE

A line of standard input is JSON with a script's ``arguments``, ``folder`` and ``environment``, and
with the files that take its ``output`` and its ``errors``. A line of standard output is its exit
code. A script ends as any process does, with all that the client does at the end.
"""

from __future__ import annotations

import atexit
import importlib
import json
import os
import runpy
import sys
import types
from pathlib import Path
from typing import Any

_AT_EXIT = atexit.register


def main() -> None:
    with os.fdopen(os.dup(1), "w") as answers:
        os.dup2(2, 1)  # what an import prints is no answer
        vars(atexit)["register"] = _register
        importlib.import_module(sys.argv[1])
        vars(atexit)["register"] = _AT_EXIT
        for line in sys.stdin:
            child = os.fork()
            if child == 0:
                _prepare(json.loads(line))
                break
            _, status = os.waitpid(child, 0)
            answers.write(f"{os.waitstatus_to_exitcode(status)}\n")
            answers.flush()
        else:
            return
    runpy.run_path(sys.argv[0], run_name="__main__")


def _register(function: Any, *arguments: Any, **named: Any) -> Any:
    """Registers what is to be done at the end, but for what libraries in machine code do: they wait
    for threads that no fork has."""
    if isinstance(function, types.BuiltinFunctionType):
        return function
    return _AT_EXIT(function, *arguments, **named)


def _prepare(task: dict[str, Any]) -> None:
    """Makes this process the one that an interpreter would be that was started for the script."""
    for number, name, flags in (
        (0, os.devnull, os.O_RDONLY),
        (1, task["output"], os.O_WRONLY | os.O_CREAT),
        (2, task["errors"], os.O_WRONLY | os.O_CREAT),
    ):
        opened = os.open(name, flags)
        os.dup2(opened, number)
        os.close(opened)
    os.environ.clear()
    os.environ.update(task["environment"])
    os.chdir(task["folder"])
    sys.argv[:] = task["arguments"]
    sys.path[0] = str(Path(sys.argv[0]).parent)


if __name__ == "__main__":
    main()
