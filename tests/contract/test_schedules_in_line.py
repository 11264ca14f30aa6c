"""Schedules of issue detection that cannot be started keep no other one from running, and neither
does automatic scoring."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

import judge_runner.app
from judge_runner import online_scoring
from judge_runner.issue_detection import scheduled_runs
from mlcore.db import capacity
from mlcore.entities.evaluation.detection_schedule import ConfirmedSchedule
from mlcore.entities.evaluation.online_scorers import OnlineScorer
from mlcore.entities.experiments import Experiment
from mlcore.repos.evaluation import detection_schedules, jobs, online_scorers
from tests.contract.conftest import Store
from tests.contract.detection_schedule_world import (
    DAILY,
    HOUR,
    NOON,
    Scheduled,
    sweep,
    traces_at,
)
from tests.contract.threads import at_once

INTERVAL = 300_000


@pytest.fixture
def world(store: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Scheduled:
    return Scheduled(store.api, monkeypatch, tmp_path)


class Killed(BaseException):
    """The end of a process, which no handler sees."""


class Clock:
    """What Lambda passes beside an event; a test spends its time."""

    def __init__(self) -> None:
        self.left = 600_000.0

    def get_remaining_time_in_millis(self) -> float:
        return self.left


def _raise(_clock: Clock) -> None:
    raise RuntimeError("broken")


def _kill(_clock: Clock) -> None:
    raise Killed


def _spend(clock: Clock) -> None:
    clock.left = 0


@pytest.mark.parametrize("most", [1, 2, 500])
@pytest.mark.parametrize(
    "failures",
    [[_raise] * 5, [_kill] * 5, [_spend] * 5, [_kill, _raise, _spend, _raise, _kill, _spend]],
    ids=["raise", "kill", "spend", "all"],
)
def test_broken_schedules_leave_the_others_their_turn(
    world: Scheduled,
    monkeypatch: pytest.MonkeyPatch,
    failures: Sequence[Callable[[Clock], None]],
    most: int,
) -> None:
    """More than a sweep takes, all due before the healthy one, which runs each day for a week."""
    monkeypatch.setattr(scheduled_runs, "MAX_SCHEDULES", most)
    due = world.save(cadence="hourly", fireTime="00:30")
    broken = {str(9_000 + number): fail for number, fail in enumerate(failures)}
    for experiment_id in broken:
        detection_schedules.put(
            ConfirmedSchedule(
                "default", experiment_id, json.dumps(DAILY), None, None, NOON - HOUR, due - 60_000
            )
        )
    clock, original = Clock(), scheduled_runs._start

    def start(confirmed: ConfirmedSchedule, now: int) -> None:
        if confirmed.experiment_id in broken:
            broken[confirmed.experiment_id](clock)
        else:
            original(confirmed, now)

    monkeypatch.setattr(scheduled_runs, "_start", start)
    world.now = due
    ends = []
    for _ in range(5 * HOUR // INTERVAL):
        clock.left = 600_000
        try:
            judge_runner.app.handler({"source": "schedule"}, clock)
        except Killed:
            pass
        finally:
            world.now += INTERVAL
        ends = [run["tags"]["mlflow.issueDetection.windowEnd"] for run in world.runs()]
    assert len(ends) >= 4, "each hour but the first, in which it waits for the broken ones"
    stored = world.stored()
    assert stored is not None
    assert stored.fire_time > world.now - HOUR


def test_a_late_schedule_costs_one_write_more(world: Scheduled) -> None:
    """One that is on time costs none, however it ends."""
    due = world.save()
    costs = []
    for world.now in (due + INTERVAL - 1, due + 24 * HOUR + INTERVAL):
        with capacity.measure() as cost:
            scheduled_runs.sweep(lambda: 600_000)
        costs.append(cost.round_trips)
    assert len(world.runs()) == 2
    assert costs[1] == costs[0] + 1


def test_late_schedules_are_started_once(world: Scheduled) -> None:
    """By sweeps at once, of which one moves the schedule; the occurrence stays the one missed."""
    due = world.save()
    traces_at(world, due - 10, due)
    world.now = due + HOUR
    at_once(6, lambda _: sweep())
    assert [run["tags"]["mlflow.issueDetection.windowEnd"] for run in world.runs()] == [str(due)]
    assert len(list(jobs.of_workspace("default"))) == 1
    stored = world.stored()
    assert stored is not None
    assert (stored.last_fire_time, stored.fire_time) == (due, due + 24 * HOUR)


def test_a_late_schedule_that_its_owner_saves_meanwhile(
    world: Scheduled, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is another one, which the next sweep starts."""
    due = world.save()
    world.now = due + HOUR
    read = detection_schedules.due

    def then_saved(now: int, most: int) -> list[ConfirmedSchedule]:
        found = read(now, most)
        assert world.confirm().status == 200
        return found

    with monkeypatch.context() as patch:
        patch.setattr(detection_schedules, "due", then_saved)
        sweep()
    assert world.runs() == []
    sweep()
    assert len(world.runs()) == 1


def test_automatic_scoring_takes_half_of_the_time(
    world: Scheduled, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It needs more than there is in each sweep, and yet every experiment has its turn."""
    random.seed(7)
    experiments = {world.api.new_experiment(f"scored {number}") for number in range(8)}
    for number, experiment_id in enumerate(experiments):
        online_scorers.save(
            OnlineScorer(
                config_id=f"c{number}",
                workspace="default",
                experiment_id=experiment_id,
                name="s",
                scorer_id=f"s{number}",
                sample_rate=1.0,
                filter_string=None,
                since=0,
            ),
            None,
        )
    clock = Clock()
    scored: list[str] = []

    def submit(experiment: Experiment, _configs: Any) -> None:
        scored.append(experiment.experiment_id)
        clock.left -= 100_000

    monkeypatch.setattr(online_scoring, "submit_jobs", submit)
    world.now = world.save()
    judge_runner.app.handler({"source": "schedule"}, clock)
    assert len(world.runs()) == 1
    assert len(scored) == 3
    for _ in range(30):
        clock.left = 600_000
        judge_runner.app.handler({"source": "schedule"}, clock)
    assert set(scored) == experiments
