"""Kills lander and publisher at a chosen request or commit."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from lander import app as lander
from mlcore.system_tables import landing_objects, storage


class Killed(BaseException):
    """The process is no more."""


@pytest.fixture
def kill(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Set ``[n]`` and the n-th request to the store, or the n-th commit, is the last."""
    left: list[int] = []

    def count() -> None:
        if left:
            left[0] -= 1
            if left[0] == 0:
                left.clear()
                raise Killed

    class Dying:
        def __init__(self, store: Any) -> None:
            self._store = store

        def __getattr__(self, name: str) -> Any:
            def call(*args: Any) -> Any:
                count()
                result = getattr(self._store, name)(*args)
                count()
                return result

            return call

    whole = storage.store()
    monkeypatch.setattr(landing_objects, "store", lambda: Dying(whole))
    change = pytest.importorskip("mltables.table_commit").TableCommit

    def dying(act: Any) -> Any:
        def call(*args: Any) -> Any:
            count()
            result = act(*args)
            count()
            return result

        return call

    for name in ("add", "commit"):
        monkeypatch.setattr(change, name, dying(getattr(change, name)))
    return left


class Accidents:
    """Kills what runs at a random write, in half of the cases."""

    def __init__(self, rng: random.Random, kill: list[int]) -> None:
        self._rng, self._kill = rng, kill

    def during(self, act: Callable[[], object]) -> None:
        if self._rng.random() < 0.5:
            self._kill[:] = [self._rng.randrange(1, 14)]
        try:
            act()
        except Killed:
            pass
        finally:
            self._kill.clear()

    def land(self, batch: list[Any]) -> None:
        """Again after each death, as Lambda does, in other pieces."""
        while batch:
            some = batch[: self._rng.choice((1, 4, 30))]
            try:
                lander.handler({"Records": some}, None)
            except Killed:
                continue
            batch = batch[len(some) :]


def follow_with_accidents(
    stream: Any, rng: random.Random, kill: list[int], step: Callable[[], None], operations: int
) -> None:
    """Does ``operations`` steps. Lands their records late, in any order and some twice, and
    publishes; lander and publisher are killed at random. At the end everything is published."""
    from mltables import publisher, table_maintenance  # noqa: PLC0415 -- not without the engines

    waiting: list[Any] = []
    done: list[Any] = []
    accidents = Accidents(rng, kill)
    for number in range(operations):
        step()
        if rng.random() < 0.15:
            waiting += stream.fresh()
        if rng.random() < 0.1 and waiting:
            rng.shuffle(waiting)
            due, waiting = waiting[: len(waiting) // 2 + 1], waiting[len(waiting) // 2 + 1 :]
            again = rng.sample(done, min(3, len(done)))
            accidents.during(partial(accidents.land, again + due))
            done += due
        if rng.random() < 0.06:
            accidents.during(publisher.publish)
        if number % 60 == 59:
            table_maintenance.maintain_tables()
    waiting += stream.fresh()
    accidents.land(waiting)
    publish_twice_at_once(publisher)
    publisher.publish()


def publish_twice_at_once(publisher: Any) -> None:
    """Two publishers, until both have ended."""
    two = [threading.Thread(target=publisher.publish) for _ in range(2)]
    for thread in two:
        thread.start()
    for thread in two:
        thread.join()
