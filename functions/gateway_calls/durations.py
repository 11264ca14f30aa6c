"""Adds headers that tell callers how long a call took, as MLflow's gateway does."""

from __future__ import annotations

import time
from typing import Any, Final

from mlcore.http.handler import Handler
from mlcore.providers import wait_meter

DURATION: Final = "x-mlflow-gateway-duration-ms"
"""The header with the milliseconds until the answer, or until the first part of a stream."""
OVERHEAD: Final = "x-mlflow-gateway-overhead-duration-ms"
"""The header with the milliseconds until the answer without the time of waiting for providers.
Omitted if there was no such wait."""


def with_durations(handler: Handler) -> Handler:
    """Returns a handler that calls ``handler`` and adds headers to its response: ``DURATION``, the
    duration of the call, and, if the call waited for model providers, ``OVERHEAD``, the duration
    without this wait. Both are milliseconds."""

    def timed(event: Any, context: Any) -> dict[str, Any]:
        wait_meter.reset()
        started = time.perf_counter()
        answer = handler(event, context)
        seconds = time.perf_counter() - started
        headers = {DURATION: _milliseconds(seconds)}
        if (waited := wait_meter.total()) > 0:
            headers[OVERHEAD] = _milliseconds(max(0.0, seconds - waited))
        return {**answer, "headers": {**answer["headers"], **headers}}

    return timed


def _milliseconds(seconds: float) -> str:
    return str(int(seconds * 1000))
