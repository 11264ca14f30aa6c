"""When the local runner publishes the system tables; the publisher is one that only counts."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from local.events import table_publisher

COUNTING = """
import sys, time
with open(sys.argv[1], "a") as file:
    file.write("x")
time.sleep(float(sys.argv[2]))
print('{"processor_seconds": %s}')
"""


class NoRecords:
    """The file of a table whose stream is empty."""

    def last_record(self) -> int:
        return 0


class Counted:
    """A publisher in a folder where something has landed and always will have."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.calls = folder, folder / "calls"
        self.takes = 0.3
        waiting = folder / "files/landing/shard"
        waiting.mkdir(parents=True)
        (waiting / "object").touch()
        self.publishing = table_publisher.TablePublisher(
            folder,
            [],
            NoRecords(),  # type: ignore[arg-type]
            every_seconds=0.2,
        )

    @property
    def count(self) -> int:
        return len(self.calls.read_text()) if self.calls.exists() else 0


@pytest.fixture
def counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[float], Counted]:
    whole = subprocess.Popen

    def make(processor_seconds: float) -> Counted:
        counted = Counted(tmp_path)
        script = COUNTING % processor_seconds

        def popen(_command: Any, **options: Any) -> Any:
            arguments = [str(counted.calls), str(counted.takes)]
            return whole([sys.executable, "-c", script, *arguments], **options)

        monkeypatch.setattr("local.events.table_publisher.subprocess.Popen", popen)
        return counted

    return make


def test_who_waits_for_fresh_tables_at_the_same_time_shares_a_publication(
    counted: Callable[[float], Counted],
) -> None:
    publisher = counted(0.1)
    waiting = [threading.Thread(target=publisher.publishing.refresh) for _ in range(8)]
    for thread in waiting:
        thread.start()
    for thread in waiting:
        thread.join()
    assert 1 <= publisher.count <= 2, (
        "one that may have begun too early for some, and one for these"
    )
    before = publisher.count
    publisher.publishing.refresh()
    assert publisher.count == before + 1, "what is written later is not in an earlier publication"


def test_who_waits_does_not_wait_for_a_publication_that_nobody_waits_for(
    counted: Callable[[float], Counted], monkeypatch: pytest.MonkeyPatch
) -> None:
    reported: list[str] = []
    monkeypatch.setattr(table_publisher, "report", lambda *texts: reported.append(str(texts)))
    publisher = counted(0.1)
    publisher.takes = 100.0
    unhurried = threading.Thread(target=publisher.publishing._publish)
    unhurried.start()
    while not publisher.count:
        time.sleep(0.01)
    publisher.takes = 0.1
    publisher.publishing.refresh()
    unhurried.join(10)
    assert not unhurried.is_alive()
    assert publisher.count == 2
    assert reported == []


def test_who_waits_too_long_finds_the_publication_further_later(
    counted: Callable[[float], Counted],
) -> None:
    """Requests end after half a minute, publications of many traces later; a request that comes
    again does not end the one that was begun for it."""
    publisher = counted(0.1)
    publisher.takes = 1.5
    begun = time.monotonic()
    assert [publisher.publishing.refresh(time.monotonic() + 0.3) for _ in range(3)] == [False] * 3
    assert time.monotonic() - begun < 1.4
    publisher.takes = 0.1
    assert publisher.publishing.refresh(time.monotonic() + 60)
    assert publisher.count <= 3, "the first, and one that begun after each request"


@pytest.mark.parametrize(("processor_seconds", "rest"), [(0.001, 0.2), (0.004, 0.4), (5.0, 0.6)])
def test_publications_rest_by_what_they_cost(
    counted: Callable[[float], Counted],
    monkeypatch: pytest.MonkeyPatch,
    processor_seconds: float,
    rest: float,
) -> None:
    monkeypatch.setattr(table_publisher, "LONGEST_SECONDS", 0.6)
    publisher = counted(processor_seconds)
    rests: list[float] = []
    stop = publisher.publishing._stop

    class Stop:
        def wait(self, seconds: float) -> bool:
            rests.append(seconds)
            return len(rests) > 2

        def is_set(self) -> bool:
            return stop.is_set()

    monkeypatch.setattr(publisher.publishing, "_stop", Stop())
    publisher.publishing._run()
    assert rests == pytest.approx([0.2, rest, rest])
    assert publisher.count == 2
