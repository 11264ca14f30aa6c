"""Functions of one release in a process of their own: python -P release_process.py FOLDER

FOLDER holds the artifacts and the key of secrets. Calls come as pickles of (domain, event) on
standard input, answers go as pickles to standard output; the first answer is where ``mlcore`` is.
"""

from __future__ import annotations

import functools
import importlib
import os
import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

Handler = Callable[[dict[str, Any], Any], dict[str, Any]]
AUTHENTICATION = "AUTHENTICATION"


def main(folder: Path) -> None:
    """Answers calls until standard input ends."""
    calls, answers = sys.stdin.buffer, os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    core = importlib.import_module("mlcore")
    vars(importlib.import_module("mlcore.auth.passwords"))["_N"] = 2
    client = importlib.import_module("tests.contract.file_key").FileKey(folder / "key")
    vars(importlib.import_module("mlcore.secrets"))["_client"] = lambda: client
    importlib.import_module("mlcore.observability").logger.setLevel("ERROR")
    pickle.dump(core.__path__[0], answers)
    answers.flush()
    while True:
        try:
            domain, event = pickle.load(calls)
        except EOFError:
            return
        pickle.dump(_handler(domain)(event, None), answers)
        answers.flush()


@functools.cache
def _handler(domain: str) -> Handler:
    """Routes of users exist only with a login; all others are called without one."""
    app = importlib.import_module(f"{domain}.app")
    if domain != "users":
        handler: Handler = app.handler
        return handler
    os.environ[AUTHENTICATION] = "basic"
    try:
        made: Handler = importlib.import_module("mlcore.http").lambda_handler(app.RPCS)
    finally:
        del os.environ[AUTHENTICATION]
    return made


if __name__ == "__main__":
    main(Path(sys.argv[1]))
