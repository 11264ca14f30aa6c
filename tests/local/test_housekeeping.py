"""The background tasks."""

import threading
from typing import Any

import pytest

import local.housekeeping
from local.housekeeping import Housekeeping

from .conftest import eventually


def test_a_failed_task_stops_no_other(capsys: Any) -> None:
    def fail() -> int:
        raise ValueError("as asked")

    Housekeeping(lambda: True, print, {"first": fail, "second": lambda: 3}).tidy()
    said = capsys.readouterr().err
    assert "first failed" in said
    assert "second: 3" in said


def test_rounds_and_the_end_of_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local.housekeeping, "WATCH_SECONDS", 0.01)
    monkeypatch.setattr(local.housekeeping, "FIRST_ROUND_SECONDS", 0.0)
    monkeypatch.setattr(local.housekeeping, "ROUND_SECONDS", 0.02)
    alive, died = threading.Event(), threading.Event()
    alive.set()
    rounds: list[int] = []

    def task() -> int:
        rounds.append(1)
        return 0

    house = Housekeeping(alive.is_set, died.set, {"task": task})
    house.start()
    eventually(lambda: len(rounds) > 2)
    assert not died.is_set()
    alive.clear()
    assert died.wait(5)
    house.stop()
