"""Lets threads make their DynamoDB calls in a given order, one call at a time."""

from __future__ import annotations

import itertools
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from types import MappingProxyType
from typing import Any, TypeVar

import pytest

from mlcore import optimistic_retry as settling
from mlcore.db import table as table_module
from mlcore.db.table import Table

T = TypeVar("T")
Act = Callable[[], Any]

WAIT_SECONDS = 30


class Killed(BaseException):
    """The process ended at this call."""


class _Turns:
    def __init__(self, count: int, order: Iterable[int], after: Callable[[], None]) -> None:
        self._order = iter(order)
        self._after = after
        self._alive = set(range(count))
        self._changed = threading.Condition()
        self._next = self._pick()

    def _pick(self) -> int:
        wanted = next(self._order, 0)
        alive = sorted(self._alive)
        return alive[wanted % len(alive)] if alive else -1

    def call(self, number: int, call: Callable[[], T]) -> T:
        with self._changed:
            if not self._changed.wait_for(lambda: self._next == number, WAIT_SECONDS):
                raise TimeoutError("nobody else moved")
            try:
                answer = call()
                self._after()
                return answer
            finally:
                self._next = self._pick()
                self._changed.notify_all()

    def leave(self, number: int) -> None:
        with self._changed:
            self._alive.discard(number)
            if self._next == number:
                self._next = self._pick()
            self._changed.notify_all()


def interleaved(
    order: Iterable[int],
    actors: Sequence[Callable[[], T]],
    *,
    after: Callable[[], None] = lambda: None,
    deaths: Mapping[int, int] = MappingProxyType({}),
    beside: Callable[[int, int], Sequence[int]] = lambda _actor, count: range(count),
) -> list[T]:
    """Runs the actors, a thread for each; ``order`` says whose DynamoDB call comes next.

    Args:
        after: is done after each call, while everybody waits.
        deaths: which actors are killed, before their call of that number.
        beside: in which order an actor makes so many calls that may be made side by side.

    Returns:
        What those gave that were not killed.
    """
    turns = _Turns(len(actors), order, after)
    local = threading.local()
    original = Table._call

    def call(self: Table, operation: str, **parameters: Any) -> dict[str, Any]:
        local.calls += 1
        if deaths.get(local.number) == local.calls:
            raise Killed
        return turns.call(local.number, lambda: original(self, operation, **parameters))

    def parallel(_self: Table, calls: Sequence[Callable[[], Any]]) -> list[Any]:
        # Calls side by side become calls one after another, so each is a turn of its own.
        given = {at: calls[at]() for at in beside(local.number, len(calls))}
        return [given[at] for at in range(len(calls))]

    def act(number: int) -> list[T]:
        local.number, local.calls = number, 0
        try:
            return [actors[number]()]
        except Killed:
            return []
        finally:
            turns.leave(number)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Table, "_call", call)
        patch.setattr(Table, "parallel", parallel)
        patch.setattr(settling._random, "uniform", lambda _least, _most: 0.0)
        patch.setattr(table_module, "back_off", lambda _attempt: None)
        with ThreadPoolExecutor(len(actors)) as pool:
            return [given for gave in pool.map(act, range(len(actors))) for given in gave]


def meetings(prepare: Callable[[], tuple[Act, Act]]) -> Iterator[list[Any]]:
    """Lets the second of two acts happen before each call of the first one, and after all of them;
    what both answered. An error is an answer."""
    original = Table._call
    for before in itertools.count():
        acts = prepare()
        calls: Counter[int] = Counter()
        threads: list[int] = []

        def count(self: Table, operation: str, calls: Any = calls, **parameters: Any) -> Any:
            calls[threading.get_ident()] += 1
            return original(self, operation, **parameters)

        def first(act: Act = acts[0], threads: list[int] = threads) -> Any:
            threads.append(threading.get_ident())
            return answer(act)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Table, "_call", count)
            order = [0] * before + [1] * 1000
            yield interleaved(order, [first, partial(answer, acts[1])])
        if calls[threads[0]] <= before:
            return


def answer(act: Act) -> Any:
    try:
        return act()
    except Exception as error:
        return error
