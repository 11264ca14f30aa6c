"""Limits of the gateway over simulated processes: calls of any size that overlap, fail, are refused
elsewhere or put back, while minutes and days change, clocks differ, and writes fail before or after
they are executed. Nobody is refused for tokens that nobody used, and no limit is exceeded by more
than the calls that cross it."""

from __future__ import annotations

import heapq
import threading
from collections import Counter, deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import count
from random import Random
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local.store.placeholders import Placeholders, bound_condition
from local.store.updates import BoundUpdate
from mlcore.db.expression import Raw, Update
from mlcore.db.failures import ConditionFailed
from mlcore.entities.gateway_limits import CallLimits
from mlcore.errors import TemporarilyUnavailable
from mlcore.gateway.limit_reserves import HOLD_SHARES, REFUSED_MS, Reserve, Ticket
from mlcore.repos.gateway import usage
from mlcore.repos.gateway.usage import DAY_MS, MINUTE_MS, LimitReached, Usage
from tests.contract.conftest import examples

DAY: Final = DAY_MS * 20_000
TARGET: Final = "user:ann"
SEEDS: Final = st.integers(0, 2**32)


class Counters:
    """The table as far as counters need it, in memory: conditional updates of items, some of which
    fail before they are executed, and some after it."""

    def __init__(self) -> None:
        self._items: dict[Any, Raw] = {}
        self._writing = threading.Lock()
        self.writes = 0
        self.failing = 0.0
        """The part of the writes that is not executed."""
        self.losing = 0.0
        """The part of the writes that is executed and whose answer is lost."""
        self.random = Random(0)

    def update(self, key: Any, update: Update, *, returning: bool) -> Raw:
        assert returning
        self.writes += 1
        draw = self.random.random()
        if draw < self.failing:
            raise TemporarilyUnavailable("not executed")
        request = update.parameters()
        given_values = Placeholders(request)
        condition = bound_condition(request, "ConditionExpression", given_values)
        change = BoundUpdate(request["UpdateExpression"], given_values, ("pk", "sk"))
        with self._writing:
            item = self._items.get(key)
            if condition is not None and not condition.holds(item):
                raise ConditionFailed(item)
            self._items[key] = after = change.applied(item or {})[0]
        if draw < self.failing + self.losing:
            raise TemporarilyUnavailable("executed")
        return after

    def used(self, now: int, target: str = TARGET) -> Usage:
        return usage.count(target, CallLimits(), now, usage.UsageClaim()).used


@pytest.fixture
def counters(monkeypatch: pytest.MonkeyPatch) -> Counters:
    made = Counters()
    monkeypatch.setattr(usage, "table", made)
    return made


