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
from mlcore.ids import new_ulid
from mlcore.models.gateway import GatewayUsage

MINUTE_MS: Final = 60_000
DAY_MS: Final = 24 * 60 * MINUTE_MS
KEPT_SECONDS: Final = 2 * 24 * 3600
"""How long a day's item is kept after its end."""
_ATTEMPTS: Final = 6
"""Maximum attempts of a write. An attempt can fail although no limit is reached, when another
process begins a minute."""


class Usage(NamedTuple):
    """The requests and tokens of the AI gateway for a target (an API key, user, endpoint or
    workspace) in a minute and in the day to which the minute belongs."""

    minute_requests: int
    minute_tokens: int
    day_requests: int
    day_tokens: int
    held_tokens: int = 0
    """The tokens that are reserved for open calls; they are included in ``minute_tokens`` and
    ``day_tokens``."""


class LimitReached(Exception):
    """A limit of the AI gateway on requests or tokens is reached. Nothing was counted."""

    def __init__(self, limit: str, used: Usage) -> None:
        """
        Args:
            limit: the name of the limit: a field of :class:`CallLimits`.
            used: the usage of the target (a key, user, endpoint or workspace) before the refused
                call.
        """
        super().__init__(limit)
        self.limit = limit
        self.used = used


class Return(NamedTuple):
    """Requests and tokens that were counted for a gateway call but not used. They are to be
    subtracted from the counters."""

    minute: int = 0
    """The minute to which ``requests`` and ``hold`` belong, in ms since 1970."""
    requests: int = 0
    hold: int = 0
    day_requests: int = 0
    """Requests of earlier minutes of the day."""

    def in_minute(self, minute: int) -> Return:
        """Returns the part of these unused requests and tokens that can be subtracted from the
        counters of ``minute`` (this one or a later one) and its day. In a later minute, reserved
        tokens are not subtracted: they end with their minute. Requests are, from their day's count.
        """
        if minute == self.minute:
            return self
        is_same_day = minute // DAY_MS == self.minute // DAY_MS
        return Return(minute, 0, 0, self.requests + self.day_requests if is_same_day else 0)

    @property
    def is_empty(self) -> bool:
        return not (self.requests or self.hold or self.day_requests)


class UsageClaim(NamedTuple):
    """The requests and tokens that a write adds to the gateway's counters of a target (an API key,
    user, endpoint or workspace), and those that it subtracts (``unused``)."""

    requests: int = 0
    """Requests that are reserved."""
    tokens: int = 0
    """Tokens that ended calls have used."""
    hold: int = 0
    """Tokens that are reserved for calls which have not ended."""
    unused: Return = Return()

    @property
    def minute_requests(self) -> int:
        return self.requests - self.unused.requests

    @property
    def day_requests(self) -> int:
        return self.minute_requests - self.unused.day_requests

    @property
    def held_tokens(self) -> int:
        return self.hold - self.unused.hold

    def refused_by(self, limits: CallLimits, used: Usage) -> str:
        """Returns the name of the first limit (a field of :class:`CallLimits`) that does not allow
        these amounts to be counted; an empty text if all limits allow it. The call that crosses a
        limit of tokens still passes."""
        before = self.tokens - self.unused.hold
        amounts = {
            "requests_per_day": used.day_requests + self.day_requests - 1,
            "tokens_per_day": used.day_tokens + before,
            "requests_per_minute": used.minute_requests + self.minute_requests - 1,
            "tokens_per_minute": used.minute_tokens + before,
        }
        for name, amount in amounts.items():
            limit = getattr(limits, name)
            if limit is not None and amount >= limit:
                return name
        return ""


class CountedUsage(NamedTuple):
    """The result of a write that counted requests and tokens of the AI gateway to an API key, user,
    endpoint or workspace: what was counted, and the usage after the write."""

    claim: UsageClaim
    used: Usage
    """The usage of the target after the write."""
    minute: int
    """The beginning of the minute in which it was counted, in ms since 1970."""


