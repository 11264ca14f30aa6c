"""Repeats calls that a model provider has refused before it worked on them: it was busy, or refused
the connection."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Hashable
from enum import Enum
from typing import Final, NamedTuple, TypeGuard, TypeVar

from mlcore.db import deadline
from mlcore.errors import GatewayCallFailed
from mlcore.gateway.circuit_breakers import CIRCUITS
from mlcore.providers import abandonment, wait_meter

T = TypeVar("T")

PAUSES: Final = (0.5, 1.0)
"""The longest pause in seconds before each retry. The pause is random between 0 and this, so that
calls which failed together are not repeated together."""
PAUSES_BEFORE_FALLBACK: Final = (0.25,)
"""The same if another model follows, which answers sooner than this one after more retries."""
MAX_RETRY_AFTER: Final = 2.0
"""If a provider asks for a longer pause in seconds, the call is not repeated; the caller may do
so."""
_ANSWER_SECONDS: Final = 1.0
"""Seconds that must remain between the end of a pause and the deadline; otherwise the call is not
repeated."""


class Repeats(Enum):
    """Which failed calls of a model may be sent again."""

    REFUSED = "refused"
    """Those that the provider refused before it worked on them."""
    UNSENT = "unsent"
    """Only those whose connection was refused, because a second execution could do harm that the
    gateway cannot judge."""
    NEVER = "never"
    """No calls, because the caller repeats them itself."""


class Handling(NamedTuple):
    """How failed calls of a model provider are handled: by retries and by the circuit breaker."""

    repeats: Repeats = Repeats.REFUSED
    uses_circuit: bool = True
    """Whether the circuit breaker of the model applies to the call and counts its failures."""


USUAL: Final = Handling()


def repeated(
    call: Callable[[], T], model: Hashable, handling: Handling, *, has_fallback: bool
) -> T:
    """Calls a model for the AI gateway, repeats a call that failed because the provider was busy,
    and returns the result.

    Args:
        call: makes the call; raises GatewayCallFailed if it fails before the first part of a
            streamed answer.
        model: identifies the circuit breaker of the model.
        has_fallback: whether another model follows if this one fails.

    Raises:
        GatewayCallFailed: the call failed in a way for which ``handling`` allows no retry, or it
            failed too often; or the model's circuit was open before the first call (429 or 503).
    """
    pauses = iter(PAUSES_BEFORE_FALLBACK if has_fallback else PAUSES)
    last_error: BaseException | None = None
    while True:
        is_probe = False
        if handling.uses_circuit:
            try:
                is_probe = CIRCUITS.check(model)
            except GatewayCallFailed as refusal:
                # If other calls have opened the circuit during the pause, the error of this call's
                # own attempt says more than that of the circuit.
                raise last_error or refusal from None
        try:
            result = call()
        except BaseException as error:
            is_open = handling.uses_circuit and CIRCUITS.add_failure(
                model, error, is_probe=is_probe
            )
            longest = next(pauses, None)
            if is_open or longest is None or not _may_repeat(error, handling.repeats):
                raise
            seconds = _pause(error, longest, has_fallback=has_fallback)
            if seconds is None:
                raise
            last_error = error
        else:
            if handling.uses_circuit:
                CIRCUITS.add_success(model)
            return result
        with wait_meter.counted():
            abandonment.pause(seconds)


def _may_repeat(error: BaseException, repeats: Repeats) -> TypeGuard[GatewayCallFailed]:
    """Whether a failed call may be repeated."""
    if repeats is Repeats.NEVER or not isinstance(error, GatewayCallFailed):
        return False
    return error.traits.is_unsent or (repeats is Repeats.REFUSED and error.traits.is_repeatable)


def _pause(error: GatewayCallFailed, longest: float, *, has_fallback: bool) -> float | None:
    """Returns the seconds to wait before a failed call is repeated; None if the call must not be
    repeated, because the pause would be too long or, with a fallback, the provider asks for one.

    Args:
        longest: upper limit of the random pause.
    """
    seconds = random.uniform(0.0, longest)  # noqa: S311 -- no secret
    if error.retry_after is not None:
        asked_for = error.retry_seconds
        if has_fallback or asked_for is None or asked_for > MAX_RETRY_AFTER:
            return None
        seconds += asked_for
    remaining = deadline.current() - time.monotonic()
    return seconds if seconds + _ANSWER_SECONDS < remaining else None
