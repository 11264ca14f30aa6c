"""``mlflow server`` in one process: ``python -m operate.stock_server OPTIONS``.

MLflow's own command imports MLflow, prepares the database, and starts uvicorn as a child process,
which imports MLflow again; that takes half of the start. Here uvicorn runs in the process of the
command instead. If a version of MLflow starts another server than uvicorn, that server is started
as a child process.
"""

from __future__ import annotations

import os
import runpy
import sys
from importlib import import_module
from typing import Any


def run(options: list[str]) -> None:
    """Runs MLflow's server with these options of ``mlflow server`` until the process is told to
    end."""
    # mlflow.server reads this once, when it is imported; the command sets it for its child.
    os.environ["_MLFLOW_SERVER_SERVE_ARTIFACTS"] = "true"
    server, command_line = import_module("mlflow.server"), import_module("mlflow.cli")
    start_child: Any = getattr(server, "_exec_cmd", None)

    def become(command: list[str], **named: Any) -> Any:
        if command[1:3] != ["-m", "uvicorn"]:
            return start_child(command, **named)
        os.environ.update(named["extra_env"])
        sys.argv = command[2:]
        return runpy.run_module("uvicorn", run_name="__main__", alter_sys=True)

    if start_child is not None:
        vars(server)["_exec_cmd"] = become
    command_line.cli.main(["server", *options])


if __name__ == "__main__":
    run(sys.argv[1:])
