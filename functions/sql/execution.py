"""Runs a query in separate processes, with limits on time, memory and concurrency.

Only those processes load the SQL engines: neither functions of the API nor the local runner import
them.
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
from sql import result_cache
from sql.query_server_client import NoAnswer, QueryProcess

_logger = logging.getLogger("mlcore.sql")

SECONDS: Final = 3.5
"""The time limit of a query, unless ``SYSTEM_TABLES_SECONDS`` is set."""
START_SECONDS: Final = 20.0
"""The time limit for the steps before the query: files may have to be read from S3."""
CONCURRENT_QUERIES: Final = 3
"""The most queries of requests that run at once, so that other requests find free workers. Queries
of alerts run beside them."""
RETRY_SECONDS: Final = 1

_MISSING: Final = (
    "The engine for SQL is not installed here: run `make setup`, which brings DuckDB and deltalake."
)

process: Final = QueryProcess()
results: Final = result_cache.ResultCache()
_slots: Final = threading.BoundedSemaphore(CONCURRENT_QUERIES)


class Busy(errors.RequestLimitExceeded):
    """Raised if no SQL query can be started now: the limit of concurrent queries is reached, or no
    process for queries answers. The query was not started."""

    def __init__(self) -> None:
        super().__init__(
            f"{CONCURRENT_QUERIES} queries are running already. Try again in a moment."
        )


@contextlib.contextmanager
def query_slot() -> Iterator[None]:
    """Context manager: holds one of the slots for concurrent SQL queries. Raises Busy if all slots
    are taken."""
    if not _slots.acquire(blocking=False):
        raise Busy
    try:
        yield
    finally:
        _slots.release()


def run_query(request: dict[str, Any]) -> dict[str, Any]:
    """Runs an SQL query on the system tables and returns its answer. If the result of the same
    query is cached and no table that it reads has changed, returns the cached result.

    Args:
        request: see ``mltables/query_server.py``; the limits are added here.

    Raises:
        InvalidParameterValue: the statement is wrong, or exceeded its limit of time or memory.
        FeatureDisabled: the SQL engine (DuckDB) is not installed.
        Busy: no process that runs the query could be started.
        InternalError: the system tables cannot be read.
    """
    if not _has_engines():
        raise errors.FeatureDisabled(_MISSING)
    seconds = float(os.environ.get("SYSTEM_TABLES_SECONDS") or SECONDS)
    limits = {"seconds": seconds, "starting": START_SECONDS, "environment": dict(os.environ)}
    key = result_cache.key_of(request)
    kept = results.get(key) if key else None
    if key:
        limits["kept"] = kept.versions if kept else ""
    try:
        # The process enforces the limits itself; this timeout is for a process that hangs.
        reply = process.ask({**request, **limits}, 2 * (seconds + START_SECONDS))
    except TimeoutError as error:
        raise errors.InvalidParameterValue(too_long(seconds)) from error
    except NoAnswer as error:
        raise Busy from error
    if reply.output:
        answer: dict[str, Any] = json.loads(reply.output)
        if "error" in answer:
            raise errors.InvalidParameterValue(answer["error"])
        if kept and "unchanged" in answer:
            unchanged: dict[str, Any] = json.loads(kept.output)
            return unchanged
        if key and reply.versions:
            results.keep(key, reply.versions, reply.output)
        return answer
    if reply.signal == signal.SIGALRM:
        raise errors.InvalidParameterValue(too_long(seconds))
    _logger.error("a query ended with signal %s", reply.signal)
    if reply.statement_started or reply.signal:
        raise errors.InvalidParameterValue("The query exceeded its memory limit.")
    raise errors.InternalError("The system tables cannot be read; the log says why.")


def start_process() -> None:
    """Starts the process that runs SQL queries early, so that it loads DuckDB and deltalake before
    the first query arrives. If the process cannot be started now, the first query starts it. Does
    nothing if they are not installed."""
    if _has_engines():
        with contextlib.suppress(OSError):
            process.start()


def _has_engines() -> bool:
    return find_spec("mltables") is not None and find_spec("duckdb") is not None


def too_long(seconds: float) -> str:
    return f"The query was ended after {seconds:g} seconds. Ask for less, or use Athena."
