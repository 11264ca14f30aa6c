"""Requests to detect issues: who may send them, what is refused, and one at a time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import evaluation.app
from mlcore import ids
from mlcore.auth.permissions import Grant
from mlcore.environment import AUTHENTICATION
from mlcore.http import lambda_handler
from mlcore.repos.evaluation import issue_detections, jobs
from mlcore.repos.experiments import experiments
from mlcore.repos.users import grants, users
from tests.contract.conftest import Store
from tests.contract.gateway_world import saved_key
from tests.contract.issue_detection_world import Detections, five
from tests.contract.logins import called_as, named
from tests.contract.threads import at_once

Json = dict[str, Any]
PATH = "/ajax-api/3.0/mlflow/issues/invoke"


@pytest.fixture
def world(store: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Detections:
    return Detections(store.api, monkeypatch, tmp_path)


def test_one_detection_at_a_time(world: Detections, monkeypatch: pytest.MonkeyPatch) -> None:
    traces = five(world)
    begun = world.begin(traces)
    answer = world.request(traces)
    assert (answer.status, answer.code) == (400, "RESOURCE_ALREADY_EXISTS")
    assert begun["run_id"] in answer.body["message"]
    assert world.work() == []
    begun = world.begin(traces)
    world.queue.waiting.clear()
    later = ids.now_ms() + 3_600_001
    monkeypatch.setattr("mlcore.repos.evaluation.issue_detections.now_ms", lambda: later)
    assert world.request(traces).status == 200, "its worker died long ago"


def test_a_queue_that_takes_nothing_leaves_nothing(world: Detections) -> None:
    traces = five(world)
    world.queue.broken = True
    answer = world.request(traces)
    assert (answer.status, answer.code) == (429, "REQUEST_LIMIT_EXCEEDED")
    assert list(jobs.of_workspace("default")) == []
    world.queue.broken = False
    assert world.detect(traces)["issues"] == 2


def test_one_of_many_detections_begins(world: Detections) -> None:
    traces = five(world)
    answers = at_once(6, lambda _: world.request(traces))
    assert sorted(answer.status for answer in answers) == [200] + [400] * 5
    assert {answer.code for answer in answers if answer.status == 400} == {
        "RESOURCE_ALREADY_EXISTS"
    }
    assert len(list(jobs.of_workspace("default"))) == 1


def test_a_detection_that_was_never_submitted_blocks_a_minute(
    world: Detections, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its process died between the note and the job."""
    traces = five(world)
    experiment = experiments.get_active(world.experiment, "default").experiment
    assert issue_detections.begin(experiment, "no job", "no run") is None
    assert world.request(traces).code == "RESOURCE_ALREADY_EXISTS"
    issue_detections.withdraw(experiment, "another job")
    assert world.request(traces).code == "RESOURCE_ALREADY_EXISTS"
    later = ids.now_ms() + 60_001
    monkeypatch.setattr("mlcore.repos.evaluation.issue_detections.now_ms", lambda: later)
    assert world.request(traces).status == 200


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"trace_ids": []}, "trace"),
        ({"trace_ids": None}, "trace_ids"),
        ({"trace_ids": "tr-1"}, "trace_ids"),
        ({"trace_ids": [1]}, "trace_ids"),
        ({"trace_ids": [f"tr-{number}" for number in range(2_001)]}, "At most 2000"),
        ({"categories": None}, "categories"),
        ({"categories": {"a": 1}}, "categories"),
        ({"categories": [1]}, "categories"),
        ({"categories": ["x"] * 21}, "categories"),
        ({"categories": ["x" * 101]}, "categories"),
        ({"instructions": "x" * 10_001}, "instructions"),
        ({"instructions": ["x"]}, "instructions"),
        ({"provider": None}, "provider"),
        ({"experiment_id": None}, "experiment_id"),
        ({"endpoint_name": ["e"]}, "endpoint_name"),
        ({"endpoint_name": None}, "Either 'endpoint_name'"),
        ({"endpoint_name": "", "model": "m"}, "No API key available for provider 'openai'"),
        ({"endpoint_name": "", "model": "m", "provider": "nope"}, "Unsupported provider 'nope'"),
        ({"endpoint_name": "", "secret_id": "s-1"}, "Either 'endpoint_name'"),
    ],
)
def test_bad_requests(world: Detections, fields: Json, message: str) -> None:
    answer = world.request([world.trace("q", "a")], **fields)
    assert (answer.status, answer.code) == (400, "INVALID_PARAMETER_VALUE"), answer
    assert message in answer.body["message"]
    assert world.queue.waiting == []


