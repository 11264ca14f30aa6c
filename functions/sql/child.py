"""Runs a statement in a process of its own, with an end of time and memory; knows nothing of SQL.

The engines are loaded there and nowhere else: neither a function of the API nor the local runner
ever imports them.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from mlcore import errors

_logger = logging.getLogger("mlcore.sql")

SECONDS: Final = 3.5
"""After this long a query is ended; ``SYSTEM_TABLES_SECONDS`` says otherwise."""

STARTING_SECONDS: Final = 20.0
"""What the process may take besides: copies of files may have to come from S3."""

SCRATCH: Final = "SYSTEM_TABLES_SCRATCH"
"""Environment: the folder for what a query writes before it begins."""

_MISSING: Final = (
    "The engine for SQL is not installed here: run `make setup`, which brings DuckDB and deltalake."
)


def ask(request: dict[str, Any]) -> dict[str, Any]:
    """What the query answers.

    Raises:
        InvalidParameterValue: the statement is at fault, or it took too long or too much.
        FeatureDisabled: the engines are not installed.
    """
    if find_spec("mltables") is None or find_spec("duckdb") is None:
        raise errors.FeatureDisabled(_MISSING)
    seconds = float(os.environ.get("SYSTEM_TABLES_SECONDS") or SECONDS)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    # Of glibc: else each thread may take 64 MB of addresses, which count.
    environment["MALLOC_ARENA_MAX"] = "2"
    scratch = Path(os.environ.get(SCRATCH) or Path(tempfile.gettempdir()) / "system-tables")
    scratch.mkdir(parents=True, exist_ok=True)
    with (
        # Made here, so that the rows in it go also when the process is killed.
        tempfile.TemporaryDirectory(prefix="query-", dir=scratch) as folder,
        subprocess.Popen(
            [sys.executable, "-m", "mltables.query"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
        ) as process,
    ):
        sent = {**request, "seconds": seconds, "folder": folder}
        try:
            out, said = process.communicate(json.dumps(sent).encode(), seconds + STARTING_SECONDS)
        except subprocess.TimeoutExpired as expired:
            process.kill()
            raise errors.InvalidParameterValue(too_long(seconds)) from expired
    if process.returncode == -signal.SIGALRM:
        raise errors.InvalidParameterValue(too_long(seconds))
    if process.returncode:
        _logger.error("a query ended with %s: %s", process.returncode, said[-2000:].decode())
        raise errors.InvalidParameterValue("The query needs more memory than it may have.")
    answer: dict[str, Any] = json.loads(out)
    if "error" in answer:
        raise errors.InvalidParameterValue(answer["error"])
    return answer


def too_long(seconds: float) -> str:
    return f"The query was ended after {seconds:g} seconds. Ask for less, or use Athena."
