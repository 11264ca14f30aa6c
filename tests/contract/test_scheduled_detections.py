"""Issues detected by a schedule: what a sweep starts, and once only."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import gateway.app
from judge_runner.issue_detection import scheduled_runs
from mlcore.db import capacity
from mlcore.entities.evaluation.detection_schedule import (
    FILTER_TAG,
    SCHEDULE_TAG,
    STATE_TAG,
    ConfirmedSchedule,
)
from mlcore.repos.evaluation import detection_schedules, jobs
from tests.contract import trace_calls
from tests.contract.api import called
from tests.contract.conftest import Store
from tests.contract.detection_schedule_world import (
    CHECKPOINT_TAG,
    DAILY,
    DAY,
    HOUR,
    NOON,
    Scheduled,
    sweep,
    traces_at,
)
from tests.contract.threads import at_once

Json = dict[str, Any]


@pytest.fixture
def world(store: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Scheduled:
    return Scheduled(store.api, monkeypatch, tmp_path)


def test_a_due_schedule_detects_issues(world: Scheduled, monkeypatch: pytest.MonkeyPatch) -> None:
    """The traces of its window, and those after the checkpoint the next time."""
    due = world.save()
    early, first, second, late = traces_at(world, due - DAY, due - DAY + 10, due, due + 10)
    world.now = due - 1
    sweep()
    assert world.runs() == []
    world.now = due + 4 * 60_000
    sweep()
    sweep()
    (run,) = world.runs()
    tags = run["tags"]
    assert run["status"] == "RUNNING"
    assert tags["mlflow.runType"] == "issue_detection"
    assert tags["mlflow.issueDetection.trigger"] == "schedule"
    assert tags["mlflow.issueDetection.windowStart"] == str(due - DAY)
    assert tags["mlflow.issueDetection.windowEnd"] == str(due)
    assert (tags["total_traces"], tags["model"]) == ("2", "gateway:/e")
    assert world.tag(STATE_TAG) == {
        "version": 1,
        "lastFireTimeMs": due,
        "lastDispatchedAtMs": world.now,
        "lastRunId": run["id"],
        "timing": "daily|09:00|0|UTC",
        "nextFireTimeMs": due + DAY,
    }
    job = jobs.find("default", tags["mlflow.issueDetection.jobId"])
    assert job is not None
    assert set(job.params["trace_ids"]) == {first, second}
    assert early not in job.params["trace_ids"]
    assert world.tag(CHECKPOINT_TAG) is None
    assert world.work() == []
    (run,) = world.runs()
    assert (run["status"], run["tags"]["total_traces_analyzed"]) == ("FINISHED", "2")
    checkpoint = world.tag(CHECKPOINT_TAG)
    assert checkpoint["lastScannedTraceTimeMs"] == due
    assert (checkpoint["lastScannedTraceId"], checkpoint["lastRunUuid"]) == (second, run["id"])
    world.now = due + DAY
    sweep()
    again = world.runs()[1]
    assert again["tags"]["mlflow.issueDetection.windowStart"] == str(due)
    job = jobs.find("default", again["tags"]["mlflow.issueDetection.jobId"])
    assert job is not None
    assert job.params["trace_ids"] == [late]


def test_filter_and_priorities(world: Scheduled, monkeypatch: pytest.MonkeyPatch) -> None:
    clause = {"field": "tag", "operator": "=", "key": "team", "value": "a"}
    world.set_tag(FILTER_TAG, json.dumps([clause]))
    priorities = {"instructions": "Refunds.", "categories": {"latency": True, "cost": False}}
    world.set_tag("mlflow.issueDetection.priorities", json.dumps(priorities))
    due = world.save(cadence="hourly", fireTime="00:30")
    assert due == NOON + HOUR // 2
    _, chosen = traces_at(world, due - 10, due)
    trace_calls.tell("PATCH", f"3.0/traces/{chosen}/tags", {"key": "team", "value": "a"})
    world.now = due
    sweep()
    (run,) = world.runs()
    job = jobs.find("default", run["tags"]["mlflow.issueDetection.jobId"])
    assert job is not None
    assert job.params["trace_ids"] == [chosen]
    assert (job.params["categories"], job.params["instructions"]) == (["latency"], "Refunds.")


def test_a_quiet_window_leaves_a_finished_run(
    world: Scheduled, monkeypatch: pytest.MonkeyPatch
) -> None:
    due = world.save()
    world.now = due
    sweep()
    (run,) = world.runs()
    assert (run["status"], run["tags"]["total_traces"]) == ("FINISHED", "0")
    assert world.queue.waiting == []
    assert world.tag(CHECKPOINT_TAG) is None
    # Traces that the filter leaves out were looked at.
    world.set_tag(FILTER_TAG, json.dumps([{"field": "tag", "key": "x", "value": "y"}]))
    assert world.save() == due + DAY
    (trace,) = traces_at(world, due + 10)
    world.now = due + DAY
    sweep()
    assert [each["status"] for each in world.runs()] == ["FINISHED"] * 2
    assert world.tag(CHECKPOINT_TAG)["lastScannedTraceId"] == trace


def test_a_long_absence_is_made_up_for_by_one_run(world: Scheduled) -> None:
    due = world.save(cadence="hourly", fireTime="00:00")
    world.now = due + 30 * DAY + 5
    sweep()
    sweep()
    (run,) = world.runs()
    assert run["tags"]["mlflow.issueDetection.windowEnd"] == str(due + 30 * DAY)
    assert run["tags"]["mlflow.issueDetection.windowStart"] == str(due + 30 * DAY - HOUR)
    world.set_tag(CHECKPOINT_TAG, json.dumps({"version": 1, "lastScannedTraceTimeMs": due}))
    world.now += 20 * DAY
    sweep()
    end = int(world.runs()[1]["tags"]["mlflow.issueDetection.windowEnd"])
    start = int(world.runs()[1]["tags"]["mlflow.issueDetection.windowStart"])
    assert end - start == 8 * DAY


def test_a_running_detection_is_waited_for(
    world: Scheduled, monkeypatch: pytest.MonkeyPatch
) -> None:
    due = world.save()
    traces = traces_at(world, due - 10, due)
    world.begin(traces)
    world.now = due
    sweep()
    assert len(world.runs()) == 1
    stored = world.stored()
    assert stored is not None
    assert stored.fire_time == due
    assert world.work() == []
    sweep()
    assert len(world.runs()) == 2


def test_sweeps_at_once_start_one_run(world: Scheduled, monkeypatch: pytest.MonkeyPatch) -> None:
    due = world.save()
    traces_at(world, due - 10, due)
    world.now = due
    at_once(6, lambda _: sweep())
    assert len(world.runs()) == 1
    assert len(list(jobs.of_workspace("default"))) == 1
    world.work()
    assert [run["status"] for run in world.runs()] == ["FINISHED"]


TRANSACTION = "mlcore.repos.runs.core.creations.create"
STATE = "judge_runner.issue_detection.scheduled_runs._write_state"


@pytest.mark.parametrize(
    ("is_quiet", "step"),
    [
        (False, "mlcore.repos.evaluation.jobs.enqueue"),
        (False, TRANSACTION),
        (False, STATE),
        (True, TRANSACTION),
        (True, STATE),
    ],
)
def test_a_sweep_that_dies_is_completed(
    world: Scheduled, monkeypatch: pytest.MonkeyPatch, step: str, is_quiet: bool
) -> None:
    due = world.save()
    if not is_quiet:
        traces_at(world, due - 10, due)
    world.now = due

    def die(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(step, die)
        with pytest.raises(KeyboardInterrupt):
            sweep()
    assert len(world.runs()) == int(step == STATE)
    sweep()
    sweep()
    assert len(world.runs()) == 1
    world.work()
    assert [run["status"] for run in world.runs()] == ["FINISHED"]
    world.now = due + DAY
    sweep()
    assert len(world.runs()) == 2
    assert world.tag(STATE_TAG)["lastFireTimeMs"] == due + DAY


def test_a_full_queue_is_tried_again(world: Scheduled, monkeypatch: pytest.MonkeyPatch) -> None:
    due = world.save()
    traces_at(world, due)
    world.now, world.queue.broken = due, True
    sweep()
    assert world.runs() == []
    world.queue.broken = False
    sweep()
    assert len(world.runs()) == 1


def _unschedule(world: Scheduled) -> None:
    world.set_tag(SCHEDULE_TAG, json.dumps({**DAILY, "paused": True}))


def _another_endpoint(world: Scheduled) -> None:
    world.set_tag(SCHEDULE_TAG, json.dumps({**DAILY, "model": {"endpointName": "f"}}))


def _wider(world: Scheduled) -> None:
    world.set_tag(FILTER_TAG, "[]")


def _removed(world: Scheduled) -> None:
    world.api.post(
        "experiments/delete-experiment-tag", experiment_id=world.experiment, key=SCHEDULE_TAG
    )


@pytest.mark.parametrize("change", [_unschedule, _another_endpoint, _wider, _removed])
def test_changed_tags_do_not_run(world: Scheduled, change: Callable[[Scheduled], None]) -> None:
    due = world.save()
    change(world)
    world.now = due
    sweep()
    assert (world.runs(), world.stored()) == ([], None)
    world.now = due + DAY
    sweep()
    assert world.runs() == []
    assert world.save() == due, "it is confirmed anew, and makes up for what it has missed"
    sweep()
    assert len(world.runs()) == 1


def _delete_endpoint(world: Scheduled) -> None:
    path = "/api/3.0/mlflow/gateway/endpoints/delete"
    fields = {"endpoint_id": world.endpoint_id}
    assert called(gateway.app.handler, "DELETE", path, fields).status == 200


def test_an_endpoint_that_is_gone_ends_the_schedule(world: Scheduled) -> None:
    due = world.save()
    _delete_endpoint(world)
    world.now = due
    sweep()
    sweep()
    (run,) = world.runs()
    assert run["status"] == "FAILED"
    assert "does not exist any more" in run["tags"]["mlflow.issueDetection.error"]
    assert world.stored() is None
    state = world.tag(STATE_TAG)
    assert (state["lastRunId"], state.get("nextFireTimeMs")) == (run["id"], None)


def test_deleted_restored_and_removed_experiments(world: Scheduled, store: Store) -> None:
    due = world.save()
    world.api.post("experiments/delete", experiment_id=world.experiment)
    world.now = due
    sweep()
    assert world.runs() == []
    world.api.post("experiments/restore", experiment_id=world.experiment)
    sweep()
    assert world.runs() == [], "what it has missed is not made up for"
    world.now = due + DAY
    sweep()
    assert len(world.runs()) == 1
    detection_schedules.put(
        ConfirmedSchedule("default", "987654", json.dumps(DAILY), None, None, due, due)
    )
    sweep()
    assert detection_schedules.find("default", "987654") is None


def test_an_idle_sweep_costs_a_read(world: Scheduled) -> None:
    """However many schedules there are."""
    world.save()
    for number in range(40):
        detection_schedules.put(
            ConfirmedSchedule(
                "default", f"9{number}", json.dumps(DAILY), "[]", None, NOON, NOON + DAY
            )
        )
    with capacity.measure() as cost:
        scheduled_runs.sweep(lambda: 600_000)
    assert (cost.round_trips, cost.write_units) == (1, 0)
    assert cost.read_units <= 1
    with capacity.measure() as cost:
        assert world.confirm().status == 200
    confirmed = capacity.last_measurement()
    assert confirmed is not None
    assert confirmed.round_trips <= 5


def test_one_broken_schedule_does_not_stop_the_others(
    world: Scheduled, monkeypatch: pytest.MonkeyPatch
) -> None:
    due = world.save()
    other = ConfirmedSchedule("default", "0", json.dumps(DAILY), None, None, NOON, due - 1)
    detection_schedules.put(other)
    original = scheduled_runs._start

    def start(confirmed: ConfirmedSchedule, now: int) -> None:
        if confirmed.experiment_id == "0":
            raise RuntimeError("broken")
        original(confirmed, now)

    monkeypatch.setattr(scheduled_runs, "_start", start)
    world.now = due
    sweep()
    assert len(world.runs()) == 1
