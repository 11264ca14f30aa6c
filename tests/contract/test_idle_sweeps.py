"""What the judge runner's sweeps read while nothing is due, counted on the real engine."""

from __future__ import annotations

import json

import pytest

import judge_runner.app
from bench.bill import idle
from mlcore import ids
from mlcore.db import capacity
from mlcore.entities.evaluation.detection_schedule import SCHEDULE_TAG, ConfirmedSchedule
from mlcore.prices import aws as prices
from mlcore.repos.evaluation import detection_schedules
from tests.contract.conftest import Store
from tests.contract.judges_world import Context

MOST = 0.003
"""Dollars a month for what the sweeps of an idle deployment read."""
DAY_MS = 86_400_000
INTERVAL_MS = 300_000
"""As the template's schedule says."""
SWEEPS = DAY_MS // INTERVAL_MS
MONDAY = 1_767_603_600_000  # 2026-01-05T09:00Z, when the schedules fire
WEEKLY = json.dumps(
    {"version": 1, "cadence": "weekly", "fireTime": "09:00", "model": {"endpointName": "e"}}
)


def day(monkeypatch: pytest.MonkeyPatch) -> tuple[int, float, float]:
    """The requests, read units and write units of a day's sweeps."""
    with capacity.measure() as cost:
        for number in range(SWEEPS):
            now = MONDAY + DAY_MS + number * INTERVAL_MS
            monkeypatch.setattr(ids, "now_ms", lambda now=now: now)
            judge_runner.app.handler({"source": "schedule"}, Context())
    return cost.requests, cost.read_units, cost.write_units


def test_a_day_with_schedules_that_are_not_due(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Forty schedules of issue detection: what the day's sweeps read costs as little as without
    schedules, and no more than the bill of an idle deployment reckons."""
    without = day(monkeypatch)
    for number in range(40):
        experiment_id = store.api.new_experiment(f"scheduled {number}")
        tag = {"key": SCHEDULE_TAG, "value": WEEKLY}
        store.api.post("experiments/set-experiment-tag", experiment_id=experiment_id, **tag)
        fire_time = MONDAY + 7 * DAY_MS
        detection_schedules.put(
            ConfirmedSchedule("default", experiment_id, WEEKLY, None, None, MONDAY, fire_time)
        )
    requests, read_units, write_units = day(monkeypatch)
    assert (requests, read_units, write_units) == without
    assert requests >= SWEEPS
    assert write_units == 0
    assert 0 < read_units <= idle.SCHEDULED_READ_UNITS * SWEEPS
    assert prices.HOURS / 24 * read_units * prices.READ_UNIT < MOST
    # The sweeps did look where the schedules are.
    assert len(detection_schedules.due(MONDAY + 7 * DAY_MS, 500)) == 40
    assert detection_schedules.due(MONDAY + 7 * DAY_MS - 1, 500) == []
