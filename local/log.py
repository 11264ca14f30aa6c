"""One line a request on standard output; decides nothing."""

from __future__ import annotations

import contextlib
import sys
import time
import traceback
from importlib import import_module
from typing import Any

_CONTROL = {code: f"\\x{code:02x}" for code in (*range(32), 127)}


class RequestCounter:
    """Reads from the product's own count how many DynamoDB requests a handler made in this thread.

    A product without a count is served all the same; the column then stays empty.
    """

    def __init__(self) -> None:
        self._last: Any = None
        self._looked = False

    def _measurement(self) -> Any:
        if not self._looked:
            self._looked = True
            try:
                self._last = import_module("mlcore.db.table").table.last_measurement
            except Exception:
                self._last = None
        return self._last() if self._last is not None else None

    def before(self) -> Any:
        """What to hand to :meth:`requests_since`."""
        return self._measurement()

    def requests_since(self, before: Any) -> int | None:
        """DynamoDB requests of the handler that ran since ``before``, None when it counted none."""
        after = self._measurement()
        return None if after is None or after is before else int(after.requests)


class AccessLog:
    """Writes the log of requests and of failed handlers."""

    def __init__(self) -> None:
        self._second = -1
        self._time = ""

    def write(
        self, method: str, path: str, status: int, seconds: float, requests: int | None
    ) -> None:
        """One request. ``requests`` counts the DynamoDB requests it made, None when unknown."""
        now = int(time.time())
        if now != self._second:
            self._second, self._time = now, time.strftime("%H:%M:%S", time.localtime(now))
        count = "" if requests is None else f" {requests} req"
        shown = path.translate(_CONTROL)
        # A reader that went away is no reason to fail the request.
        with contextlib.suppress(OSError):
            sys.stdout.write(
                f"{self._time} {method} {shown} {status} {seconds * 1000:.1f} ms{count}\n"
            )


def report(message: str, error: BaseException | None = None) -> None:
    """Says on standard error what went wrong, with the traceback of ``error``."""
    text = message if error is None else message + "\n" + "".join(traceback.format_exception(error))
    sys.stderr.write(f"{time.strftime('%H:%M:%S')} {text.rstrip()}\n")
    sys.stderr.flush()
