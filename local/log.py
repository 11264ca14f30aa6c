"""Writes the log of the local server: one line for each request on standard output, problems on
standard error."""

from __future__ import annotations

import contextlib
import json
import sys
import time
import traceback
from importlib import import_module
from typing import Any

_FIRST_ERROR = 400
_LONGEST_CODE = 60
_CONTROL = {code: f"\\x{code:02x}" for code in (*range(32), 127)}


class RequestCounter:
    """Counts the DynamoDB requests that a handler makes in the current thread, as the core layer
    (``mlcore.db.capacity``) measures them. If it does not measure, the count is None, and the local
    server's log shows no number.
    """

    def __init__(self) -> None:
        self._last_measurement: Any = None
        self._is_loaded = False

    def _measurement(self) -> Any:
        if not self._is_loaded:
            self._is_loaded = True
            try:
                self._last_measurement = import_module("mlcore.db.capacity").last_measurement
            except ImportError:
                self._last_measurement = None
        return self._last_measurement() if self._last_measurement is not None else None

    def before(self) -> Any:
        """Returns the state of the measurement of DynamoDB requests. It is called before a handler
        runs, and the result is passed to :meth:`requests_since` afterwards."""
        return self._measurement()

    def requests_since(self, before: Any) -> int | None:
        """Returns how many DynamoDB requests the handler has made since :meth:`before` returned
        ``before``; None if nothing was measured.
        """
        after = self._measurement()
        return None if after is None or after is before else int(after.requests)


class AccessLog:
    """Writes the access log to standard output: one line for each request."""

    def __init__(self) -> None:
        self._second = -1
        self._time = ""

    def write(
        self,
        method: str,
        path: str,
        status: int,
        seconds: float,
        requests: int | None,
        body: bytes = b"",
    ) -> None:
        """Writes the line of one request.

        Args:
            requests: the number of DynamoDB requests of the handler; None if it is unknown.
            body: the response's body; if the response is an error, the line shows its
                ``error_code``.
        """
        now = int(time.time())
        if now != self._second:
            self._second, self._time = now, time.strftime("%H:%M:%S", time.localtime(now))
        count = "" if requests is None else f" {requests} req"
        shown = path.translate(_CONTROL)
        code = f" {_error_code(body)}".rstrip() if status >= _FIRST_ERROR else ""
        # A closed pipe must not fail the request.
        with contextlib.suppress(OSError):
            sys.stdout.write(
                f"{self._time} {method} {shown} {status}{code} {seconds * 1000:.1f} ms{count}\n"
            )


def _error_code(body: bytes) -> str:
    """Returns the ``error_code`` of an answer; "" if it has none."""
    try:
        code = json.loads(body)["error_code"]
    except (ValueError, KeyError, TypeError):
        return ""
    return str(code)[:_LONGEST_CODE].translate(_CONTROL)


def report(message: str, error: BaseException | None = None) -> None:
    """Writes a message, and the traceback of ``error``, to standard error. A message that cannot be
    written, for example to a file on a full disk, is lost."""
    text = message if error is None else message + "\n" + "".join(traceback.format_exception(error))
    with contextlib.suppress(OSError):
        sys.stderr.write(f"{time.strftime('%H:%M:%S')} {text.rstrip()}\n")
        sys.stderr.flush()
