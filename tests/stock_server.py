"""``mlflow server`` in one process: python tests/stock_server.py ARGUMENTS

The command imports MLflow, makes the database, and starts uvicorn as a child that imports MLflow
again, which takes as long as all the rest of the start. Here it becomes that child instead.
"""

from __future__ import annotations

import gc
import os
import runpy
import sys
from typing import Any

# mlflow.server looks at this once, when it is imported; the command sets it for its child.
os.environ["_MLFLOW_SERVER_SERVE_ARTIFACTS"] = "true"

import mlflow.server
from mlflow.cli import cli
from mlflow.utils import crypto
from werkzeug import security

# Passwords and keys that guard nothing: a hash that is slow to guess would take a tenth of a second
# for each user, each first login and each secret.
vars(crypto)["PBKDF2_ITERATIONS"] = 1
security.generate_password_hash.__defaults__ = ("pbkdf2:sha256:1", 16)


def _become(command: list[str], extra_env: dict[str, str], **_options: Any) -> None:
    """Runs ``python -m uvicorn ARGUMENTS`` here, until it ends."""
    assert command[1:3] == ["-m", "uvicorn"], command
    os.environ.update(extra_env)
    sys.argv = command[2:]
    runpy.run_module("uvicorn", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    # SQLAlchemy makes much for each request, and what is imported stays for good.
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)
    vars(mlflow.server)["_exec_cmd"] = _become
    cli.main(["server", *sys.argv[1:]])
