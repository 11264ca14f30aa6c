"""The requests of one caller: the rate, the number of the day, and the part of each process."""

from __future__ import annotations

import math

import pytest

from mlcore.entities.caller_limit_variables import CallerLimit, stated
from mlcore.policies.request_meter import BURST_SECONDS, MOST_SECONDS, RequestMeter
from mlcore.repos.users.caller_usage import DAY_MS

NOON = 20_000 * DAY_MS + DAY_MS // 2


def meter(
    per_second: int | None = None, per_day: int | None = None, total: int = 0
) -> RequestMeter:
    made = RequestMeter(CallerLimit(per_second, per_day))
    made.learn(total, NOON)
    return made


def passing(request_meter: RequestMeter, now: int, attempts: int) -> int:
    """How many of so many requests pass at a moment."""
    passed = 0
    for _ in range(attempts):
        if request_meter.refusal(now) is None:
            request_meter.count()
            passed += 1
    return passed


def test_rate_holds_over_a_minute() -> None:
    request_meter = meter(per_second=7)
    assert passing(request_meter, NOON, 1_000) == 7 * BURST_SECONDS
    passed = sum(passing(request_meter, NOON + 50 * step, 10) for step in range(1, 60 * 20 + 1))
    assert passed == 7 * 60


def test_refusal_says_when_to_come_back() -> None:
    request_meter = meter(per_second=2)
    passing(request_meter, NOON, 100)
    refusal = request_meter.refusal(NOON)
    assert refusal == (2, "second", 1)
    assert refusal is not None
    assert request_meter.refusal(NOON + refusal.seconds * 1000) is None


def test_refused_requests_cost_nothing() -> None:
    request_meter = meter(per_second=1)
    passing(request_meter, NOON, 10_000)
    assert passing(request_meter, NOON + 1000, 10_000) == 1


def test_a_clock_that_goes_back_gives_nothing() -> None:
    request_meter = meter(per_second=1)
    passing(request_meter, NOON, 100)
    assert passing(request_meter, NOON - 3_600_000, 100) == 0
    assert passing(request_meter, NOON - 3_599_000, 100) == 1


def test_number_of_the_day_includes_other_processes() -> None:
    request_meter = meter(per_day=100, total=60)
    assert passing(request_meter, NOON, 1_000) == 40
    assert request_meter.refusal(NOON) == (100, "day", MOST_SECONDS)
    last_seconds = NOON + DAY_MS // 2 - 5_000
    assert request_meter.refusal(last_seconds) == (100, "day", 5)
    assert request_meter.needs_total(NOON + DAY_MS // 2)
    request_meter.learn(0, NOON + DAY_MS // 2)
    assert passing(request_meter, NOON + DAY_MS // 2, 1_000) == 100


def test_requests_on_their_way_to_the_counter_count() -> None:
    request_meter = meter(per_day=10)
    passing(request_meter, NOON, 4)
    report = request_meter.take_report()
    assert report.requests == 4
    assert passing(request_meter, NOON, 100) == 6
    request_meter.not_reported(report, NOON)
    assert request_meter.take_report().requests == 10
    assert passing(request_meter, NOON, 100) == 0


def test_report_of_yesterday_changes_nothing_today() -> None:
    request_meter = meter(per_day=10)
    passing(request_meter, NOON, 4)
    report = request_meter.take_report()
    request_meter.learn(0, NOON + DAY_MS)
    request_meter.reported(report, 10, NOON + DAY_MS)
    request_meter.not_reported(report, NOON)
    assert passing(request_meter, NOON + DAY_MS, 100) == 10


@pytest.mark.parametrize(("per_day", "step"), [(1, 1), (100, 1), (101, 2), (10_000, 100)])
def test_a_hundredth_of_the_day_is_reported(per_day: int, step: int) -> None:
    request_meter = meter(per_day=per_day)
    passing(request_meter, NOON, step - 1)
    assert not request_meter.must_report(NOON)
    passing(request_meter, NOON, 1)
    assert request_meter.must_report(NOON)
    request_meter.not_reported(request_meter.take_report(), NOON)
    assert not request_meter.must_report(NOON + 59_999)
    assert request_meter.must_report(NOON + 60_000)


def test_processes_share_a_rate() -> None:
    """Four processes with an equal load never exceed the rate together after their second report,
    and reach it a few minutes later."""
    processes = [meter(per_second=20) for _ in range(4)]
    shared, by_minute = 0, []
    for minute in range(10):
        passed = 0
        for second in range(60):
            for number, process in enumerate(processes):
                now = NOON + minute * 60_000 + second * 1000
                passed += passing(process, now, 30)
                if second == 15 * number:
                    report = process.take_report()
                    shared += report.requests
                    process.reported(report, shared, now)
        by_minute.append(passed)
    assert by_minute[0] > 3 * 20 * 60
    assert max(by_minute[2:]) <= 1.2 * 20 * 60, by_minute
    assert min(by_minute[6:]) >= 0.8 * 20 * 60, by_minute


def test_a_share_is_forgotten_after_a_silence() -> None:
    request_meter = meter(per_second=100)
    passing(request_meter, NOON, 1)
    request_meter.reported(request_meter.take_report(), 10_000, NOON + 60_000)
    assert passing(request_meter, NOON + 120_000, 1_000) == 5
    request_meter.reported(request_meter.take_report(), 20_000, NOON + 3_600_000)
    request_meter.refusal(NOON + 3_600_000)
    assert passing(request_meter, NOON + 3_610_000, 1_000) == 100 * BURST_SECONDS


def test_limits_of_the_environment() -> None:
    assert stated({}) == {}
    assert stated({"USER_REQUESTS_PER_SECOND": "0", "KEY_REQUESTS_PER_DAY": ""}) == {}
    limits = stated({"USER_REQUESTS_PER_SECOND": "5", "WORKSPACE_REQUESTS_PER_DAY": "7"})
    assert limits == {"user": CallerLimit(5, None), "workspace": CallerLimit(None, 7)}
    for wrong in ("-1", "1.5", "many"):
        with pytest.raises(ValueError, match="USER_REQUESTS_PER_DAY"):
            stated({"USER_REQUESTS_PER_DAY": wrong})


def test_weight_compares_callers() -> None:
    light, heavy = meter(per_day=1_000), meter(per_day=1_000)
    passing(light, NOON, 1)
    passing(heavy, NOON, 2)
    assert heavy.weight() > light.weight() > meter(per_day=1_000).weight() == 0
    assert math.isfinite(meter(per_second=3).weight())
