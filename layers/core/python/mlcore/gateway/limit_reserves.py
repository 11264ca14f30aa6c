"""Counts the calls of this process towards the limits of the gateway, with few writes to the table.

A process *reserves* requests: one write counts several of them for calls to come. It *holds*
tokens: when a larger call begins, it counts the tokens that the call is expected to use, at most
1/50 of the limit. So a limit of requests is never exceeded; a limit of tokens can be, by tokens
that are not counted yet and by those that open calls use beyond what they hold. A process reserves
few requests and holds tokens only for its open calls, so that other processes are not refused for
unused ones.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import Final
from weakref import WeakSet

from mlcore.entities.gateway_limits import CallLimits
from mlcore.errors import MlflowError
from mlcore.process_cache import ProcessCache
from mlcore.repos.gateway import usage
from mlcore.repos.gateway.usage import (
    DAY_MS,
    MINUTE_MS,
    CountedUsage,
    LimitReached,
    Return,
    Usage,
    UsageClaim,
)

MINUTE_SHARES: Final = 800
"""A process may reserve 1/800 of a minute's limit beyond its next call, and may have used half as
much without having counted it."""
DAY_SHARES: Final = 10_000
"""The same for a day's limit. The share is smaller because a process that ends neither returns its
reserve nor counts its use, and many processes end in a day."""
HOLD_SHARES: Final = 50
"""A call holds at most 1/50 of the lowest token limit. Otherwise small calls after a large one
would hold far more tokens than they use, and would be refused for that."""
MAX_BLOCK: Final = 16
"""Maximum number of requests that are reserved in one write."""
BLOCK_MS: Final = 10_000
"""A block that is used in less than this time is followed by one of twice the size, else by one of
half the size."""
REFUSED_MS: Final = 1000
"""How long after a refusal further calls are refused without another write, in ms."""
_SMOOTHING: Final = 4
"""The last call contributes a quarter to the expected tokens of the next one (an exponential
average)."""
_UNLIMITED: Final = CallLimits()
_ENDLESS: Final = 10**12


class Ticket:
    """A gateway call that was counted to a rate limit, as one request. ``tokens`` tokens are
    counted in advance (*held*) until it is known how many the model call used."""

    def __init__(self, reserve: Reserve, minute: int, tokens: int) -> None:
        self.reserve = reserve
        """The reserve that counts the used tokens; the process may have replaced it when the call
        ends."""
        self.minute = minute
        """The minute in which the request counts, in ms since 1970."""
        self.tokens = tokens
        self.held_in = minute
        """The minute in which the tokens are held, in ms since 1970."""


class Reserve:
    """The AI gateway's requests and tokens of one target (a key, user, endpoint or workspace) that
    this process has counted in the table in advance, or has still to count there. Threads may use
    it concurrently."""

    def __init__(self, target: str) -> None:
        self._target = target
        self._lock = threading.Lock()
        self._limits = _UNLIMITED
        self._minute = 0
        self._requests = 0
        """Requests that are counted in the table and not made yet."""
        self._uncounted = 0
        """Tokens that ended calls have used and that are not counted in the table yet."""
        self._unused = Return()
        """Counted requests and tokens that will not be used; the next write subtracts them. It
        sends them once only: a failed write may have been executed, and subtracting twice would let
        calls exceed the limit."""
        self._open: WeakSet[Ticket] = WeakSet()
        """The tickets of calls that have not ended."""
        self._held = 0
        """Tokens that are held in this minute, also by tickets that were dropped without an end."""
        self._used = Usage(0, 0, 0, 0)
        self._block, self._block_began = 0, 0
        self._expected: float | None = None
        self._refusal: LimitReached | None = None
        self._refused_at = 0

    def take(self, limits: CallLimits, now: int) -> tuple[Ticket, Usage]:
        """Counts a request, and counts in advance (*holds*) the tokens that its call is expected to
        use. If the limits are large, most calls of a busy process need no write.

        Returns:
            A ticket, with which the call must end (:meth:`settle`, or :meth:`put_back` if it is not
            made); and the usage of the target by all processes. The usage includes this request,
            the reserves of other processes, and the tokens that other open calls hold.

        Raises:
            LimitReached: a limit is reached.
        """
        with self._lock:
            self._check(limits, now)
            hold = self._next_hold()
            is_unknown = limits.counts_tokens and self._expected is None
            if self._requests < 1 or hold or is_unknown or self._is_spent():
                self._count(limits, now, hold)
            if self._requests < 1:  # the write began a new minute, which drops reserved requests
                self._count(limits, now, 0)
            self._requests -= 1
            self._held += hold
            ticket = Ticket(self, self._minute, hold)
            self._open.add(ticket)
            return ticket, self._reading(hold)

    def check(self, limits: CallLimits, now: int) -> None:
        """Raises LimitReached if a gateway call of this process was refused for this target (such
        as a user) within the last second. Costs no write."""
        with self._lock:
            self._check(limits, now)

    def put_back(self, ticket: Ticket, now: int) -> None:
        """Takes back a gateway call that was counted as a request but is not made. The next call of
        this process uses the request; if the limits are too small to keep it, it is subtracted from
        the counter in the table."""
        with self._lock:
            if not self._end(ticket, now):
                return
            unused = self._unused
            if ticket.minute // DAY_MS != self._minute // DAY_MS:
                pass
            elif ticket.minute != self._minute:
                self._unused = unused._replace(day_requests=unused.day_requests + 1)
            elif self._requests < self._spare_requests():
                self._requests += 1
            else:
                self._unused = unused._replace(requests=unused.requests + 1)
            self._write_if_due(now)

    def settle(self, ticket: Ticket, tokens: int, now: int) -> None:
        """Replaces the tokens that were counted in advance for a gateway call by those that it
        used. Writes the counts to the table if there is something to take back from them, or if the
        tokens that they lack exceed a small part of the limits."""
        with self._lock:
            if not self._end(ticket, now) or not self._limits.counts_tokens:
                return
            if tokens > 0:
                expected = tokens if self._expected is None else self._expected
                self._expected = expected + (tokens - expected) / _SMOOTHING
                self._uncounted += tokens
            self._write_if_due(now)

    def _check(self, limits: CallLimits, now: int) -> None:
        self._advance(limits, now)
        if self._refusal is not None and 0 <= now - self._refused_at < REFUSED_MS:
            raise LimitReached(self._refusal.limit, self._refusal.used)

    def _end(self, ticket: Ticket, now: int) -> bool:
        """Releases the tokens that a call holds. Returns False if the call had already ended."""
        self._advance(self._limits, now)
        if ticket not in self._open:
            return False
        self._open.discard(ticket)
        if ticket.held_in == self._minute:
            self._held -= ticket.tokens
            self._unused = self._unused._replace(hold=self._unused.hold + ticket.tokens)
        return True

    def _advance(self, limits: CallLimits, now: int) -> None:
        """Adapts the state to the current minute and limits, and releases the tokens of dropped
        tickets."""
        minute = now // MINUTE_MS * MINUTE_MS
        if minute > self._minute:
            self._begin_minute(minute)
        if limits != self._limits:
            self._limits, self._refusal, self._block = limits, None, 0
            self._return_requests()
        open_holds = sum(t.tokens for t in list(self._open) if t.held_in == self._minute)
        if open_holds < self._held:  # an invalid request was dropped without ending its ticket
            forgotten, self._held = self._held - open_holds, open_holds
            self._unused = self._unused._replace(hold=self._unused.hold + forgotten)

    def _begin_minute(self, minute: int) -> None:
        """Begins a new minute. Unused requests of the last minute are still to be subtracted from
        the day's count; used tokens that were not counted will count in the new minute."""
        self._return_requests()
        self._unused = self._unused.in_minute(minute)
        if minute // DAY_MS == self._minute // DAY_MS:
            self._used = self._used._replace(minute_requests=0, minute_tokens=0, held_tokens=0)
        else:
            self._used = Usage(0, 0, 0, 0)
        self._minute, self._refusal, self._block, self._held = minute, None, 0, 0

    def _return_requests(self) -> None:
        self._unused = self._unused._replace(requests=self._unused.requests + self._requests)
        self._requests = 0

    def _count(self, limits: CallLimits, now: int, hold: int) -> None:
        """Reserves a block of requests (if the block exceeds a limit, only the next request), and
        holds tokens: ``hold`` for the next call, and again those of open calls that began in an
        earlier minute."""
        earlier = [ticket for ticket in list(self._open) if ticket.held_in < self._minute]
        again = sum(ticket.tokens for ticket in earlier)
        hold += again
        least = UsageClaim(max(0, 1 - self._requests), self._uncounted, hold, self._unused)
        block = least
        if least.requests:
            self._block = self._next_block(now)
            block = least._replace(requests=self._block)
            self._block_began = now
        self._unused = Return(self._minute)
        try:
            counted = usage.count(self._target, limits, max(now, self._minute), block, least)
        except LimitReached as reached:
            used = _with(reached.used, self._uncounted, least.unused.hold)
            self._refusal, self._refused_at, self._block = LimitReached(reached.limit, used), now, 0
            self._unused = least.unused
            with suppress(MlflowError):
                if self._uncounted or not self._unused.is_empty:
                    self._write(now)
            raise LimitReached(reached.limit, used) from None
        except MlflowError:
            self._block = 0
            raise
        if counted.claim != block:
            self._block = 0
        self._add(counted)
        self._held += again
        for ticket in earlier:
            ticket.held_in = counted.minute

    def _write_if_due(self, now: int) -> None:
        unused = self._unused
        if (
            unused.hold
            or unused.requests
            or unused.day_requests > self._spare_requests()
            or self._uncounted > self._tolerated_tokens()
        ):
            self._write(now)
            self._refusal = None

    def _write(self, now: int) -> None:
        """Adds the uncounted tokens to the counts in the table, and subtracts the unused requests
        and tokens."""
        claim = UsageClaim(tokens=self._uncounted, unused=self._unused)
        self._unused = Return(self._minute)
        self._add(usage.count(self._target, _UNLIMITED, max(now, self._minute), claim))

    def _add(self, counted: CountedUsage) -> None:
        if counted.minute > self._minute:  # a process whose clock is ahead began this minute
            self._begin_minute(counted.minute)
        self._requests += counted.claim.requests
        self._uncounted -= counted.claim.tokens
        self._used = counted.used

    def _next_block(self, now: int) -> int:
        block = self._block
        block = block * 2 if 0 <= now - self._block_began < BLOCK_MS else block // 2
        return max(1, min(block, MAX_BLOCK, self._spare_requests()))

    def _spare_requests(self) -> int:
        return _shares(self._limits.requests_per_minute, self._limits.requests_per_day)

    def _tolerated_tokens(self) -> int:
        """Returns the number of used tokens that may stay uncounted until a later write. Calls that
        are expected to use no more than that hold no tokens."""
        limits = self._limits
        return _shares(limits.tokens_per_minute, limits.tokens_per_day) // 2

    def _next_hold(self) -> int:
        """Returns the tokens that the next call holds."""
        limits = self._limits
        if not limits.counts_tokens or (self._expected or 0) <= self._tolerated_tokens():
            return 0
        known = (limits.tokens_per_minute, limits.tokens_per_day)
        least = min(limit for limit in known if limit is not None)
        return max(1, min(round(self._expected or 0), least // HOLD_SHARES))

    def _is_spent(self) -> bool:
        """Whether a token limit is reached by the counts of the last write together with the tokens
        that this process has used since."""
        minute, day = self._limits.tokens_per_minute, self._limits.tokens_per_day
        used, more = self._used, self._uncounted
        return (minute is not None and used.minute_tokens + more >= minute) or (
            day is not None and used.day_tokens + more >= day
        )

    def _reading(self, hold: int) -> Usage:
        used = _with(self._used, self._uncounted, self._unused.hold + hold)
        return used._replace(
            minute_requests=used.minute_requests - self._requests,
            day_requests=used.day_requests - self._requests,
        )


def _with(used: Usage, uncounted: int, returned: int) -> Usage:
    """Returns the usage as it will be after the next write.

    Args:
        uncounted: used tokens that the write adds.
        returned: held tokens that the write subtracts.
    """
    more = uncounted - returned
    return used._replace(
        minute_tokens=used.minute_tokens + more,
        day_tokens=used.day_tokens + more,
        held_tokens=used.held_tokens - returned,
    )


def _shares(per_minute: int | None, per_day: int | None) -> int:
    """Returns how many requests or tokens a process may reserve beyond its next call, by the limits
    per minute and per day, where None means no limit."""
    return min(
        _ENDLESS if per_minute is None else per_minute // MINUTE_SHARES,
        _ENDLESS if per_day is None else per_day // DAY_SHARES,
    )


_reserves: ProcessCache[str, Reserve] = ProcessCache(
    "reserve of a limit", seconds=DAY_MS / 1000, weigh=lambda _: 1000
)
_making = threading.Lock()


def of(target: str) -> Reserve:
    """Returns the object by which this process counts the gateway requests and tokens of a target,
    such as ``user:ann``."""
    with _making:
        reserve = _reserves.get(target) or Reserve(target)
        _reserves.put(target, reserve)  # again: the cache drops first what was put first
        return reserve
