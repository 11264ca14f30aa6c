"""Experiments with a schedule of issue detection that are moved to another workspace."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import evaluation.app
from judge_runner.issue_detection import scheduled_runs
from mlcore.repos.evaluation import detection_schedules, jobs
from mlcore.repos.gateway import configuration
from mlcore.repos.removal import workspace_moves
from tests.contract.api import JSON, Answer, Api, called
from tests.contract.conftest import Store, enable_workspaces
from tests.contract.detection_schedule_world import DAY, Scheduled, sweep, traces_at

TEAM = "team"
PATH = "/ajax-api/3.0/mlflow/issues/schedule/state"


class Moving(Scheduled):
    """An experiment with a schedule, in the default workspace; ``move`` brings it to ``team``."""

    def __init__(self, api: Any, patch: pytest.MonkeyPatch, folder: Any) -> None:
        super().__init__(api, patch, folder)
        enable_workspaces(patch, TEAM)
        self.there = Api(TEAM)

    def move(self) -> None:
        workspace_moves.experiment(self.experiment, TEAM)

    def confirm_there(self) -> Answer:
        headers = {**JSON, "x-mlflow-workspace": TEAM}
        body = {"experiment_id": self.experiment}
        return called(evaluation.app.handler, "POST", PATH, body, headers)

    def statuses(self) -> list[str]:
        """Of the runs of the experiment after its move."""
        runs = self.there.post("runs/search", experiment_ids=[self.experiment]).get("runs", [])
        return [run["info"]["status"] for run in runs]

    def is_stored(self, workspace: str) -> bool:
        return detection_schedules.find(workspace, self.experiment) is not None


@pytest.fixture
def world(store: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Moving:
    return Moving(store.api, monkeypatch, tmp_path)


def test_it_does_not_run_after_the_move(world: Moving) -> None:
    """Who confirmed it chose a model of the former workspace."""
    due = world.save()
    traces_at(world, due - 20, due - 10)
    world.move()
    assert world.confirm().status == 404
    world.now = due
    sweep()
    sweep()
    assert (world.statuses(), world.queue.waiting) == ([], [])
    assert not world.is_stored("default")
    assert world.confirm_there().status == 404, "the endpoint is not in this workspace"
    assert not world.is_stored(TEAM)


@pytest.mark.parametrize("is_swept_first", [True, False])
def test_saved_again_it_runs_once(world: Moving, *, is_swept_first: bool) -> None:
    due = world.save()
    traces_at(world, due - 20, due - 10)
    world.move()
    configuration.move("default", TEAM)
    if is_swept_first:
        sweep()
    answer = world.confirm_there()
    assert (answer.status, answer.body) == (200, {"next_fire_time_ms": due})
    world.now = due
    sweep()
    sweep()
    assert world.statuses() == ["RUNNING"]
    assert list(jobs.of_workspace("default")) == []
    [job] = jobs.of_workspace(TEAM)
    assert job.workspace == TEAM
    assert (world.is_stored("default"), world.is_stored(TEAM)) == (False, True)
    assert world.work() == []
    assert world.statuses() == ["FINISHED"]
    world.now = due + DAY
    sweep()
    assert len(world.statuses()) == 2


def test_a_move_during_the_sweep(world: Moving, monkeypatch: pytest.MonkeyPatch) -> None:
    due = world.save()
    traces_at(world, due - 20, due - 10)
    decide = scheduled_runs._refusal

    def moved_meanwhile(*arguments: Any) -> str | None:
        reason = decide(*arguments)
        world.move()
        return reason

    monkeypatch.setattr(scheduled_runs, "_refusal", moved_meanwhile)
    world.now = due
    sweep()
    assert world.work() == []
    world.now = due + DAY
    sweep()
    assert world.model.asked == []
    assert set(world.statuses()) <= {"FAILED", "FINISHED"}
    assert (world.queue.waiting, world.is_stored("default")) == ([], False)


def test_a_move_before_the_job(world: Moving) -> None:
    """The run does not stay running, and no model of the former workspace is asked."""
    due = world.save()
    traces_at(world, due - 20, due - 10)
    world.now = due
    sweep()
    assert len(world.queue.waiting) == 1
    world.move()
    assert world.work() == []
    assert world.model.asked == []
    assert world.statuses() == ["FAILED"]
    world.now = due + DAY
    sweep()
    assert not world.is_stored("default")


def test_a_move_during_the_job(world: Moving) -> None:
    due = world.save()
    traces_at(world, due - 20, due - 10)
    world.now = due
    sweep()
    say = world.detective.say

    def moved_meanwhile(chat: Any) -> Any:
        world.move()
        return say(chat)

    world.model.said = moved_meanwhile
    for _ in range(5):
        world.work()
    assert world.queue.waiting == []
    assert world.statuses() in (["FAILED"], ["FINISHED"])
    issues = {"experiment_id": world.experiment}
    headers = {**JSON, "x-mlflow-workspace": TEAM}
    path = "/api/3.0/mlflow/issues/search"
    answer = called(evaluation.app.handler, "POST", path, issues, headers)
    assert json.dumps(answer.body).count("issue_id") <= 1
