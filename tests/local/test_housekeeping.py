"""The background tasks."""

import threading
from typing import Any

import pytest

import local.housekeeping
from local.housekeeping import Housekeeping


def test_a_failed_task_stops_no_other(capsys: Any) -> None:
    def fail() -> int:
        raise ValueError("as asked")

    Housekeeping({"first": fail, "second": lambda: 3}).tidy()
    printed = capsys.readouterr().err
    assert "first failed" in printed
    assert "second: 3" in printed


def test_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local.housekeeping, "FIRST_ROUND_SECONDS", 0.0)
    monkeypatch.setattr(local.housekeeping, "ROUND_SECONDS", 0.02)
    rounds = threading.Semaphore(0)

    def task() -> int:
        rounds.release()
        return 0

    house = Housekeeping({"task": task})
    house.start()
    assert all(rounds.acquire(timeout=60) for _ in range(3))
    house.stop()
