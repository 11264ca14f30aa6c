"""Requests that wait for their turn while the index is behind."""

import asyncio
import time
from collections.abc import Callable

import pytest

from local.http import turns
from local.http.turns import FEW, Turns


async def served(behind: Callable[[], bool], count: int) -> tuple[list[int], int]:
    """The order in which requests were begun, and how many were served at a time at most."""
    gate = Turns(behind)
    begun: list[int] = []
    now = most = 0

    async def request(number: int) -> None:
        nonlocal now, most
        async with gate.taken():
            begun.append(number)
            now += 1
            most = max(most, now)
            await asyncio.sleep(0)
            now -= 1

    await asyncio.gather(*map(request, range(count)))
    return begun, most


def test_a_few_at_a_time_in_their_order_while_the_index_is_behind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(turns, "PATIENCE_SECONDS", 60.0)
    assert asyncio.run(served(lambda: True, 50)) == (list(range(50)), FEW)
    assert asyncio.run(served(lambda: False, 50)) == (list(range(50)), 50)


def test_a_turn_is_given_back_by_a_request_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "PATIENCE_SECONDS", 60.0)

    async def fail(gate: Turns) -> None:
        async with gate.taken():
            await asyncio.sleep(0)
            raise ValueError

    async def all_of_them() -> list[object]:
        gate = Turns(lambda: True)
        return await asyncio.gather(*(fail(gate) for _ in range(20)), return_exceptions=True)

    assert [type(one) for one in asyncio.run(all_of_them())] == [ValueError] * 20


def test_nobody_waits_long_for_those_who_wait_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "PATIENCE_SECONDS", 0.01)

    async def last() -> float:
        gate, over = Turns(lambda: True), asyncio.Event()

        async def slow() -> None:
            async with gate.taken():
                await over.wait()

        waiting = [asyncio.create_task(slow()) for _ in range(FEW)]
        await asyncio.sleep(0)
        began = time.monotonic()
        async with gate.taken():
            taken = time.monotonic() - began
            assert not any(one.done() for one in waiting)
            over.set()
        await asyncio.gather(*waiting)
        # Whoever gave up waiting takes no turn of somebody else.
        async with gate.taken():
            return taken

    assert asyncio.run(last()) >= 0.01