class Simulation:
    """Processes that call one target. Calls take time, so that they overlap."""

    def __init__(self, random: Random, limits: CallLimits, processes: int) -> None:
        self.random, self.limits = random, limits
        self.counters = Counters()
        self.counters.random = random
        self.reserves = [Reserve(TARGET) for _ in range(processes)]
        self.skews = [random.choice((0, 0, 0, 300, -300)) for _ in range(processes)]
        self.now = DAY + random.randrange(MINUTE_MS)
        self.used = self.minute_used = 0
        self.minute_requests: Counter[int] = Counter()
        self.tokens_by_minute: Counter[int] = Counter()
        self._ends: list[tuple[int, int, int, Ticket, int]] = []
        self._numbers = count()
        self.refusal: LimitReached | None = None
        self.lost = 0
        """Tokens whose write failed: they are counted later, or twice."""
        self._uncounted = (limits.tokens_per_day or 0) // 20_000

    @property
    def open_tokens(self) -> int:
        return sum(entry[4] for entry in self._ends)

    def call(self, tokens: int, duration: int) -> bool:
        process = self.random.randrange(len(self.reserves))
        try:
            ticket, _ = self.reserves[process].take(self.limits, self.now + self.skews[process])
        except LimitReached as reached:
            self.refusal = reached
            self.lost += self._uncounted if self.counters.losing else 0
            return False
        except TemporarilyUnavailable:
            self.lost += self._uncounted
            return False
        self.refusal = None
        end = self.now + duration
        heapq.heappush(self._ends, (end, next(self._numbers), process, ticket, tokens))
        return True

    def wait(self, milliseconds: int) -> None:
        until = self.now + milliseconds
        while self._ends and self._ends[0][0] <= until:
            self.end()
        self.now = max(self.now, until)

    def end(self) -> None:
        end, _, process, ticket, tokens = heapq.heappop(self._ends)
        self.now = max(self.now, end)
        moment = self.now + self.skews[process]
        self.used += tokens
        self.tokens_by_minute[moment // MINUTE_MS] += tokens
        try:
            self.reserves[process].settle(ticket, tokens, moment)
        except TemporarilyUnavailable:
            self.lost += tokens

    def finish(self) -> None:
        while self._ends:
            self.end()


def size(random: Random, kind: str, limit: int) -> int:
    if kind == "constant":
        return limit // 500
    if kind == "varying":
        return random.randrange(limit // 10_000, limit // 17)
    if kind == "failing":
        return 0 if random.random() < 0.3 else random.randrange(limit // 1000, limit // 20)
    return limit // 3 if random.random() < 0.07 else limit // 300


KINDS: Final = st.sampled_from(("constant", "varying", "failing", "mixed"))


@examples(20)
@given(SEEDS, KINDS, st.sampled_from((1, 4, 16)))
def test_a_day_is_refused_only_when_its_tokens_are_used(
    seed: int, kind: str, processes: int
) -> None:
    """Calls one after another, over several minutes."""
    random = Random(seed)
    limit = random.choice((50_000, 500_000))
    simulation = Simulation(random, CallLimits(tokens_per_day=limit), processes)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(usage, "table", simulation.counters)
        largest = 0
        while True:
            tokens = size(random, kind, limit)
            if not simulation.call(tokens, 0):
                break
            largest = max(largest, tokens)
            simulation.finish()
            simulation.now += random.choice((10, 500, 9000)) if simulation.now < DAY * 2 else 10
            if simulation.now // DAY_MS != DAY // DAY_MS:
                return  # the day was not used up
    assert simulation.used >= 0.98 * limit
    assert simulation.used <= 1.02 * limit + largest


@examples(20)
@given(SEEDS, KINDS, st.sampled_from((1, 4, 16)), st.sampled_from(("minute", "day")))
def test_open_calls_hold_no_more_than_their_share(
    seed: int, kind: str, processes: int, unit: str
) -> None:
    """Calls that overlap, in one minute: who is refused is refused for what is used and held. When
    no call is open, only for what is used; and what exceeds the limit is of calls that were open
    when it was crossed."""
    random = Random(seed)
    limit = 100_000
    limits = CallLimits(**{f"tokens_per_{unit}": limit})
    simulation = Simulation(random, limits, processes)
    simulation.now = DAY + 5_000
    simulation.skews = [0] * processes
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(usage, "table", simulation.counters)
        crossing = 0
        lately: deque[tuple[int, int]] = deque()
        while simulation.now < DAY + 50_000:
            tokens = size(random, kind, limit)
            lately.append((simulation.now, len(simulation._ends) + 1))
            while lately[0][0] < simulation.now - REFUSED_MS:
                lately.popleft()
            if simulation.call(tokens, random.choice((50, 500, 3000))):
                assert simulation.used <= 1.02 * limit
                crossing = simulation.open_tokens
            elif simulation.refusal:
                # A process remembers a refusal for a moment, in which calls may have ended.
                held = max(number for _, number in lately) * (limit // HOLD_SHARES)
                assert simulation.used + held >= 0.98 * limit
            simulation.wait(random.choice((0, 5, 40)))
        simulation.finish()
        assert simulation.used <= 1.02 * limit + crossing
        simulation.now += 2000  # the memory of a refusal ends
        if simulation.used < 0.98 * limit:
            assert all(
                reserve.take(limits, simulation.now + number * 2000)
                for number, reserve in enumerate(simulation.reserves[:1])
            )
        counted = simulation.counters.used(simulation.now)
    assert counted.held_tokens <= limit // HOLD_SHARES
    tolerated = processes * (limit // (1600 if unit == "minute" else 20_000))
    assert abs(counted.day_tokens - counted.held_tokens - simulation.used) <= tolerated


@examples(20)
@given(SEEDS, KINDS, st.sampled_from((1, 4, 16)))
def test_the_sums_are_right_whatever_happens(seed: int, kind: str, processes: int) -> None:
    """Overlapping calls over minutes and midnight, with processes that die, clocks that differ, and
    writes that fail: once the minute is over, the day has counted what was used, but for what an
    unclear failure may have counted twice."""
    random = Random(seed)
    limit = 2_000_000
    limits = CallLimits(tokens_per_minute=random.choice((None, limit // 10)), tokens_per_day=limit)
    simulation = Simulation(random, limits, processes)
    simulation.now = DAY - random.choice((0, 90_000))
    fails, loses = random.choice(((0, 0), (0.05, 0), (0.02, 0.03)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(usage, "table", simulation.counters)
        simulation.counters.failing, simulation.counters.losing = fails, loses
        for _ in range(300):
            simulation.call(size(random, kind, limit // 20), random.choice((50, 3000, 70_000)))
            simulation.wait(random.choice((0, 40, 2000)))
        simulation.finish()
        simulation.counters.failing = simulation.counters.losing = 0
        used = sum(
            tokens
            for minute, tokens in simulation.tokens_by_minute.items()
            if minute * MINUTE_MS // DAY_MS == simulation.now // DAY_MS
        )
        counted = simulation.counters.used(simulation.now + MINUTE_MS)
    assert counted.held_tokens == 0
    # What is written later may be written after midnight.
    unwritten = simulation.lost + processes * (limit // 20_000)
    assert abs(counted.day_tokens - used) <= unwritten
    assert counted.day_tokens >= 0


def test_a_failed_call_after_a_large_one_withholds_nothing(counters: Counters) -> None:
    """One process; 30,000 of 50,000 tokens are used."""
    reserve, limits = Reserve(TARGET), CallLimits(tokens_per_day=50_000)
    for tokens in (30_000, 0, 0, 0):
        ticket, _ = reserve.take(limits, DAY)
        reserve.settle(ticket, tokens, DAY)
    assert counters.used(DAY).day_tokens == 30_000
    assert reserve.take(limits, DAY + 2000)


def test_an_outage_of_a_provider_withholds_nothing(counters: Counters) -> None:
    limits = CallLimits(tokens_per_day=500_000)
    reserves = [Reserve(TARGET) for _ in range(16)]
    for round_ in range(20):
        for reserve in reserves:
            ticket, _ = reserve.take(limits, DAY + round_ * 1000)
            reserve.settle(ticket, 20_000 if round_ == 0 else 0, DAY + round_ * 1000)
    used = counters.used(DAY + 20_000)
    assert (used.day_tokens, used.held_tokens) == (320_000, 0)


def test_a_process_that_dies_withholds_its_tokens_for_a_minute(counters: Counters) -> None:
    limits = CallLimits(tokens_per_day=100_000)
    reserves = [Reserve(TARGET) for _ in range(50)]
    for reserve in reserves:
        reserve.settle(reserve.take(limits, DAY)[0], 100, DAY)
    dead = []
    for reserve in reserves:
        reserve._expected = 2000.0
        with suppress(LimitReached):
            dead.append(reserve.take(limits, DAY))
    with pytest.raises(LimitReached):
        Reserve(TARGET).take(limits, DAY + 1000)
    _, used = Reserve(TARGET).take(limits, DAY + MINUTE_MS)
    assert used.day_tokens == 5000


def test_a_call_over_midnight_changes_no_sum_of_the_new_day(counters: Counters) -> None:
    reserve, limits = Reserve(TARGET), CallLimits(tokens_per_day=100_000)
    before = DAY + DAY_MS - 1000
    reserve.settle(reserve.take(limits, before)[0], 2000, before)
    ticket, _ = reserve.take(limits, before)
    reserve.settle(ticket, 0, before + 2000)
    assert counters.used(before + 2000) == Usage(0, 0, 0, 0)
    ticket, _ = reserve.take(limits, before + 3000)
    reserve.put_back(ticket, before + 3000)
    assert counters.used(before + 3000).day_tokens == 0
    busy, limits = Reserve("user:bob"), CallLimits(requests_per_day=200_000)
    for _ in range(4):  # in blocks of 1, 2 and 4
        busy.take(limits, before)
    busy.take(limits, before + 2000)
    busy.take(limits, before + 2001)
    assert counters.used(before + 3000, "user:bob").day_requests == 3


def test_threads_hold_their_own_tokens(counters: Counters) -> None:
    """Sixteen threads of one process."""
    reserve, limits = Reserve(TARGET), CallLimits(tokens_per_day=100_000)
    reserve.settle(reserve.take(limits, DAY)[0], 2000, DAY)
    together = threading.Barrier(16)
    made: list[int] = []

    def calls(_: int) -> None:
        for moment in range(10):
            together.wait()
            ticket: Ticket | None = None
            with suppress(LimitReached):
                ticket = reserve.take(limits, DAY + moment * 2000)[0]
            together.wait()
            if ticket is not None:
                reserve.settle(ticket, 2000, DAY + moment * 2000)
                made.append(2000)

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(calls, range(16)))
    assert 2000 + sum(made) == 100_000


@examples(20)
@given(SEEDS, st.integers(16, 200), st.sampled_from((1, 4, 16)))
def test_requests_that_are_put_back_are_made_later(seed: int, limit: int, processes: int) -> None:
    """Exactly as many requests of a day pass as a small limit says, however many are put back, in
    whatever minute."""
    random = Random(seed)
    counters = Counters()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(usage, "table", counters)
        reserves = [Reserve(TARGET) for _ in range(processes)]
        limits, now, made = CallLimits(requests_per_day=limit), DAY, 0
        waiting: list[tuple[Reserve, Ticket]] = []
        while now < DAY + DAY_MS // 2:
            now += random.choice((0, 100, 1500, 50_000))
            for reserve, ticket in waiting:
                reserve.put_back(ticket, now)
            waiting = []
            reserve = random.choice(reserves)
            try:
                ticket, _ = reserve.take(limits, now)
            except LimitReached:
                break
            if random.random() < 0.5:
                waiting.append((reserve, ticket))
            else:
                made += 1
                assert made <= limit
    assert made == limit


def test_what_is_returned_is_sent_once(counters: Counters) -> None:
    """The answer of the write is lost: it may have been executed."""
    reserve, limits = Reserve(TARGET), CallLimits(tokens_per_minute=100_000)
    reserve.settle(reserve.take(limits, DAY)[0], 2000, DAY)
    ticket, _ = reserve.take(limits, DAY)
    counters.losing = 1.0
    with pytest.raises(TemporarilyUnavailable):
        reserve.settle(ticket, 0, DAY)
    counters.losing = 0.0
    ticket, _ = reserve.take(limits, DAY)
    reserve.settle(ticket, 0, DAY)
    assert counters.used(DAY)[1::2] == (2000, 2000)
    assert counters.used(DAY).held_tokens == 0


def test_a_limit_that_is_lowered_holds_at_once(counters: Counters) -> None:
    reserve = Reserve(TARGET)
    for moment in range(40):
        reserve.take(CallLimits(requests_per_minute=100_000), DAY + moment)
    with pytest.raises(LimitReached):
        reserve.take(CallLimits(requests_per_minute=40), DAY + 50)
    assert counters.used(DAY).minute_requests == 40


def test_a_request_that_is_not_valid_holds_nothing(counters: Counters) -> None:
    """Nobody ends its ticket."""
    reserve, limits = Reserve(TARGET), CallLimits(tokens_per_minute=100_000)
    reserve.settle(reserve.take(limits, DAY)[0], 5000, DAY)
    for moment in range(200):
        reserve.take(limits, DAY + moment)
    assert counters.used(DAY).held_tokens == 2000
