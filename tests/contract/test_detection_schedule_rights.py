"""Whose rights and budgets a scheduled detection uses, and who may confirm one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import evaluation.app
import experiments.app
from mlcore.auth.permissions import Grant
from mlcore.entities.evaluation.detection_schedule import SCHEDULE_TAG
from mlcore.environment import AUTHENTICATION
from mlcore.http import lambda_handler
from mlcore.repos.evaluation import detection_schedules, jobs
from mlcore.repos.users import grants, users
from tests.contract import lost_rights
from tests.contract.conftest import Store
from tests.contract.detection_schedule_world import DAILY, DAY, Scheduled, sweep, traces_at
from tests.contract.gateway_world import endpoint, model, saved_key
from tests.contract.logins import called_as, named

Json = dict[str, Any]
PATH = "/ajax-api/3.0/mlflow/issues/schedule/state"
ERROR_TAG = "mlflow.issueDetection.error"


class Members(Scheduled):
    """Two users who may edit the experiment, of whom ``owner`` may use the endpoint ``e``."""

    def __init__(self, api: Any, patch: pytest.MonkeyPatch, folder: Any) -> None:
        super().__init__(api, patch, folder)
        for name in ("owner", "editor"):
            user = users.create(name, "", is_admin=False)
            grants.put(user, "default", Grant("experiment", self.experiment, "EDIT"))
        self.owner = users.get("owner")
        grants.put(self.owner, "default", Grant("gateway_endpoint", self.endpoint_id, "USE"))
        patch.setenv(AUTHENTICATION, "basic")
        patch.setenv("DEFAULT_PERMISSION", "NO_PERMISSIONS")
        self._evaluation = lambda_handler(evaluation.app.RPCS)
        self._experiments = lambda_handler(experiments.app.RPCS)

    def confirm_as(self, name: str, body: Any = None) -> tuple[int, str]:
        sent = {"experiment_id": self.experiment} if body is None else body
        text = sent if isinstance(sent, str) else json.dumps(sent)
        return called_as(named(name), self._evaluation, "POST", PATH, text)

    def tag_as(self, name: str, **fields: Any) -> None:
        body = json.dumps(
            {
                "experiment_id": self.experiment,
                "key": SCHEDULE_TAG,
                "value": json.dumps({**DAILY, **fields}),
            }
        )
        path = "/api/2.0/mlflow/experiments/set-experiment-tag"
        status, text = called_as(named(name), self._experiments, "POST", path, body)
        assert status == 200, text

    def saved(self, name: str, **fields: Any) -> int:
        self.tag_as(name, **fields)
        status, text = self.confirm_as(name)
        assert status == 200, text
        return int(json.loads(text)["next_fire_time_ms"])


@pytest.fixture
def world(store: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Members:
    return Members(store.api, monkeypatch, tmp_path)


def test_only_who_may_use_the_endpoint_confirms(world: Members) -> None:
    """What is missing and what is forbidden look the same, in any spelling."""
    other = endpoint("hidden", [model("hidden", "openai")])
    answers = []
    for name in ("e", "none", "hidden", other, world.endpoint_id, " e "):
        world.tag_as("editor", model={"endpointName": name})
        answers.append(world.confirm_as("editor"))
    assert {status for status, _ in answers} == {403}
    assert len({text for _, text in answers}) == 1
    assert world.stored() is None
    world.tag_as("editor")
    status, text = world.confirm_as("owner")
    assert status == 200, text
    stored = world.stored()
    assert stored is not None
    assert stored.owner == "owner"


def test_only_who_may_use_the_key_confirms(world: Members) -> None:
    secret_id = saved_key("", "hidden")
    answers = []
    for name in (secret_id, "none", f" {secret_id}", "*"):
        world.tag_as("owner", model={"provider": "openai", "model": "m", "secretId": name})
        answers.append(world.confirm_as("owner"))
    assert {status for status, _ in answers} == {403}
    assert len({text for _, text in answers}) == 1
    assert world.stored() is None
    grants.put(world.owner, "default", Grant("gateway_secret", secret_id, "USE"))
    due = world.saved("owner", model={"provider": "OpenAI", "model": "m", "secretId": secret_id})
    traces_at(world, due)
    grants.delete(world.owner, "default", "gateway_secret", secret_id)
    world.now = due
    sweep()
    (run,) = world.runs()
    assert run["status"] == "FAILED"
    assert "may no longer" in run["tags"][ERROR_TAG]
    assert (world.stored(), world.queue.waiting) == (None, [])


def test_experiments_cannot_be_probed(world: Members) -> None:
    users.create("stranger", "", is_admin=False)
    world.saved("owner")
    own = world.experiment
    bodies = [
        {"experiment_id": own},
        {"experimentId": own},
        {"experiment_id": "999999"},
        {"experiment_id": f"0{own}"},
        {"experiment_id": [own]},
        {"experiment_id": None},
        {"experiment_id": int(own)},
        {},
        f'{{"experiment_id": "999999", "experiment_id": "{own}"}}',
        f'{{"experiment_id": "{own}", "experimentId": "999999"}}',
    ]
    answers = [world.confirm_as("stranger", body) for body in bodies]
    assert all(status in {400, 403} for status, _ in answers), answers
    assert answers[0] == answers[2] == answers[3]
    assert not any("next_fire_time_ms" in text for _, text in answers)
    reader = users.create("reader", "", is_admin=False)
    grants.put(reader, "default", Grant("experiment", own, "READ"))
    assert world.confirm_as("reader")[0] == 403
    for kind in ("trace", "assessment", "run"):
        grants.put(world.owner, "default", Grant(kind, "*", "DENY"))
        assert world.confirm_as("owner")[0] == 403
        grants.delete(world.owner, "default", kind, "*")
    assert world.confirm_as("owner")[0] == 200


def test_an_editors_tag_does_not_spend_the_owners_budget(world: Members) -> None:
    due = world.saved("owner")
    traces_at(world, due)
    world.tag_as("editor", cadence="hourly")
    world.now = due
    sweep()
    assert (world.runs(), world.stored(), world.queue.waiting) == ([], None, [])


def test_the_job_is_the_owners(world: Members) -> None:
    due = world.saved("owner")
    traces_at(world, due - 10, due)
    world.now = due
    sweep()
    (run,) = world.runs()
    job = jobs.find("default", run["tags"]["mlflow.issueDetection.jobId"])
    assert job is not None
    assert (job.creator, job.params["username"]) == ("owner", "owner")
    assert world.work() == []
    assert world.runs()[0]["status"] == "FINISHED"


@pytest.mark.parametrize(
    ("lose", "reason"),
    [
        (lost_rights.without_endpoint, "may no longer"),
        (lost_rights.without_experiment, "may no longer"),
        (lost_rights.denied_traces, "may no longer"),
        (lost_rights.deleted, "does not exist any more"),
        (lost_rights.made_anew, "does not exist any more"),
    ],
)
def test_lost_rights_end_the_schedule(world: Members, lose: Any, reason: str) -> None:
    due = world.saved("owner")
    traces_at(world, due)
    lose(world.experiment, world.endpoint_id)
    world.now = due
    sweep()
    sweep()
    world.now = due + DAY
    sweep()
    (run,) = world.runs()
    assert run["status"] == "FAILED"
    assert reason in run["tags"][ERROR_TAG]
    assert "Save the schedule again" in run["tags"][ERROR_TAG]
    assert (world.stored(), world.queue.waiting) == (None, [])


def test_a_schedule_of_nobody_does_not_run_where_logins_are_required(
    world: Members, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setenv(AUTHENTICATION, "none")
        due = world.save()
    stored = world.stored()
    assert stored is not None
    assert stored.owner is None
    world.now = due
    sweep()
    assert [run["status"] for run in world.runs()] == ["FAILED"]


def test_an_administrators_schedule_runs(world: Members, monkeypatch: pytest.MonkeyPatch) -> None:
    users.create("root", "", is_admin=True)
    monkeypatch.setenv("IAM_ADMINISTRATORS", "arn:aws:iam::1:role/admin")
    due = world.saved("owner")
    traces_at(world, due)
    stored = world.stored()
    assert stored is not None
    detection_schedules.put(stored._replace(owner="root", owner_id=None))
    world.now = due
    sweep()
    assert [run["status"] for run in world.runs()] == ["RUNNING"]
