"""Requests that wait for their turn while the index is behind."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from local.http import request_throttle
from local.http.request_throttle import REQUESTS_WHILE_LAGGING, RequestThrottle
from tests.local.conftest import PATIENT_SECONDS, eventually

CALLERS = 50


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody gives up, and no slot is taken from a slow request."""
    monkeypatch.setattr(request_throttle, "LONGEST_WAIT_SECONDS", PATIENT_SECONDS)
    monkeypatch.setattr(request_throttle, "LONGEST_HOLD_SECONDS", PATIENT_SECONDS)


def most_at_a_time(is_behind: Callable[[], bool]) -> int:
    """How many of many requests were served at a time at most; each waits until the others have
    come, or until no more can."""
    throttle = RequestThrottle(is_behind)
    lock = threading.Lock()
    entered = threading.Semaphore(0)
    now = most = 0
    over = threading.Event()

    def request() -> None:
        nonlocal now, most
        slot = throttle.enter()
        with lock:
            now += 1
            most = max(most, now)
        entered.release()
        over.wait(PATIENT_SECONDS)
        with lock:
            now -= 1
        throttle.leave(slot)

    with ThreadPoolExecutor(CALLERS) as pool:
        calls = [pool.submit(request) for _ in range(CALLERS)]
        for _ in range(REQUESTS_WHILE_LAGGING if is_behind() else CALLERS):
            assert entered.acquire(timeout=PATIENT_SECONDS)
        over.set()
        for call in calls:
            call.result(PATIENT_SECONDS)
    assert now == 0
    return most


def test_a_few_at_a_time_while_the_index_is_behind() -> None:
    assert most_at_a_time(lambda: True) == REQUESTS_WHILE_LAGGING
    assert most_at_a_time(lambda: False) == CALLERS


def test_a_slot_goes_to_the_request_that_has_waited_longest() -> None:
    throttle = RequestThrottle(lambda: True)
    held = [throttle.enter() for _ in range(REQUESTS_WHILE_LAGGING)]
    begun: list[int] = []

    def request(number: int) -> None:
        slot = throttle.enter()
        begun.append(number)
        throttle.leave(slot)

    waiting = []
    for number in range(10):
        waiting.append(threading.Thread(target=request, args=(number,)))
        waiting[-1].start()
        eventually(lambda: len(throttle._waiting) == len(waiting))
    throttle.leave(held.pop())
    for thread in waiting:
        thread.join(PATIENT_SECONDS)
    assert begun == list(range(10))


def test_nobody_waits_for_slow_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    throttle = RequestThrottle(lambda: True)
    slow = [throttle.enter() for _ in range(REQUESTS_WHILE_LAGGING)]
    # Whoever has held a slot for long waits for something else than the store.
    monkeypatch.setattr(request_throttle, "LONGEST_HOLD_SECONDS", 0.0)
    quick = throttle.enter()
    assert not throttle._waiting
    throttle.leave(quick)
    for slot in slow:
        throttle.leave(slot)


def test_whoever_gives_up_waiting_takes_no_turn_of_somebody_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    throttle = RequestThrottle(lambda: True)
    held = [throttle.enter() for _ in range(REQUESTS_WHILE_LAGGING)]
    monkeypatch.setattr(request_throttle, "LONGEST_WAIT_SECONDS", 0.01)
    impatient = throttle.enter()
    assert not throttle._waiting
    for slot in (*held, impatient):
        throttle.leave(slot)
    assert not throttle._held
