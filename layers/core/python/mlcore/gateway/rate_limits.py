"""Limits of gateway calls by API key, user, endpoint and workspace: requests and tokens, per minute
and per day, and calls at the same time."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final, NamedTuple

from mlcore.db import deadline
from mlcore.entities.gateway_limits import ENDPOINTS, KEYS, USERS, WORKSPACES, CallLimits
from mlcore.errors import GatewayCallFailed, MlflowError
from mlcore.gateway import limit_headers, limit_reserves
from mlcore.gateway.limit_headers import Remaining
from mlcore.gateway.limit_reserves import Ticket
from mlcore.ids import now_ms
from mlcore.observability import logger
from mlcore.repos.gateway import open_calls, usage
from mlcore.repos.settings import gateway_limits

_KINDS: Final = {KEYS: "key", USERS: "user", ENDPOINTS: "endpoint", WORKSPACES: "workspace"}

LONGEST_CALL_SECONDS: Final = 15 * 60
_REQUESTS: Final = "requests"
_TOKENS: Final = "tokens"
_LEASE_MARGIN: Final = 5.0
"""Seconds after a call's deadline at which its lease ends, so that it no longer counts as open even
if its end was not recorded."""


class CallOrigin(NamedTuple):
    """The API key, user, endpoint and workspace of a gateway call. The call counts against the
    limits of each."""

    workspace: str
    endpoint_id: str
    endpoint_name: str
    username: str | None
    key_id: str | None


class Limited(NamedTuple):
    """An API key, user, endpoint or workspace (``target``) that has limits of gateway calls."""

    target: str
    """The name of the counter, such as ``user:ann``."""
    scope: str
    limits: CallLimits


def applicable(origin: CallOrigin) -> list[Limited]:
    """Returns the rate limits that a gateway call counts to: those of its API key, user, endpoint
    and workspace, narrowest first. One GetItem per minute and process for the setting of limits,
    unless :mod:`mlcore.repos.settings.gateway_call_settings` has read it with other settings."""
    known = gateway_limits.current()
    if not known.by_scope:
        return []
    # Names of endpoints are unique in a workspace only and can be changed, so their ids are
    # counted. A limit may name either.
    candidates = (
        (KEYS, origin.key_id, origin.key_id),
        (USERS, origin.username, origin.username),
        (ENDPOINTS, origin.endpoint_name, origin.endpoint_id),
        (WORKSPACES, origin.workspace, origin.workspace),
    )
    return [
        Limited(target(scope, counted), scope, limits)
        for scope, name, counted in candidates
        if name is not None
        and counted is not None
        and (limits := known.of(scope, counted, name)) is not None
    ]


def target(scope: str, counted: str) -> str:
    """Returns the name under which gateway calls of an API key, user, endpoint or workspace are
    counted, such as ``user:ann``.

    Args:
        counted: the id of an API key or an endpoint, the name of a user or a workspace.
    """
    return f"{_KINDS[scope]}:{counted}"


class Admission:
    """What was counted for one call of the AI gateway to each of its rate limits: one request, and
    an estimate of its tokens. The first :meth:`put_back` or :meth:`settle` corrects the counts;
    later ones have no effect."""

    def __init__(self) -> None:
        self.headers: Mapping[str, str] = {}
        """Response headers with what remains of the limits; empty without limits."""
        self._tickets: list[tuple[Limited, Ticket]] = []

    def add(self, limit: Limited, ticket: Ticket) -> None:
        self._tickets.append((limit, ticket))

    def put_back(self) -> None:
        """Takes the gateway call out of the counts of its rate limits, because the model is not
        called. Errors are logged and not raised."""
        for limit, ticket in self._tickets:
            try:
                ticket.reserve.put_back(ticket, now_ms())
            except MlflowError as error:
                logger.error(
                    "a refused call still counts to a limit",
                    extra={"scope": limit.scope, "error": error.error_code},
                )

    def settle(self, tokens: int) -> None:
        """Counts the tokens of a gateway call that has ended to its rate limits. The caller has the
        answer already, so an error is logged and does not fail the call."""
        for limit, ticket in self._tickets:
            try:
                ticket.reserve.settle(ticket, tokens, now_ms())
            except MlflowError as error:
                logger.error(
                    "the tokens of a call were not counted yet",
                    extra={"scope": limit.scope, "tokens": tokens, "error": error.error_code},
                )


def admit(limited: Sequence[Limited]) -> Admission:
    """Counts a gateway call to each of its rate limits, narrowest first. If the limits are large,
    most calls of a busy process need no write (:mod:`mlcore.gateway.limit_reserves`). A refused
    call counts to none of its limits.

    Raises:
        GatewayCallFailed: a limit is reached; status 429, with headers for what remains of the
            limits and for the time to try again.
    """
    counting = [
        (limit, limit_reserves.of(limit.target)) for limit in limited if limit.limits.counts
    ]
    admission = Admission()
    readings: list[Remaining] = []
    now = now_ms()
    try:
        # The wider limits are checked first, so that a flood of refused calls does not become a
        # flood of writes to the narrower ones.
        for limit, reserve in reversed(counting):
            reserve.check(limit.limits, now)
        for limit, reserve in counting:
            now = now_ms()
            ticket, used = reserve.take(limit.limits, now)
            admission.add(limit, ticket)
            readings += _readings(limit.limits, used, now)
    except usage.LimitReached as reached:
        admission.put_back()
        readings += _readings(limit.limits, reached.used, now)
        raise _refusal(limit, reached, now, limit_headers.headers(readings, now)) from None
    except MlflowError:
        admission.put_back()
        raise
    admission.headers = limit_headers.headers(readings, now)
    return admission


def _readings(limits: CallLimits, used: usage.Usage, now: int) -> list[Remaining]:
    """Returns what remains of each limit that is set."""
    minute_end = (now // usage.MINUTE_MS + 1) * usage.MINUTE_MS
    day_end = (now // usage.DAY_MS + 1) * usage.DAY_MS
    return [
        Remaining(noun, limit, max(0, limit - amount), end)
        for noun, limit, amount, end in (
            (_REQUESTS, limits.requests_per_minute, used.minute_requests, minute_end),
            (_REQUESTS, limits.requests_per_day, used.day_requests, day_end),
            (_TOKENS, limits.tokens_per_minute, used.minute_tokens, minute_end),
            (_TOKENS, limits.tokens_per_day, used.day_tokens, day_end),
        )
        if limit is not None
    ]


@contextmanager
def open_call(limited: Sequence[Limited], admission: Admission) -> Iterator[None]:
    """Counts a gateway call as open during the ``with`` block: for each limit of concurrent calls
    one write before the block, and one after it.

    Args:
        admission: the counted request of the call; it is no longer counted if the call is refused.

    Raises:
        GatewayCallFailed: a limit is reached; status 429. The block is not entered, and the call
            counts to none of its limits.
    """
    limiting = [limit for limit in limited if limit.limits.concurrent_calls is not None]
    if not limiting:
        yield
        return
    now = now_ms() // 1000
    seconds = min(deadline.current() - time.monotonic(), LONGEST_CALL_SECONDS) + _LEASE_MARGIN
    call = open_calls.new_call(now + math.ceil(seconds))
    begun: list[Limited] = []
    try:
        try:
            for limit in limiting:
                begun.append(limit)  # before the write, which may be executed although it fails
                try:
                    open_calls.begin(limit.target, call, limit.limits.concurrent_calls or 0, now)
                except open_calls.OpenCallsReached:
                    raise _too_many(begun.pop()) from None
        except MlflowError:
            admission.put_back()
            raise
        yield
    finally:
        for limit in begun:
            _end(limit, call)


def _end(limit: Limited, call: str) -> None:
    """Removes an ended call from the open calls of a limit. An error is logged: the call then
    counts as open until its lease ends."""
    try:
        open_calls.end(limit.target, call)
    except MlflowError as error:
        logger.error(
            "a call that has ended still counts as open",
            extra={"scope": limit.scope, "error": error.error_code},
        )


def _too_many(limit: Limited) -> GatewayCallFailed:
    return GatewayCallFailed(
        429,
        f"Rate limit reached: {limit.limits.concurrent_calls} calls at the same time for this "
        f"{_KINDS[limit.scope]}. Try again when one of them has ended.",
        "1",
    )


def _refusal(
    limited: Limited, reached: usage.LimitReached, now: int, headers: Mapping[str, str]
) -> GatewayCallFailed:
    """Returns the 429 error for a reached limit."""
    noun, _, unit = reached.limit.partition("_per_")
    length = usage.MINUTE_MS if unit == "minute" else usage.DAY_MS
    limit = getattr(limited.limits, reached.limit)
    seconds = str(math.ceil((length - now % length) / 1000))
    counted = reached.used.minute_tokens if unit == "minute" else reached.used.day_tokens
    if noun == _TOKENS and counted - reached.used.held_tokens < limit:
        seconds = "1"  # open calls hold the rest, and will return what they do not use
    return GatewayCallFailed(
        429,
        f"Rate limit reached: {limit} {noun} per {unit} for this {_KINDS[limited.scope]}. "
        f"Try again in {seconds} seconds.",
        seconds,
        headers,
    )