@pytest.mark.parametrize(
    "fields", [{"endpoint_name": "none"}, {"endpoint_name": "", "model": "m", "secret_id": "none"}]
)
def test_an_endpoint_or_a_key_that_is_not_there(world: Detections, fields: Json) -> None:
    answer = world.request([world.trace("q", "a")], **fields)
    assert (answer.status, answer.code) == (404, "RESOURCE_DOES_NOT_EXIST")


def test_traces_of_another_experiment_are_refused(world: Detections) -> None:
    own, other = world.trace("q", "a"), world.api.new_experiment("other")
    answer = world.request([own], experiment_id=other)
    assert (answer.status, answer.code) == (403, "PERMISSION_DENIED")
    assert world.queue.waiting == []


def test_rights(world: Detections, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody needs the experiment, and the endpoint; what is missing and what is forbidden look
    the same, in any spelling."""
    trace = world.trace("q", "WRONG")
    user = users.create("member", "", is_admin=False)
    other = users.create("other", "", is_admin=False)
    monkeypatch.setenv(AUTHENTICATION, "basic")
    handler = lambda_handler(evaluation.app.RPCS)
    fields = {
        "experiment_id": world.experiment,
        "trace_ids": [trace],
        "categories": [],
        "provider": "openai",
    }

    def send(**more: Any) -> tuple[int, str]:
        body = json.dumps({**fields, **more})
        return called_as(named("member"), handler, "POST", PATH, body)

    assert send(endpoint_name="e")[0] == 403
    grants.put(user, "default", Grant("experiment", world.experiment, "READ"))
    assert send(endpoint_name="e")[0] == 403
    grants.put(user, "default", Grant("experiment", world.experiment, "EDIT"))
    refused = [
        send(**spelling)
        for spelling in (
            {"endpoint_name": "e"},
            {"endpointName": "e"},
            {"endpoint_name": "none"},
            {"endpoint_name": world.endpoint_id},
            {"endpoint_name": "", "endpointName": "e"},
            {"endpoint_name": "e", "secret_id": "s-1", "model": "m"},
        )
    ]
    assert {status for status, _ in refused} == {403}
    assert len({text for _, text in refused}) == 1
    secret_id = saved_key("", "another")
    keys = [send(model="m", secret_id=each) for each in (secret_id, "s-none")]
    keys += [send(model="m", secretId=secret_id), send(model="m", secret_id=f" {secret_id}")]
    assert set(keys) == {refused[0]}
    grants.put(user, "default", Grant("gateway_secret", secret_id, "READ"))
    assert send(model="m", secret_id=secret_id)[0] == 403
    grants.put(user, "default", Grant("gateway_secret", secret_id, "USE"))
    assert send(endpoint_name="e", model="m", secret_id=secret_id)[0] == 403, "it is not needed"
    assert send(model="m", secret_id=secret_id, experiment_id="0")[0] == 403
    grants.put(user, "default", Grant("gateway_endpoint", world.endpoint_id, "USE"))
    for kind in ("trace", "assessment", "run"):
        grants.put(user, "default", Grant(kind, "*", "DENY"))
        assert send(endpoint_name="e")[0] == 403
        grants.delete(user, "default", kind, "*")
    status, text = send(endpoint_name="e")
    assert status == 200, text
    begun = json.loads(text)
    # The job is the user's own.
    path = f"/ajax-api/3.0/mlflow/jobs/{begun['job_id']}"
    assert called_as(named("other"), handler, "GET", path, "")[0] == 403
    cancel = f"/ajax-api/3.0/mlflow/jobs/cancel/{begun['job_id']}"
    assert called_as(named("other"), handler, "PATCH", cancel, "{}")[0] == 403
    assert other.username == "other"
    assert world.work() == []
    status, text = called_as(named("member"), handler, "GET", path, "")
    assert (status, json.loads(text)["status"]) == (200, "SUCCEEDED")
    job = jobs.find("default", begun["job_id"])
    assert job is not None
    assert job.creator == "member"
