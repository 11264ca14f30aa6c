"""Reserves of requests and tokens: whatever several processes do in whatever order, no limit is
exceeded, little of it is withheld, and busy processes write less than once a call."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlcore import ids
from mlcore.db import keys
from mlcore.db.table import table
from mlcore.entities.gateway_limits import CallLimits
from mlcore.errors import GatewayCallFailed
from mlcore.gateway import limit_reserves, rate_limits
from mlcore.gateway.limit_reserves import Reserve
from mlcore.gateway.rate_limits import Limited
from mlcore.repos.gateway import limit_readings, usage
from mlcore.repos.gateway.usage import DAY_MS, MINUTE_MS, LimitReached
from tests.contract.conftest import Store, examples

DAY = DAY_MS * 20_000
PROCESSES = 4


@pytest.fixture(autouse=True, scope="module")
def small_shares(shared_store: Store) -> Iterator[None]:
    """With these, small limits have blocks."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(limit_reserves, "MINUTE_SHARES", 10)
        patch.setattr(limit_reserves, "DAY_SHARES", 20)
        yield


def target() -> str:
    return f"user:{ids.new_ulid()}"


class Step(NamedTuple):
    """A call."""

    process: int
    pause: int
    """Milliseconds before it."""
    tokens: int
    """What it uses."""


def bursts(seed: int) -> list[Step]:
    """Two hundred calls: each process is busy for a while."""
    random = Random(seed)
    steps: list[Step] = []
    while len(steps) < 200:
        process, most = random.randrange(PROCESSES), random.choice((5, 30, 300))
        steps += [
            Step(process, random.choice((0, 0, 0, 100, 900)), random.randrange(most))
            for _ in range(random.randrange(1, 30))
        ]
        pause = random.choice((0, 0, 11_000, 45_000))
        steps.append(Step(process, pause, random.randrange(most)))
    return steps


SEEDS = st.integers(0, 2**32)


