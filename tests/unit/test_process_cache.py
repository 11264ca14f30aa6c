"""The one bound of what a process remembers, whatever is put into it."""

from __future__ import annotations

import itertools
import tracemalloc
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlcore import process_cache
from mlcore.process_cache import ProcessCache

FIRST: ProcessCache[int, int] = ProcessCache("first of the tests", weigh=lambda weight: weight)
SECOND: ProcessCache[int, int] = ProcessCache("second of the tests", weigh=lambda weight: weight)


@pytest.fixture(autouse=True)
def nothing_remembered() -> Iterator[None]:
    process_cache.clear()
    yield
    process_cache.clear()


@given(
    st.lists(
        st.tuples(
            st.sampled_from([FIRST, SECOND]),
            st.integers(0, 5),
            st.none() | st.integers(0, process_cache.MAX_BYTES + 1),
        ),
        max_size=40,
    )
)
def test_what_is_remembered_is_the_latest_that_fits(
    writes: list[tuple[ProcessCache[int, int], int, int | None]],
) -> None:
    """Against a list of what was put, the latest last; None takes away."""
    process_cache.clear()
    expected: list[tuple[ProcessCache[int, int], int, int]] = []
    for where, key, weight in writes:
        expected = [entry for entry in expected if entry[:2] != (where, key)]
        if weight is None:
            where.pop(key)
        else:
            where.put(key, weight)
            if weight + process_cache.ENTRY_BYTES <= process_cache.MAX_BYTES:
                expected.append((where, key, weight))
        while (
            sum(entry[2] + process_cache.ENTRY_BYTES for entry in expected)
            > process_cache.MAX_BYTES
        ):
            expected.pop(0)
        for each, number in itertools.product((FIRST, SECOND), range(6)):
            weights = [entry[2] for entry in expected if entry[:2] == (each, number)]
            assert each.get(number) == (weights[0] if weights else None)


def test_of_those_who_take_one_gets_it() -> None:
    for number in range(200):
        FIRST.put(number, 1)
    with ThreadPoolExecutor(8) as threads:
        taken = list(threads.map(FIRST.pop, [n for n in range(200) for _ in range(8)]))
    assert sum(value is not None for value in taken) == 200


class Clocks:
    """Both clocks. One of them may stand still, as the monotonic clock of a frozen process does."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = {"monotonic": 100.0, "time": 1_000.0}
        clocks = {clock: partial(self.now.__getitem__, clock) for clock in self.now}
        monkeypatch.setattr(process_cache, "time", SimpleNamespace(**clocks))

    def advance(self, seconds: float, *clocks: str) -> None:
        for clock in clocks or self.now:
            self.now[clock] += seconds


@pytest.mark.parametrize("running", [("monotonic",), ("time",), ("monotonic", "time")])
def test_it_is_forgotten_in_time(monkeypatch: pytest.MonkeyPatch, running: tuple[str, ...]) -> None:
    clocks = Clocks(monkeypatch)
    brief: ProcessCache[str, str] = ProcessCache("brief of the tests", seconds=5.0)
    brief.put("key", "value")
    clocks.advance(4.9, *running)
    assert brief.get("key") == "value"
    clocks.advance(0.2, *running)
    assert brief.get("key") is None
    assert brief.pop("key") is None


def test_it_is_forgotten_if_the_clock_is_set_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a process that is frozen afterwards would not notice that time passes."""
    clocks = Clocks(monkeypatch)
    brief: ProcessCache[str, str] = ProcessCache("set back of the tests", seconds=5.0)
    brief.put("key", "value")
    FIRST.put(0, 0)
    clocks.advance(-1.0, "time")
    assert brief.get("key") is None
    assert FIRST.get(0) == 0


def test_an_entry_takes_no_more_than_is_counted() -> None:
    texts: ProcessCache[str, str] = ProcessCache("texts of the tests", weigh=len)
    texts.put("warm", "")
    tracemalloc.start()
    try:
        before, counted = tracemalloc.get_traced_memory()[0], process_cache._total_bytes[0]
        for number in range(2_000):
            texts.put(f"{number:032x}", f"{number:01000x}")
        taken = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert 0.5 * taken < process_cache._total_bytes[0] - counted
    assert taken <= process_cache._total_bytes[0] - counted


def test_what_has_ended_takes_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """However much else is remembered for ever."""
    clocks = Clocks(monkeypatch)
    brief: ProcessCache[str, str] = ProcessCache("ending of the tests", seconds=5.0)
    FIRST.put(0, 0)
    for number in range(1_000):
        brief.put(str(number), "value")
        clocks.advance(0.1)
    assert process_cache._total_bytes[0] <= 60 * process_cache.ENTRY_BYTES
    assert FIRST.get(0) == 0


def test_the_latest_is_one_value_outside_the_bound() -> None:
    latest: process_cache.SingleEntryCache[str, str] = process_cache.SingleEntryCache(
        "latest of the tests"
    )
    assert latest.get("a") is None
    assert latest.put("a", "x") is None
    assert latest.get("a") == "x"
    assert latest.put("b", "y") == ("a", "x")
    assert (latest.get("a"), latest.get("b")) == (None, "y")
    process_cache.clear()
    assert latest.get("b") is None
