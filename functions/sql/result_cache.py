"""Keeps results of SQL queries in this process's memory, so that a query that is repeated before
its tables change runs only once.

The process that prepares a query compares the versions of its tables with those of the kept result
(``mltables/table_versions.py``): a result is never older than the tables. Only results of callers
who may read all rows, also those of ``audit_log``, are kept. For other callers the time of a
repeated query would show when another workspace changes.
"""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from mlcore.process_cache import Moment

KEPT_BYTES: Final = 16 << 20
"""Most bytes of all results."""
KEPT_SECONDS: Final = 600.0
"""After this time a result is not returned any more, and the next query drops it, so that rows that
were deleted leave the memory."""


class KeptResult(NamedTuple):
    """The result of an SQL query, in the bytes that the query process returned."""

    versions: str
    """The digest of the versions of the tables that the query read."""
    output: bytes
    kept_at: Moment


class ResultCache:
    """A cache of the results of the latest SQL queries. Threads may use it concurrently."""

    def __init__(self, most_bytes: int = KEPT_BYTES) -> None:
        self._most_bytes = most_bytes
        self._lock = threading.Lock()
        self._results: OrderedDict[str, KeptResult] = OrderedDict()
        self._bytes = 0

    def get(self, key: str) -> KeptResult | None:
        """Returns the kept result of an SQL query, or None if none is kept."""
        with self._lock:
            self._drop_expired()
            if key not in self._results:
                return None
            self._results.move_to_end(key)
            return self._results[key]

    def keep(self, key: str, versions: str, output: bytes) -> None:
        """Keeps the result of a SQL query in place of an earlier one. Drops expired results and, if
        there are too many bytes, those that were not used for the longest time."""
        with self._lock:
            self._drop_expired()
            self._drop(key)
            self._results[key] = KeptResult(versions, output, Moment.now())
            self._bytes += len(key) + len(output)
            while self._bytes > self._most_bytes:
                self._drop(next(iter(self._results)))

    def _drop_expired(self) -> None:
        for key, result in list(self._results.items()):
            if result.kept_at.age() >= KEPT_SECONDS:
                self._drop(key)

    def _drop(self, key: str) -> None:
        if result := self._results.pop(key, None):
            self._bytes -= len(key) + len(result.output)


def key_of(request: Mapping[str, Any]) -> str | None:
    """Returns the cache key of an SQL query's result; None if the result may not be cached, because
    the caller may not read all rows.

    Args:
        request: see ``mltables/query_server.py``, without limits and environment.
    """
    reads_all = request.get("workspaces") is None and request.get("audited") is None
    return json.dumps(request, sort_keys=True) if reads_all else None
