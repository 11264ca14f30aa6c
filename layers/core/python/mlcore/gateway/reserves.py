"""Reserves of requests and tokens: what this process has counted towards a limit of the gateway and
not used yet, so that not each call costs a write.

What is reserved is counted, so no limit is exceeded. What a process reserves beyond its next call
is small enough that sixteen processes which then stop calling withhold 2 % of a minute.
"""

from __future__ import annotations

import threading
from typing import Final, NamedTuple

from mlcore.entities.gateway_limits import CallLimits
from mlcore.process_cache import ProcessCache
from mlcore.repos.gateway import usage
from mlcore.repos.gateway.usage import DAY_MS, MINUTE_MS, Claim, Counted, Reached, Usage

MINUTE_SHARES: Final = 800
"""The share of a minute's limit that a process may reserve beyond its next call."""
DAY_SHARES: Final = 10_000
"""The share of a day's limit. It is smaller because a process that ends returns nothing, and many
processes end in a day."""
MAX_BLOCK: Final = 16
"""The most requests that are reserved in one write."""
BLOCK_MS: Final = 10_000
"""A block that is used in less than this time is followed by one of twice the size, else by one of
half the size."""
REFUSED_MS: Final = 1000
"""How long further calls are refused without another write."""
_SMOOTHING: Final = 4
"""The last call is this part of the expected tokens of the next one."""
_UNLIMITED: Final = CallLimits()


class Ticket(NamedTuple):
    """The tokens that a call is expected to use, which its reserve holds until they are known."""

    minute: int
    tokens: int


