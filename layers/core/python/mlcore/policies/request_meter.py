"""Limits how many requests one caller of the API may send per second and per day: a token bucket in
each process for the rate, and a daily total to which all processes add their reports."""

from __future__ import annotations

import math
from typing import Final, NamedTuple

from mlcore.entities.caller_limit_variables import CallerLimit
from mlcore.repos.users.caller_usage import DAY_MS

BURST_SECONDS: Final = 5
"""The token bucket holds the requests of this many seconds, since opening a page of the UI takes
about twenty requests at once."""
REPORTED_SHARE: Final = 100
"""A process reports after a hundredth of the day's limit, so that it can exceed the limit by at
most that much."""
LEAST_SHARE: Final = 1 / 100
"""The lowest share of the rate that a process grants, so that a caller's requests can move from one
process to another."""
SHORTEST_WINDOW_MS: Final = 30_000
"""Reports of other processes arrive about once a minute; a shorter window would miss them."""
LONGEST_WINDOW_MS: Final = 5 * 60_000
"""After a longer time without a report, the process's share of the caller's requests is unknown
again."""
RETRY_MS: Final = 60_000
"""How long after a failed report an unreported hundredth causes no other one, in ms."""
MOST_SECONDS: Final = 60
"""The longest Retry-After of a refusal. Clients sleep for the whole time, and a client that sleeps
until midnight would seem to hang."""


class Refusal(NamedTuple):
    """A caller's limit that is reached: ``limit`` requests per ``unit`` (``second`` or ``day``)."""

    limit: int
    unit: str
    seconds: int
    """The time in seconds after which the caller may try again."""


class CountedRequests(NamedTuple):
    """A report of a process about one caller of the API: the number of requests to add to the
    caller's total of a day. ``day`` is the beginning of the day in ms since 1970."""

    day: int
    requests: int


class RequestMeter:
    """Counts the requests of one caller in this process and refuses those beyond the limit. Not
    safe to use in several threads at once; callers hold a lock."""

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
        """The requests of the day that all processes have reported, as of the last read or report;
        None before the first read."""
        self._unreported = self._reporting = 0
        self._retry_at = 0
        """Until this time (ms since 1970) :meth:`must_report` is false, because a report failed."""
        self._share = 1.0
        """The fraction of the caller's requests that reach this process."""
        self._tokens = math.inf
        self._filled_at = 0
        self._window_at = self._window_base = self._window_own = 0

    def needs_total(self, now: int) -> bool:
        """Whether the day's total of the caller's requests must be read from the table, because
        this process has not read it yet."""
        return self._day != now // DAY_MS * DAY_MS or self._total is None

    def learn(self, total: int, now: int) -> None:
        """Begins a day whose total so far is ``total``: the requests that all processes have
        reported."""
        self._day = now // DAY_MS * DAY_MS
        self._total = total
        self._unreported = self._reporting = 0
        self._begin_window(total, now)

    def refusal(self, now: int) -> Refusal | None:
        """Returns the request limit that the caller would exceed with one more request now; None if
        the request may pass."""
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
        """Counts a request of the caller that :meth:`refusal` found within the caller's limits."""
        self._tokens -= 1
        self._unreported += 1

    def must_report(self, now: int) -> bool:
        """Whether a hundredth of the day's limit is unreported, so that a report is needed at once,
        and the last minute had no failed report."""
        per_day = self._limit.per_day
        if per_day is None or now < self._retry_at:
            return False
        return self._unreported >= math.ceil(per_day / REPORTED_SHARE)

    def weight(self) -> float:
        """Returns the requests that this process has not reported to the table yet, as a fraction
        of those that the caller may send in a day."""
        per_second, per_day = self._limit
        return self._unreported / (per_day or (per_second or 1) * DAY_MS / 1000)

    def take_report(self) -> CountedRequests:
        """Returns the number of unreported requests as a report. The code that called this adds it
        to the table's counter and then calls :meth:`reported` or :meth:`not_reported`."""
        report = CountedRequests(self._day, self._unreported)
        self._reporting += report.requests
        self._unreported = 0
        return report

    def reported(self, report: CountedRequests, total: int, now: int) -> None:
        """Records that the table's counter of the caller's requests, which is now ``total`` for the
        day, includes this process's ``report``. Adjusts the share of the caller's rate that this
        process grants. Ignores a report of an earlier day."""
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
        """Records that a report of counted requests was not added to the table. The next report
        includes these requests."""
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
