"""Limits the requests of each API key, user and workspace.

Each process counts in its memory and reports to a counter in the table that all processes share: at
most one report a minute, and one whenever a hundredth of a day's limit is unreported. So the limit
of a day is exceeded by at most a hundredth per process. A rate limit applies in each process from
the first request on. After a report that comes at least 30 seconds after the caller's first
request, a process divides the rate: one that gets a quarter of the caller's requests grants a
quarter of the rate.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from mlcore.db import capacity
from mlcore.entities.caller_limit_variables import KEY, USER, WORKSPACE, CallerLimit
from mlcore.errors import CallerLimitReached, MlflowError
from mlcore.ids import now_ms
from mlcore.observability import logger
from mlcore.policies.access import Access
from mlcore.policies.request_meter import RequestMeter
from mlcore.process_cache import ProcessCache, SingleEntryCache
from mlcore.repos.users import caller_usage

REPORT_INTERVAL_MS: Final = 60_000
METER_BYTES: Final = 500

_meters: ProcessCache[str, RequestMeter] = ProcessCache(
    "request meter", weigh=lambda _: METER_BYTES
)
"""Meters by target, such as ``user:ann``. The unreported requests of an evicted meter are lost."""
_last_report: SingleEntryCache[str, int] = SingleEntryCache("last report of requests")
"""When this process counted its first request, or sent its last periodic report, in ms."""
_counting: Final = threading.Lock()


class _Limited(NamedTuple):
    kind: str
    target: str
    meter: RequestMeter


def admit_caller(limits: Mapping[str, CallerLimit], access: Access) -> None:
    """Counts a request to its API key and user. Raises CallerLimitReached, without a write, if
    one of them has reached a limit; then the request counts to none."""
    names = {KEY: access.key_id, USER: access.username}
    _admit(
        [_limited(limits, kind, name) for kind, name in names.items() if name and kind in limits]
    )


def admit_workspace(limits: Mapping[str, CallerLimit], access: Access) -> None:
    """Counts a request towards the request limit of its workspace, but only if the caller belongs
    to the workspace. Otherwise anybody could use up the limit by naming the workspace. Raises the
    errors of :func:`admit_caller`."""
    if WORKSPACE not in limits:
        return
    belongs = access.is_admin or access.scope_use.owner_is_admin
    if belongs or access.sees_workspace(access.workspace):
        _admit([_limited(limits, WORKSPACE, access.workspace)])


def _limited(limits: Mapping[str, CallerLimit], kind: str, name: str) -> _Limited:
    target = f"{kind}:{name}"
    with _counting:
        meter = _meters.get(target)
        if meter is None:
            meter = RequestMeter(limits[kind])
            _meters.put(target, meter)
    return _Limited(kind, target, meter)


def _admit(limited: Sequence[_Limited]) -> None:
    if not limited:
        return
    now = now_ms()
    _learn_totals([limit for limit in limited if limit.meter.needs_total(now)], now)
    with _counting:
        for limit in limited:
            refusal = limit.meter.refusal(now)
            if refusal is not None:
                raise CallerLimitReached(
                    f"Request limit reached: {refusal.limit} requests per {refusal.unit} for this "
                    f"{limit.kind}. Try again in {refusal.seconds} seconds.",
                    refusal.seconds,
                )
        for limit in limited:
            limit.meter.count()
        due = _due(limited, now)
    if due is not None:
        _report(due, now)


def _learn_totals(unknown: Sequence[_Limited], now: int) -> None:
    """Reads the day's totals of these targets from the table; once a day and process for each
    target. If they cannot be read, counting begins at 0."""
    if not unknown:
        return
    try:
        totals = caller_usage.totals([limit.target for limit in unknown], _day(now))
    except MlflowError as error:
        _log_failure("read", error)
        totals = [0] * len(unknown)
    with _counting:
        for limit, total in zip(unknown, totals, strict=True):
            if limit.meter.needs_total(now):
                limit.meter.learn(total, now)


def _due(limited: Sequence[_Limited], now: int) -> _Limited | None:
    """Returns the meter that must report now; None if none must. Once a minute this is the one with
    the most unreported requests in proportion to its limit."""
    heaviest = max(limited, key=lambda limit: limit.meter.weight())
    last = _last_report.get("at")
    if last is None:
        _last_report.put("at", now)
    elif now - last >= REPORT_INTERVAL_MS:
        _last_report.put("at", now)
        return heaviest
    return next((limit for limit in limited if limit.meter.must_report(now)), None)


def _report(limit: _Limited, now: int) -> None:
    """Adds the unreported requests of a meter to the day's total in the table. A failure is logged
    and does not fail the request; the next report then includes these requests."""
    with _counting:
        report = limit.meter.take_report()
    if not report.requests:
        return
    try:
        with capacity.writing_for_itself():
            total = caller_usage.add(limit.target, report.day, report.requests)
    except MlflowError as error:
        _log_failure("reported", error)
        with _counting:
            limit.meter.not_reported(report, now)
        return
    with _counting:
        limit.meter.reported(report, total, now)


def _day(now: int) -> int:
    return now // caller_usage.DAY_MS * caller_usage.DAY_MS


def _log_failure(action: str, error: MlflowError) -> None:
    logger.error(f"the requests of callers were not {action}", extra={"error": error.error_code})
