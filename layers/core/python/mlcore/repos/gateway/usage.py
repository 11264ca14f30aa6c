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


class Claim(NamedTuple):
    """What a write adds to the counters of a target."""

    requests: int = 0
    tokens: int = 0
    day_requests: int = 0
    """What is added to the day only; negative for requests that were counted in an earlier minute
    and not made."""
    day_tokens: int = 0

    def refused_by(self, limits: CallLimits, used: Usage) -> str:
        """Returns the name of the first limit (a field of :class:`CallLimits`) that refuses the
        claim; an empty text if none does. The call that crosses a limit of tokens still passes."""
        amounts = {
            "requests_per_day": used.day_requests + self.requests + self.day_requests - 1,
            "tokens_per_day": used.day_tokens,
            "requests_per_minute": used.minute_requests + self.requests - 1,
            "tokens_per_minute": used.minute_tokens,
        }
        for name, amount in amounts.items():
            limit = getattr(limits, name)
            if limit is not None and amount >= limit:
                return name
        return ""


class Counted(NamedTuple):
    """What a write has counted."""

    claim: Claim
    used: Usage
    """The sums afterwards."""
    minute: int
    """The beginning of the minute in which it was counted, in ms since 1970."""


def count(
    target: str, limits: CallLimits, now: int, claim: Claim, least: Claim | None = None
) -> Counted:
    """Counts requests and tokens, in one write; two when a minute begins.

    Args:
        target: for what they are counted, such as ``user:ann``.
        limits: the limits of the target.
        now: the time, in ms since 1970.
        least: what is counted, in another write, if the limits have no room for ``claim``.

    Raises:
        Reached: a limit is reached. Of requests at the same time exactly as many pass as the limit
            says.
    """
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
            update.set(GatewayUsage.minute_requests, claim.requests)
            update.set(GatewayUsage.minute_tokens, claim.tokens)
        else:
            update.require_equal(GatewayUsage.minute, minute)
            update.add(GatewayUsage.minute_requests, claim.requests)
            update.add(GatewayUsage.minute_tokens, claim.tokens)
            if limits.requests_per_minute is not None:
                room = limits.requests_per_minute - claim.requests
                update.require_less(GatewayUsage.minute_requests, room + 1)
            if limits.tokens_per_minute is not None:
                update.require_less(GatewayUsage.minute_tokens, limits.tokens_per_minute)
        day_requests = claim.requests + claim.day_requests
        update.add(GatewayUsage.requests, day_requests)
        update.add(GatewayUsage.tokens, claim.tokens + claim.day_tokens)
        if limits.requests_per_day is not None:
            room = limits.requests_per_day - day_requests
            update.require_absent_or_less(GatewayUsage.requests, room + 1)
        if limits.tokens_per_day is not None:
            update.require_absent_or_less(GatewayUsage.tokens, limits.tokens_per_day)
        try:
            item = GatewayUsage.of(table.update(key, update, returning=True))
        except ConditionFailed as failure:
            if failure.item is None:
                begins_minute = True
                continue
            item = GatewayUsage.of(failure.item)
            # The clock of another process may be ahead: its minute counts.
            minute = max(minute, item.minute)
            used = usage_of(item, minute)
            if least is not None and claim.refused_by(limits, used):
                claim = least
            if reached := claim.refused_by(limits, used):
                raise Reached(reached, used) from None
            begins_minute = item.minute < minute
        else:
            return Counted(claim, usage_of(item, minute), minute)
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
