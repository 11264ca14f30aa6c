"""Measures the requests of one caller in this process: a token bucket for the rate, and the number
of the day, of which other processes count a part."""

from __future__ import annotations

import math
from typing import Final, NamedTuple

from mlcore.entities.caller_limits import CallerLimit
from mlcore.repos.users.caller_usage import DAY_MS

BURST_SECONDS: Final = 5
"""A caller who was quiet may send the requests of so many seconds at once: opening a page of the UI
takes some twenty."""
REPORTED_SHARE: Final = 100
"""A process reports after a hundredth of the day's limit, so that a process exceeds it by at most
that much."""
LEAST_SHARE: Final = 1 / 100
"""Share of the rate that a process has at least, so that a caller can move to another process."""
SHORTEST_WINDOW_MS: Final = 30_000
"""Reports of other processes arrive about once a minute; a shorter window would miss them."""
LONGEST_WINDOW_MS: Final = 5 * 60_000
"""After a longer silence, what the process had of the caller's requests says nothing any more."""
RETRY_MS: Final = 60_000
"""Time between reports while they fail."""
MOST_SECONDS: Final = 60
"""Longest time to wait that a refusal names: clients sleep as long as they are told, and one that
sleeps until midnight looks dead."""


class Refusal(NamedTuple):
    """A limit that is reached."""

    limit: int
    unit: str
    seconds: int
    """After which a caller may try again."""


class CountedRequests(NamedTuple):
    """Requests to add to the day's number."""

    day: int
    requests: int


class RequestMeter:
    """Not safe to use in several threads at once; its user holds a lock."""

    __slots__ = (
        "_day",
        "_filled_at",
        "_limit",
        "_reporting",
        "_retry_at",
        "_share",
        "_tokens",
        "_total",
        "_unreported",
        "_window_at",
        "_window_base",
        "_window_own",
    )

    def __init__(self, limit: CallerLimit) -> None:
        self._limit = limit
        self._day = -1
        self._total: int | None = None
        """The day's number of all processes, as far as this one knows; None before it was read."""
        self._unreported = self._reporting = 0
        self._retry_at = 0
        """When to report again after a failure."""
        self._share = 1.0
        """The part of the caller's requests that reach this process."""
        self._tokens = math.inf
        self._filled_at = 0
        self._window_at = self._window_base = self._window_own = 0

    def needs_total(self, now: int) -> bool:
        """Whether the day's number was not read yet in this process."""
        return self._day != now // DAY_MS * DAY_MS or self._total is None

    def learn(self, total: int, now: int) -> None:
        """Begins a day with the number that processes have reported so far."""
        self._day = now // DAY_MS * DAY_MS
        self._total = total
        self._unreported = self._reporting = 0
        self._begin_window(total, now)

    def refusal(self, now: int) -> Refusal | None:
        """Returns the limit that a request would exceed now; None if it may pass."""
        per_second, per_day = self._limit
        if per_day is not None and self._used() >= per_day:
            seconds = math.ceil((self._day + DAY_MS - now) / 1000)
            return Refusal(per_day, "day", _bounded(seconds))
        if per_second is not None:
            self._refill(per_second, now)
            if self._tokens < 1:
                seconds = math.ceil((1 - self._tokens) / (per_second * self._share))
                return Refusal(per_second, "second", _bounded(seconds))
        return None

    def count(self) -> None:
        """Counts a request that passed."""
        self._tokens -= 1
        self._unreported += 1

    def must_report(self, now: int) -> bool:
        """Whether so many requests are unreported that the day's limit is in danger, and the last
        report has not just failed."""
        per_day = self._limit.per_day
        if per_day is None or now < self._retry_at:
            return False
        return self._unreported >= math.ceil(per_day / REPORTED_SHARE)

    def weight(self) -> float:
        """Returns the unreported requests as a part of what the caller may send in a day."""
        per_second, per_day = self._limit
        return self._unreported / (per_day or (per_second or 1) * DAY_MS / 1000)

    def take_report(self) -> CountedRequests:
        """Returns what to report; :meth:`reported` or :meth:`not_reported` must follow."""
        report = CountedRequests(self._day, self._unreported)
        self._reporting += report.requests
        self._unreported = 0
        return report

    def reported(self, report: CountedRequests, total: int, now: int) -> None:
        """Notes that a report was added, with the day's new number."""
        if report.day != self._day:
            return
        self._reporting -= report.requests
        self._total = max(self._total or 0, total)
        self._window_own += report.requests
        elapsed = now - self._window_at
        if elapsed < SHORTEST_WINDOW_MS:
            return
        arrived = total - self._window_base
        is_known = elapsed <= LONGEST_WINDOW_MS and arrived > 0
        share = self._window_own / arrived if is_known else 1.0
        self._share = min(1.0, max(LEAST_SHARE, share))
        self._begin_window(total, now)

    def not_reported(self, report: CountedRequests, now: int) -> None:
        """Notes that a report failed; its requests belong to the next one, a minute later."""
        self._retry_at = now + RETRY_MS
        if report.day == self._day:
            self._reporting -= report.requests
            self._unreported += report.requests

    def _used(self) -> int:
        return (self._total or 0) + self._reporting + self._unreported

    def _refill(self, per_second: int, now: int) -> None:
        rate = per_second * self._share
        elapsed = max(0, now - self._filled_at) / 1000
        self._tokens = min(max(1.0, rate * BURST_SECONDS), self._tokens + elapsed * rate)
        self._filled_at = now

    def _begin_window(self, total: int, now: int) -> None:
        self._window_at, self._window_base, self._window_own = now, total, 0


def _bounded(seconds: int) -> int:
    return min(MOST_SECONDS, max(1, seconds))