@examples(60)
@given(SEEDS, st.integers(20, 60), st.integers(20, 80))
def test_no_limit_of_requests_is_exceeded(seed: int, per_minute: int, per_day: int) -> None:
    """And who is refused finds at most the shares of the other processes unused, and what they
    counted in earlier minutes."""
    name, now = target(), DAY
    limits = CallLimits(per_minute, per_day)
    processes = [Reserve(name) for _ in range(PROCESSES)]
    minutes: Counter[int] = Counter()
    share = max(1, min(per_minute // 10, per_day // 20))
    for process, pause, _ in bursts(seed):
        now += pause
        minute = now // MINUTE_MS
        try:
            processes[process].take(limits, now)
        except LimitReached as reached:
            is_minute = reached.limit == "requests_per_minute"
            used = minutes[minute] if is_minute else minutes.total()
            assert used + PROCESSES * share >= (per_minute if is_minute else per_day)
        else:
            minutes[minute] += 1
            assert minutes[minute] <= per_minute
            assert minutes.total() <= per_day


@examples(60)
@given(SEEDS, st.integers(100, 1000), st.integers(100, 2000))
def test_tokens_of_ended_calls_are_counted(seed: int, per_minute: int, per_day: int) -> None:
    """All but a share for each process, and never more than a call and a share too many."""
    name, now = target(), DAY
    limits = CallLimits(tokens_per_minute=per_minute, tokens_per_day=per_day)
    processes = [Reserve(name) for _ in range(PROCESSES)]
    used = 0
    largest = 0
    for process, pause, tokens in bursts(seed):
        now += pause
        reserve = processes[process]
        try:
            ticket, _ = reserve.take(limits, now)
        except LimitReached:
            continue
        reserve.settle(ticket, tokens, now)
        used += tokens
        largest = max(largest, tokens)
    (reading,) = limit_readings.read([name], now)
    share = max(per_minute, per_day) // 10
    assert used - PROCESSES * share <= reading.usage.day_tokens
    assert reading.usage.day_tokens <= used + PROCESSES * (share + 2 * largest)
    assert used <= per_day + largest + PROCESSES * share


@examples(40)
@given(st.integers(2, 16), st.integers(1, 30), st.integers(50, 120))
def test_calls_at_the_same_time_hold_their_tokens(together: int, tokens: int, calls: int) -> None:
    """Once a process knows what a call uses, calls that are open together do not exceed a limit by
    more than the call that crosses it."""
    name, now = target(), DAY
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(limit_reserves, "MINUTE_SHARES", 1_000_000)  # no blocks of tokens
        _call_together(name, now, together, tokens, calls)


def _call_together(name: str, now: int, together: int, tokens: int, calls: int) -> None:
    per_minute = calls * tokens
    limits = CallLimits(tokens_per_minute=per_minute)
    reserve = Reserve(name)
    reserve.settle(reserve.take(limits, now)[0], tokens, now)
    made = 1
    for _ in range(calls):
        tickets = []
        for _ in range(together):
            try:
                tickets.append(reserve.take(limits, now)[0])
            except LimitReached:
                continue
        for ticket in tickets:
            reserve.settle(ticket, tokens, now)
        made += len(tickets)
        now += 100
    assert calls <= made <= calls + 1


def test_what_a_minute_left_unused_is_used_in_the_next() -> None:
    """Of a day's limit nothing is lost, however many minutes end with a reserve."""
    reserve, limits = Reserve(target()), CallLimits(requests_per_day=100)
    for minute in range(50):
        for _ in range(2):  # a block of one, and the first of a block of two
            reserve.take(limits, DAY + minute * MINUTE_MS)
    with pytest.raises(LimitReached):
        reserve.take(limits, DAY + 50 * MINUTE_MS)


def test_what_a_busy_process_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Less than a tenth of a write for a call, if the limit is large; each refusal of a second
    after the first costs nothing."""
    monkeypatch.setattr(limit_reserves, "MINUTE_SHARES", 800)
    writes: list[Any] = []
    count = usage.count

    def counted(*arguments: Any) -> usage.CountedUsage:
        writes.append(arguments)
        return count(*arguments)

    monkeypatch.setattr(usage, "count", counted)
    reserve, limits = Reserve(target()), CallLimits(requests_per_minute=16_000)
    for call in range(400):
        reserve.take(limits, DAY + call * 100)
    assert len(writes) < 40
    writes.clear()
    reserve, limits = Reserve(target()), CallLimits(requests_per_minute=1)
    reserve.take(limits, DAY)
    for moment in range(0, 1999, 100):
        with pytest.raises(LimitReached):
            reserve.take(limits, DAY + moment)
    assert len(writes) == 3


def test_a_refused_call_counts_nowhere() -> None:
    """A wider limit that refuses gives the request back to the narrower ones."""
    limited = [
        Limited(target(), "users", CallLimits(requests_per_day=2)),
        Limited(target(), "workspaces", CallLimits(requests_per_minute=1)),
    ]
    rate_limits.admit(limited)
    for _ in range(5):
        with pytest.raises(Exception, match="1 requests per minute"):
            rate_limits.admit(limited)
    rate_limits.admit(limited[:1])
    with pytest.raises(Exception, match="2 requests per day"):
        rate_limits.admit(limited[:1])


def test_a_refusal_because_of_open_calls_ends_soon() -> None:
    """The caller need not wait until midnight for tokens that are only held."""
    limited = [Limited(target(), "users", CallLimits(tokens_per_day=1000))]
    rate_limits.admit(limited).settle(100)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(limit_reserves, "HOLD_SHARES", 2)
        held = [rate_limits.admit(limited) for _ in range(9)]
        with pytest.raises(GatewayCallFailed, match="Try again in 1 seconds") as refused:
            rate_limits.admit(limited)
        assert refused.value.retry_after == "1"
        for admission in held:
            admission.settle(0)
        rate_limits.admit(limited).settle(1000)
        with pytest.raises(GatewayCallFailed) as refused:
            rate_limits.admit(limited)
    assert float(refused.value.retry_after or 0) > 1


def test_a_limit_that_is_raised_counts_at_once() -> None:
    reserve = Reserve(target())
    reserve.take(CallLimits(requests_per_day=1), DAY)
    with pytest.raises(LimitReached):
        reserve.take(CallLimits(requests_per_day=1), DAY)
    reserve.take(CallLimits(requests_per_day=2), DAY)


def test_limits_of_open_calls_alone_count_no_requests() -> None:
    name = target()
    assert rate_limits.admit([Limited(name, "users", CallLimits(concurrent_calls=1))]).headers == {}
    assert table.get(keys.gateway_usage(name, DAY)) is None
