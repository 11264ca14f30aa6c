"""Tags of a schedule with contents that no client writes: a detection starts all the same, and the
sweep is never stopped by one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mlcore.entities.evaluation.detection_priorities import PRIORITIES_TAG
from mlcore.entities.evaluation.detection_schedule import FILTER_TAG, SCHEDULE_TAG, STATE_TAG
from tests.contract.conftest import Store
from tests.contract.detection_schedule_world import (
    CHECKPOINT_TAG,
    DAILY,
    Scheduled,
    sweep,
    traces_at,
)
from tests.contract.gateway_world import saved_key

HALF = "\ud800"
"""Half of a character: JSON can spell it, nothing can store it."""


@pytest.fixture
def world(store: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Scheduled:
    return Scheduled(store.api, monkeypatch, tmp_path)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (PRIORITIES_TAG, {"instructions": HALF}),
        (PRIORITIES_TAG, {"instructions": "a\x00"}),
        (PRIORITIES_TAG, {"categories": {HALF: True}}),
        (PRIORITIES_TAG, {"categories": {"a\x00": True}}),
        (PRIORITIES_TAG, {"categories": {"x" * 100: True}}),
        (PRIORITIES_TAG, [[[]]]),
        (FILTER_TAG, [{"key": HALF, "value": "a"}, {"key": "a", "value": HALF}]),
        (FILTER_TAG, [{"key": "a", "value": "x" * 4000}]),
        (FILTER_TAG, [{"key": f"k{number}", "value": "v"} for number in range(20)]),
        (FILTER_TAG, [{"key": "a", "value": "%"}, [], None, {"key": "a"}]),
        (FILTER_TAG, {"key": "a", "value": "b"}),
        (CHECKPOINT_TAG, {"version": 1, "lastScannedTraceTimeMs": 10**30}),
        (CHECKPOINT_TAG, {"version": 1, "lastScannedTraceTimeMs": -(10**30)}),
        (CHECKPOINT_TAG, {"version": 1, "lastScannedTraceTimeMs": float("nan")}),
        (STATE_TAG, {"version": 1, "lastFireTimeMs": 10**30, "lastRunId": HALF}),
    ],
)
def test_a_detection_starts(world: Scheduled, key: str, value: Any) -> None:
    world.set_tag(key, json.dumps(value))
    due = world.save()
    traces_at(world, due - 20, due - 10)
    world.now = due
    sweep()
    assert len(world.runs()) == 1
    assert world.work() == []
    assert [run["status"] for run in world.runs()] == ["FINISHED"]
    stored = world.stored()
    assert stored is not None
    assert stored.fire_time > due


@pytest.mark.parametrize(
    "model",
    [
        {"endpointName": HALF},
        {"endpointName": "e", "provider": HALF},
        {"provider": "openai", "model": HALF, "secretId": "{key}"},
        {"provider": HALF, "model": "m", "secretId": "{key}"},
        {"provider": "openai", "model": "m", "secretId": HALF},
    ],
)
def test_a_schedule_that_nothing_can_store_is_none(world: Scheduled, model: dict[str, str]) -> None:
    text = json.dumps({**DAILY, "model": model}).replace("{key}", saved_key("", "k"))
    world.set_tag(SCHEDULE_TAG, text)
    answer = world.confirm()
    assert (answer.status, answer.body["next_fire_time_ms"]) == (200, None)
    assert world.stored() is None
