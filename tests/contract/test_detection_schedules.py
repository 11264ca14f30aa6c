"""Schedules of issue detection: what is confirmed, and what its request answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mlcore.entities.evaluation.detection_schedule import (
    SCHEDULE_TAG,
    STATE_TAG,
)
from tests.contract.conftest import Store
from tests.contract.detection_schedule_world import (
    DAILY,
    DAY,
    HOUR,
    NOON,
    Scheduled,
)
from tests.contract.judges_world import ask

Json = dict[str, Any]


@pytest.fixture
def world(store: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Scheduled:
    return Scheduled(store.api, monkeypatch, tmp_path)


def test_a_schedule_is_confirmed_and_kept(world: Scheduled) -> None:
    assert world.confirm().body == {"next_fire_time_ms": None}
    first = world.save()
    assert first == NOON + 21 * HOUR
    state = {
        "version": 1,
        "lastFireTimeMs": NOON,
        "timing": "daily|09:00|0|UTC",
        "nextFireTimeMs": first,
    }
    assert world.tag(STATE_TAG) == state
    world.now += HOUR
    assert world.confirm().body == {"next_fire_time_ms": first}
    assert world.tag(STATE_TAG) == state, "the same timing goes on"
    assert world.save(model={"endpointName": "e"}, paused=True) == first
    assert world.stored() is None, "a paused one does not run"
    assert world.save(fireTime="14:00") == NOON + 2 * HOUR
    assert world.tag(STATE_TAG)["lastFireTimeMs"] == NOON + HOUR
    stored = world.stored()
    assert stored is not None
    assert (stored.fire_time, stored.owner) == (NOON + 2 * HOUR, None)
    world.set_tag(SCHEDULE_TAG, "off")
    assert world.confirm().body == {"next_fire_time_ms": None}
    assert world.stored() is None


@pytest.mark.parametrize(
    "state",
    [
        "[]",
        json.dumps({"version": 1, "lastFireTimeMs": 10**30, "timing": "daily|09:00|0|UTC"}),
        json.dumps({"version": 1, "lastFireTimeMs": -(10**30)}),
        json.dumps({"version": 1, "lastFireTimeMs": NOON + 900 * DAY, "nextFireTimeMs": 1}),
    ],
)
def test_states_that_somebody_else_has_written(world: Scheduled, state: str) -> None:
    world.set_tag(STATE_TAG, state)
    assert world.save() == NOON + 21 * HOUR
    assert world.tag(STATE_TAG)["nextFireTimeMs"] == NOON + 21 * HOUR


@pytest.mark.parametrize("body", [{}, {"experiment_id": None}, {"experiment_id": ["1"]}, [], None])
def test_bad_requests(world: Scheduled, body: Any) -> None:
    answer = ask("POST", "mlflow/issues/schedule/state", body)
    assert (answer.status, answer.code) == (400, "INVALID_PARAMETER_VALUE"), answer


def test_what_cannot_be_confirmed(world: Scheduled) -> None:
    missing = ask("POST", "mlflow/issues/schedule/state", {"experiment_id": "999999"})
    assert (missing.status, missing.code) == (404, "RESOURCE_DOES_NOT_EXIST")
    for model, status in (
        (None, 400),
        ({"provider": "openai", "model": "m"}, 400),
        ({"provider": "nope", "model": "m", "secretId": "s-1"}, 400),
        ({"provider": "openai", "model": "m", "secretId": "s-1"}, 404),
        ({"endpointName": "none"}, 404),
    ):
        world.set_tag(SCHEDULE_TAG, json.dumps({**DAILY, "model": model}))
        assert world.confirm().status == status
        assert (world.stored(), world.tag(STATE_TAG)) == (None, None)
    world.save()
    world.api.post("experiments/delete", experiment_id=world.experiment)
    assert world.confirm().status == 400
