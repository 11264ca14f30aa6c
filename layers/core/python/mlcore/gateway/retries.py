"""Repeats calls that a provider has refused before it worked on them: it was busy, or could not be
reached."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Hashable
from typing import Final, TypeVar

from mlcore.db import deadline
from mlcore.errors import GatewayCallFailed, MlflowError
from mlcore.gateway.circuit_breakers import CIRCUITS
from mlcore.providers import waiting_time

T = TypeVar("T")

PAUSES: Final = (0.5, 1.0)
"""The longest pause in seconds before each retry. The pause is random between 0 and this, so that
calls which failed together are not repeated together."""
PAUSES_BEFORE_FALLBACK: Final = (0.25,)
"""The same if another model follows, which answers sooner than this one after more retries."""
MAX_RETRY_AFTER: Final = 2.0
"""A provider that asks for a longer pause is not called again: the caller decides."""
_ANSWER_SECONDS: Final = 1.0
"""Time that must remain after the pause."""


def repeated(call: Callable[[], T], model: Hashable, *, has_fallback: bool) -> T:
    """Calls a model, and again if the provider was busy. Returns the first result.

    Args:
        call: makes the call; raises GatewayCallFailed if it fails before its first part.
        model: identifies the circuit breaker of the model.
        has_fallback: whether another model follows if this one fails.

    Raises:
        GatewayCallFailed: the call failed in a way that a retry does not mend, or too often; or
            the model's circuit is open (429 or 503).
    """
    pauses = iter(PAUSES_BEFORE_FALLBACK if has_fallback else PAUSES)
    while True:
        CIRCUITS.check(model)
        try:
            result = call()
        except MlflowError as error:
            CIRCUITS.add_failure(model, error)
            seconds = _pause(error, next(pauses, None), has_fallback=has_fallback)
            if seconds is None:
                raise
        else:
            CIRCUITS.add_success(model)
            return result
        with waiting_time.counted():
            time.sleep(seconds)


def _pause(error: MlflowError, longest: float | None, *, has_fallback: bool) -> float | None:
    """Returns how long to wait before a failed call is repeated; None if it is not.

    Args:
        longest: upper limit of the random pause; None after the last retry.
    """
    if longest is None or not isinstance(error, GatewayCallFailed) or not error.is_repeatable:
        return None
    seconds = random.uniform(0.0, longest)  # noqa: S311 -- no secret
    if error.retry_after is not None:
        asked_for = error.retry_seconds
        if has_fallback or asked_for is None or asked_for > MAX_RETRY_AFTER:
            return None
        seconds += asked_for
    remaining = deadline.current() - time.monotonic()
    return seconds if seconds + _ANSWER_SECONDS < remaining else None