def count(
    target: str, limits: CallLimits, now: int, claim: UsageClaim, least: UsageClaim | None = None
) -> CountedUsage:
    """Counts requests and tokens of the AI gateway, in one write; two when a minute begins. Tokens
    that are reserved for open calls count only until the end of the minute, so a process that dies
    does not keep them reserved. If the answer to a write is lost and the write repeated, it counts
    once; twice only if another process has counted to the target in between.

    Args:
        target: to what the amounts are counted, such as ``user:ann``.
        claim: the amounts to count.
        limits: the limits of the target.
        now: the time, in ms since 1970.
        least: the amounts to count instead, in another write, if the limits have no room for
            ``claim``.

    Raises:
        LimitReached: a limit is reached. Of several requests at the same time, exactly as many
            succeed as the limit allows.
        TemporarilyUnavailable: every attempt failed, although no limit is reached.
    """
    addition = new_ulid()
    day, minute = now // DAY_MS * DAY_MS, now // MINUTE_MS * MINUTE_MS
    key = keys.gateway_usage(target, day)
    begins_minute = False
    ended = 0  # the holds of an earlier minute
    for _ in range(_ATTEMPTS):
        update = _update(
            limits, _in_minute(claim, minute), minute, ended if begins_minute else None
        )
        update.set(GatewayUsage.updated_at, now)
        update.set(GatewayUsage.ttl, (day + DAY_MS) // 1000 + KEPT_SECONDS)
        update.set(GatewayUsage.last_addition, addition)
        update.require_absent_or_other(GatewayUsage.last_addition, addition)
        try:
            item = GatewayUsage.of(table.update(key, update, returning=True))
        except ConditionFailed as failure:
            if failure.item is None:
                begins_minute = True
                continue
            item = GatewayUsage.of(failure.item)
            if item.last_addition == addition:  # as an attempt whose answer was lost left it
                return CountedUsage(claim, usage_of(item, minute), minute)
            # The clock of another process may be ahead: its minute counts.
            minute = max(minute, item.minute)
            used = usage_of(item, minute)
            if least is not None and _in_minute(claim, minute).refused_by(limits, used):
                claim = least
            if reached := _in_minute(claim, minute).refused_by(limits, used):
                raise LimitReached(reached, used) from None
            begins_minute = item.minute < minute
            ended = max(0, item.held_tokens or 0)
        else:
            return CountedUsage(claim, usage_of(item, minute), minute)
    raise TemporarilyUnavailable("The limits of the gateway could not be checked. Try again.")


def _in_minute(claim: UsageClaim, minute: int) -> UsageClaim:
    return claim._replace(unused=claim.unused.in_minute(minute))


def _update(limits: CallLimits, claim: UsageClaim, minute: int, ended: int | None) -> Update:
    """Returns the write that counts a claim.

    Args:
        ended: the tokens that calls held in the last minute, if the write begins another one.
    """
    update = Update()
    update.set(GatewayUsage.type, keys.GATEWAY_USAGE.name)
    tokens = claim.tokens + claim.held_tokens
    if ended is not None:
        update.require_absent_or_less(GatewayUsage.minute, minute)
        if ended:
            update.require_equal(GatewayUsage.held_tokens, ended)
        else:
            update.require_absent_or_less(GatewayUsage.held_tokens, 1)
        update.set(GatewayUsage.minute, minute)
        update.set(GatewayUsage.minute_requests, claim.minute_requests)
        update.set(GatewayUsage.minute_tokens, tokens)
        update.set(GatewayUsage.held_tokens, claim.held_tokens)
    else:
        update.require_equal(GatewayUsage.minute, minute)
        update.add(GatewayUsage.minute_requests, claim.minute_requests)
        update.add(GatewayUsage.minute_tokens, tokens)
        update.add(GatewayUsage.held_tokens, claim.held_tokens)
    update.add(GatewayUsage.requests, claim.day_requests)
    update.add(GatewayUsage.tokens, tokens - (ended or 0))
    _require_room(update, limits, claim, ended)
    return update


def _require_room(update: Update, limits: CallLimits, claim: UsageClaim, ended: int | None) -> None:
    """Adds the conditions that the limits do not refuse a claim."""
    before = claim.tokens - claim.unused.hold
    if ended is None:
        if limits.requests_per_minute is not None:
            room = limits.requests_per_minute - claim.minute_requests
            update.require_less(GatewayUsage.minute_requests, room + 1)
        if limits.tokens_per_minute is not None:
            update.require_less(GatewayUsage.minute_tokens, limits.tokens_per_minute - before)
    if limits.requests_per_day is not None:
        room = limits.requests_per_day - claim.day_requests
        update.require_absent_or_less(GatewayUsage.requests, room + 1)
    if limits.tokens_per_day is not None:
        room = limits.tokens_per_day - before + (ended or 0)
        update.require_absent_or_less(GatewayUsage.tokens, room)


def usage_of(item: GatewayUsage, minute: int) -> Usage:
    """Returns a target's usage of the AI gateway (its requests and tokens) from the target's item
    of a day: of the day, and of one minute of it (0 if the item counts another minute).

    Args:
        minute: the beginning of the minute, in ms since 1970.
    """
    if item.minute == minute:
        return Usage(
            *(item.minute_requests, item.minute_tokens, item.requests, item.tokens),
            held_tokens=item.held_tokens or 0,
        )
    return Usage(0, 0, item.requests, item.tokens - max(0, item.held_tokens or 0))
