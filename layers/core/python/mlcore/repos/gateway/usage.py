"""Counts requests and tokens of the AI gateway in the current minute and day of UTC, in one item
for each day of a key, user, endpoint or workspace."""

from __future__ import annotations

from typing import Final, NamedTuple

from mlcore.db import keys
from mlcore.db.expression import Update
from mlcore.db.failures import ConditionFailed
from mlcore.db.table import table
from mlcore.entities.gateway_limits import CallLimits
from mlcore.errors import TemporarilyUnavailable
from mlcore.models.gateway import GatewayUsage

MINUTE_MS: Final = 60_000
DAY_MS: Final = 24 * 60 * MINUTE_MS
KEPT_SECONDS: Final = 2 * 24 * 3600
"""How long a day's item is kept after its end."""
_ATTEMPTS: Final = 6
"""An attempt fails without a limit being reached only when another process begins a minute."""

_UNLIMITED: Final = CallLimits()


class Usage(NamedTuple):
    """The requests and tokens of a target (a key, user, endpoint or workspace) in a minute and in
    the day to which the minute belongs."""

    minute_requests: int
    minute_tokens: int
    day_requests: int
    day_tokens: int


class Reached(Exception):
    """A limit of requests or tokens is reached; nothing was counted."""

    def __init__(self, limit: str, used: Usage) -> None:
        """Args:
        limit: the name of the limit: a field of :class:`CallLimits`.
        used: what was counted of the target before."""
        super().__init__(limit)
        self.limit = limit
        self.used = used


def count_request(target: str, limits: CallLimits, now: int) -> Usage:
    """Counts one request, in one write; two when a minute begins. Returns the sums afterwards.

    Args:
        target: for what requests are counted, such as ``user:ann``.
        limits: the limits of the target.
        now: the time, in ms since 1970.

    Raises:
        Reached: a limit is reached. Of requests at the same time exactly as many pass as the limit
            says. Tokens are known only after a call, so calls at the same time may exceed their
            limit.
    """
    return _count(target, limits, now, requests=1, tokens=0)


def add_tokens(target: str, tokens: int, now: int) -> None:
    """Adds the tokens of a call that has ended.

    Args:
        target: for what tokens are counted, such as ``user:ann``.
        now: the time, in ms since 1970.
    """
    _count(target, _UNLIMITED, now, requests=0, tokens=tokens)


def _count(target: str, limits: CallLimits, now: int, *, requests: int, tokens: int) -> Usage:
    day, minute = now // DAY_MS * DAY_MS, now // MINUTE_MS * MINUTE_MS
    key = keys.gateway_usage(target, day)
    begins_minute = False
    for _ in range(_ATTEMPTS):
        update = Update()
        update.set(GatewayUsage.type, keys.GATEWAY_USAGE.name)
        update.set(GatewayUsage.updated_at, now)
        update.set(GatewayUsage.ttl, (day + DAY_MS) // 1000 + KEPT_SECONDS)
        if begins_minute:
            update.require_absent_or_less(GatewayUsage.minute, minute)
            update.set(GatewayUsage.minute, minute)
            update.set(GatewayUsage.minute_requests, requests)
            update.set(GatewayUsage.minute_tokens, tokens)
        else:
            update.require_equal(GatewayUsage.minute, minute)
            update.add(GatewayUsage.minute_requests, requests)
            update.add(GatewayUsage.minute_tokens, tokens)
            if limits.requests_per_minute is not None:
                update.require_less(GatewayUsage.minute_requests, limits.requests_per_minute)
            if limits.tokens_per_minute is not None:
                update.require_less(GatewayUsage.minute_tokens, limits.tokens_per_minute)
        update.add(GatewayUsage.requests, requests)
        update.add(GatewayUsage.tokens, tokens)
        if limits.requests_per_day is not None:
            update.require_absent_or_less(GatewayUsage.requests, limits.requests_per_day)
        if limits.tokens_per_day is not None:
            update.require_absent_or_less(GatewayUsage.tokens, limits.tokens_per_day)
        try:
            return usage_of(GatewayUsage.of(table.update(key, update, returning=True)), minute)
        except ConditionFailed as failure:
            if failure.item is None:
                begins_minute = True
                continue
            item = GatewayUsage.of(failure.item)
            # The clock of another process may be ahead: its minute counts.
            minute = max(minute, item.minute)
            _check(limits, usage_of(item, minute))
            begins_minute = item.minute < minute
    raise TemporarilyUnavailable("The limits of the gateway could not be checked. Try again.")


def usage_of(item: GatewayUsage, minute: int) -> Usage:
    """Returns what an item has counted.

    Args:
        minute: the beginning of the minute, in ms since 1970.
    """
    is_current = item.minute == minute
    return Usage(
        item.minute_requests if is_current else 0,
        item.minute_tokens if is_current else 0,
        item.requests,
        item.tokens,
    )


def _check(limits: CallLimits, used: Usage) -> None:
    amounts = {
        "requests_per_day": used.day_requests,
        "tokens_per_day": used.day_tokens,
        "requests_per_minute": used.minute_requests,
        "tokens_per_minute": used.minute_tokens,
    }
    for name, amount in amounts.items():
        limit = getattr(limits, name)
        if limit is not None and amount >= limit:
            raise Reached(name, used)