class Reserve:
    """The requests and tokens that this process has reserved of one target (a key, user, endpoint
    or workspace). Threads may use it concurrently."""

    def __init__(self, target: str) -> None:
        self._target = target
        self._lock = threading.Lock()
        self._limits = _UNLIMITED
        self._minute = 0
        self._requests = 0
        """Requests that are counted and not made."""
        self._tokens = 0
        """Tokens that are counted and neither used nor expected of an open call; negative for
        tokens that were used and are not counted."""
        self._unused = Claim()
        """What was counted in earlier minutes of the day and not used, as negative numbers."""
        self._used = Usage(0, 0, 0, 0)
        self._block, self._block_began = 0, 0
        self._expected: float | None = None
        self._refusal: Reached | None = None
        self._refused_at = 0

    def take(self, limits: CallLimits, now: int) -> Usage:
        """Counts a request. Most calls of a busy process need no write.

        Returns:
            What all processes have used, together with this request and with what the other
            processes have reserved.

        Raises:
            Reached: a limit is reached.
        """
        with self._lock:
            self._advance(limits, now)
            if self._refusal is not None and 0 <= now - self._refused_at < REFUSED_MS:
                raise Reached(self._refusal.limit, self._refusal.used)
            needed = self._expected_tokens()
            if self._requests < 1 or self._tokens < needed:
                self._count(limits, now, needed)
            self._requests -= 1
            return self._reading()

    def put_back(self, now: int) -> None:
        """Takes back a request that was counted at ``now`` and is not made: the next call uses
        it."""
        with self._lock:
            if now // MINUTE_MS * MINUTE_MS == self._minute:
                self._requests += 1

    def begin(self) -> Ticket:
        """Holds the expected tokens of a call that begins."""
        with self._lock:
            ticket = Ticket(self._minute, self._expected_tokens())
            self._tokens -= ticket.tokens
            return ticket

    def settle(self, ticket: Ticket, tokens: int, now: int) -> None:
        """Replaces the expected tokens of a call that has ended by those that it used. Writes if
        more is uncounted, or counted in excess, than a small part of the limits."""
        with self._lock:
            self._advance(self._limits, now)
            if tokens > 0:
                expected = tokens if self._expected is None else self._expected
                self._expected = expected + (tokens - expected) / _SMOOTHING
            unexpected = tokens - ticket.tokens
            if ticket.minute == self._minute or unexpected > 0:
                self._tokens -= unexpected
            else:  # what an earlier minute counted in excess, this one must not use
                self._return(Claim(day_tokens=unexpected))
            tolerance = self._tolerated_tokens()
            if not -tolerance <= self._tokens <= tolerance + self._expected_tokens():
                self._add(usage.count(self._target, _UNLIMITED, now, self._correction()))

    def _advance(self, limits: CallLimits, now: int) -> None:
        """Begins another minute, or other limits."""
        minute = now // MINUTE_MS * MINUTE_MS
        if minute > self._minute:
            self._begin_minute(minute)
        if limits != self._limits:
            self._limits, self._refusal, self._block = limits, None, 0

    def _begin_minute(self, minute: int) -> None:
        """Keeps what was counted and not used for the day only, and what was used and not counted
        for the new minute."""
        if minute // DAY_MS == self._minute // DAY_MS:
            self._return(Claim(day_requests=-self._requests, day_tokens=-max(0, self._tokens)))
        else:
            self._unused = Claim()
        self._requests, self._tokens = 0, min(0, self._tokens)
        self._minute, self._refusal, self._block = minute, None, 0

    def _return(self, unused: Claim) -> None:
        former = self._unused
        self._unused = Claim(
            day_requests=former.day_requests + unused.day_requests,
            day_tokens=former.day_tokens + unused.day_tokens,
        )

    def _count(self, limits: CallLimits, now: int, needed: int) -> None:
        """Reserves a block of requests and their tokens, or if it does not fit the next call."""
        least = self._correction()._replace(
            requests=max(0, 1 - self._requests), tokens=max(0, needed - self._tokens)
        )
        block = least
        if least.requests:
            self._block = self._next_block(now)
            further = self._block - 1
            block = least._replace(
                requests=self._block,
                tokens=least.tokens + min(further * needed, self._spare_tokens(limits)),
            )
            self._block_began = now
        try:
            counted = usage.count(self._target, limits, now, block, least)
        except Reached as reached:
            self._refusal, self._refused_at = reached, now
            raise
        if counted.claim != block:
            self._block = 0
        self._add(counted)

    def _correction(self) -> Claim:
        return self._unused._replace(tokens=-self._tokens)

    def _add(self, counted: Counted) -> None:
        if counted.minute > self._minute:  # of another process, whose clock is ahead
            self._begin_minute(counted.minute)
        self._unused = Claim()
        self._requests += counted.claim.requests
        self._tokens += counted.claim.tokens
        self._used = counted.used

    def _next_block(self, now: int) -> int:
        block = self._block
        block = block * 2 if 0 <= now - self._block_began < BLOCK_MS else block // 2
        limits = self._limits
        shares = _shares(limits.requests_per_minute, limits.requests_per_day)
        return max(1, min(block, MAX_BLOCK, shares))

    def _spare_tokens(self, limits: CallLimits) -> int:
        if not limits.counts_tokens:
            return 0
        return _shares(limits.tokens_per_minute, limits.tokens_per_day)

    def _tolerated_tokens(self) -> int:
        """Returns how many tokens may wait for the write of the next call to be counted. A process
        that ends never counts them, so they are at most half a call, unless that is less than what
        may be reserved."""
        limits = self._limits
        if limits.tokens_per_day is None:
            return self._spare_tokens(limits)
        day = max(limits.tokens_per_day // DAY_SHARES, self._expected_tokens() // 2)
        return min(
            day, limits.tokens_per_day // MINUTE_SHARES, _shares(limits.tokens_per_minute, None)
        )

    def _expected_tokens(self) -> int:
        """Returns the tokens that the next call is expected to use; 0 without limits of tokens."""
        return round(self._expected or 0) if self._limits.counts_tokens else 0

    def _reading(self) -> Usage:
        used = self._used
        return Usage(
            used.minute_requests - self._requests,
            used.minute_tokens - max(0, self._tokens),
            used.day_requests - self._requests,
            used.day_tokens - max(0, self._tokens),
        )


def _shares(per_minute: int | None, per_day: int | None) -> int:
    """Returns what a process may reserve beyond its next call."""
    return min(
        MAX_BLOCK * 10**12 if per_minute is None else per_minute // MINUTE_SHARES,
        MAX_BLOCK * 10**12 if per_day is None else per_day // DAY_SHARES,
    )


_reserves: ProcessCache[str, Reserve] = ProcessCache(
    "reserve of a limit", seconds=DAY_MS / 1000, weigh=lambda _: 1000
)
_making = threading.Lock()


def of(target: str) -> Reserve:
    """Returns the reserve of a target (such as ``user:ann``) in this process."""
    reserve = _reserves.get(target)
    if reserve is None:
        with _making:
            reserve = _reserves.get(target)
            if reserve is None:
                reserve = Reserve(target)
                _reserves.put(target, reserve)
    return reserve
