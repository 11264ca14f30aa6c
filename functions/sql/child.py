"""Runs a statement in processes of its own, with an end of time and memory; knows nothing of SQL.

The engines are loaded there and nowhere else: neither a function of the API nor the local runner
ever imports them.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import signal
import threading
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any, Final

from mlcore import errors
from sql.warm import Unanswered, WarmProcess

_logger = logging.getLogger("mlcore.sql")

SECONDS: Final = 3.5
"""After this long a query is ended; ``SYSTEM_TABLES_SECONDS`` says otherwise."""
STARTING_SECONDS: Final = 20.0
"""What may pass before it begins: files may have to come from S3."""
TOGETHER: Final = 3
"""Queries at a time, so that they leave the other workers to the other requests."""
RETRY_SECONDS: Final = 1

_MISSING: Final = (
    "The engine for SQL is not installed here: run `make setup`, which brings DuckDB and deltalake."
)

process: Final = WarmProcess()
_turns: Final = threading.BoundedSemaphore(TOGETHER)


class Busy(errors.RequestLimitExceeded):
    """As many queries are running as may; nothing was begun."""

    def __init__(self) -> None:
        super().__init__(f"{TOGETHER} queries are running already. Try again in a moment.")


@contextlib.contextmanager
def turn() -> Iterator[None]:
    """One of the queries that may run at a time.

    Raises:
        Busy: there is none left.
    """
    if not _turns.acquire(blocking=False):
        raise Busy
    try:
        yield
    finally:
        _turns.release()


def ask(request: dict[str, Any]) -> dict[str, Any]:
    """What the query answers.

    Raises:
        InvalidParameterValue: the statement is at fault, or it took too long or too much.
        FeatureDisabled: the engines are not installed.
        Busy: no process could be started.
        InternalError: the tables cannot be read.
    """
    if find_spec("mltables") is None or find_spec("duckdb") is None:
        raise errors.FeatureDisabled(_MISSING)
    seconds = float(os.environ.get("SYSTEM_TABLES_SECONDS") or SECONDS)
    limits = {"seconds": seconds, "starting": STARTING_SECONDS, "environment": dict(os.environ)}
    try:
        # It is ended there; this is for the case that nobody is left who could.
        reply = process.ask({**request, **limits}, 2 * (seconds + STARTING_SECONDS))
    except TimeoutError as error:
        raise errors.InvalidParameterValue(too_long(seconds)) from error
    except Unanswered as error:
        raise Busy from error
    if reply.said:
        answer: dict[str, Any] = json.loads(reply.said)
        if "error" in answer:
            raise errors.InvalidParameterValue(answer["error"])
        return answer
    if reply.signal == signal.SIGALRM:
        raise errors.InvalidParameterValue(too_long(seconds))
    _logger.error("a query ended with signal %s", reply.signal)
    if reply.began or reply.signal:
        raise errors.InvalidParameterValue("The query needs more memory than it may have.")
    raise errors.InternalError("The system tables cannot be read; the log says why.")


def too_long(seconds: float) -> str:
    return f"The query was ended after {seconds:g} seconds. Ask for less, or use Athena."
