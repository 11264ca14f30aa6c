"""Jobs whose creator loses a right, or is deleted, before the job ends: what nobody may create any
more is not done either."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

import evaluation.app
import gateway.app
from judge_runner import creator_rights
from mlcore import artifacts
from mlcore.artifacts.folder import Folder
from mlcore.auth.permissions import Grant, scorer_pattern
from mlcore.db import capacity
from mlcore.entities.evaluation.jobs import Job
from mlcore.entities.scim import scim_id_of
from mlcore.environment import AUTHENTICATION
from mlcore.http import lambda_handler
from mlcore.repos.evaluation import jobs
from mlcore.repos.removal import workspace_moves
from mlcore.repos.traces import links
from mlcore.repos.users import grants, roles, scim_users, users
from tests.contract import gateway_world
from tests.contract.api import called
from tests.contract.conftest import Store, enable_workspaces
from tests.contract.evaluation_calls import sent
from tests.contract.issue_detection_world import CATEGORIES, Detective
from tests.contract.judges_world import assessments, judge
from tests.contract.logins import called_as, named
from tests.contract.optimization_world import JOBS, OptimizationWorld
from tests.doubles import detective, providers
from tests.doubles.providers import Provider

Json = dict[str, Any]
AJAX: Final = "/ajax-api/3.0/mlflow"
SCORER: Final = "quality"


class JobWorld(OptimizationWorld):
    """A member who may create every kind of job, with a trace, a scorer and a saved key."""

    def __init__(
        self, api: Any, patch: pytest.MonkeyPatch, folder: Path, provider: Provider
    ) -> None:
        super().__init__(api, patch, folder)
        patch.setattr(artifacts, "store", lambda: Folder(folder))
        self.provider = provider
        self.scorer = judge("Is {{ outputs }} fine?", SCORER)
        fields = {"experiment_id": self.experiment, "name": SCORER}
        sent("POST", "scorers/register", {**fields, "serialized_scorer": json.dumps(self.scorer)})
        self.traces = [self.trace("q", "WRONG"), self.trace("q", "fine")]
        self.key = gateway_world.saved_key(f"{provider.url}/v1", "the key")
        self.member = users.create("member", "", is_admin=False)
        self.granted = {
            "experiment": Grant("experiment", self.experiment, "EDIT"),
            "endpoint": Grant("gateway_endpoint", self.endpoint_id, "USE"),
            "prompt": Grant("prompt", "qa", "EDIT"),
            "key": Grant("gateway_secret", self.key, "USE"),
        }
        for grant in self.granted.values():
            grants.put(self.member, "default", grant)
        patch.setenv(AUTHENTICATION, "basic")
        patch.setenv("DEFAULT_PERMISSION", "NO_PERMISSIONS")
        self._handler = lambda_handler(evaluation.app.RPCS)
        detecting = Detective().say
        optimizing = self.model.said

        def say(chat: Json) -> Any:
            words = chat["messages"][0]["content"]
            is_other = words.startswith(("You improve", "You judge")) or "briefly" in str(chat)
            return (
                optimizing(chat) if is_other or "response_format" not in chat else detecting(chat)
            )

        self.model.said = say

    def create_as_member(self, kind: Kind) -> tuple[int, str]:
        body = json.dumps(kind.body(self))
        return called_as(named("member"), self._handler, "POST", kind.path, body)

    def created(self, kind: Kind) -> Job:
        status, text = self.create_as_member(kind)
        assert status == 200, text
        return self.stored()

    def stored(self) -> Job:
        """The newest job."""
        return list(jobs.of_workspace("default"))[-1]

    def calls(self) -> int:
        """Calls of models so far."""
        return len(self.model.asked) + len(self.provider.asked)

    def revoke(self, name: str) -> None:
        grant = self.granted[name]
        grants.delete(self.member, "default", grant.resource_type, grant.resource_pattern)

    def deny(self, resource_type: str, pattern: str = "*") -> None:
        grants.put(self.member, "default", Grant(resource_type, pattern, "DENY"))


class Kind(NamedTuple):
    """A kind of job: its route, a request, the grants and the types of resources that it needs."""

    path: str
    body: Callable[[JobWorld], Json]
    needs: tuple[str, ...]
    denied_by: tuple[str, ...]


def _invocation(world: JobWorld) -> Json:
    return {
        "experiment_id": world.experiment,
        "serialized_scorer": json.dumps(world.scorer),
        "trace_ids": world.traces,
        "log_assessments": True,
    }


def _registered_invocation(world: JobWorld) -> Json:
    return {**_invocation(world), "scorer_name": SCORER, "scorer_version": 1}


def _evaluation(world: JobWorld) -> Json:
    return {
        "experiment_id": world.experiment,
        "serialized_scorers": [json.dumps(world.scorer)],
        "scorer_versions": [1],
        "trace_ids": world.traces,
    }


def _detection(world: JobWorld) -> Json:
    return {
        "experiment_id": world.experiment,
        "trace_ids": world.traces,
        "categories": CATEGORIES,
        "provider": "openai",
        "endpoint_name": "e",
    }


def _detection_with_key(world: JobWorld) -> Json:
    key = {"endpoint_name": "", "model": "gpt-4o-mini", "secret_id": world.key}
    return {**_detection(world), **key}


KINDS: Final = {
    "judge": Kind(
        f"{AJAX}/scorer/invoke",
        _invocation,
        ("experiment", "endpoint"),
        ("trace", "assessment", "scorer_version"),
    ),
    "registered judge": Kind(
        f"{AJAX}/scorer/invoke",
        _registered_invocation,
        ("experiment", "endpoint"),
        ("trace", "assessment", "scorer", "scorer_version"),
    ),
    "evaluation": Kind(
        f"{AJAX}/genai/evaluate/invoke",
        _evaluation,
        ("experiment", "endpoint"),
        ("run", "scorer", "scorer_version"),
    ),
    "detection": Kind(
        f"{AJAX}/issues/invoke",
        _detection,
        ("experiment", "endpoint"),
        ("run", "trace", "assessment"),
    ),
    "detection with a key": Kind(
        f"{AJAX}/issues/invoke",
        _detection_with_key,
        ("experiment", "key"),
        ("run", "trace", "assessment"),
    ),
    "optimization": Kind(
        JOBS,
        lambda world: world.body("METAPROMPT"),
        ("experiment", "endpoint", "prompt"),
        ("run", "prompt_version", "scorer_version"),
    ),
}


@pytest.fixture
def world(store: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[JobWorld]:
    with providers.serving(detective.answer) as provider:
        yield JobWorld(store.api, monkeypatch, tmp_path, provider)


def holds_nothing(world: JobWorld, job_id: str, calls: int = 0) -> None:
    """Checks that a job has failed, and has asked and written nothing."""
    job = jobs.find("default", job_id)
    assert job is not None
    assert (job.status, job.result) == ("FAILED", None), job
    assert "The user who created this job" in str(job.error_message)
    assert world.calls() == calls
    assert world.queue.waiting == []
    assert [assessments(trace) for trace in world.traces] == [[], []]
    assert len(world.versions()) == 1
    if run_id := job.params.get("run_id"):
        run = world.run(run_id)
        assert run["info"]["status"] == "FAILED"
        assert "metrics" not in run["data"]


@pytest.mark.parametrize("name", KINDS)
def test_a_creator_with_all_rights(world: JobWorld, name: str) -> None:
    job = world.created(KINDS[name])
    assert world.work() == []
    done = jobs.find("default", job.job_id)
    assert done is not None
    assert done.status == "SUCCEEDED", done
    assert world.calls() > 0


@pytest.mark.parametrize("name", KINDS)
def test_what_is_refused_at_creation_is_refused_in_the_queue(world: JobWorld, name: str) -> None:
    """For each right that a kind of job needs: without it, neither a new job is created nor is a
    waiting one done."""
    kind = KINDS[name]

    def lost(lose: Callable[[], None], restore: Callable[[], None]) -> None:
        job = world.created(kind)
        lose()
        assert world.create_as_member(kind)[0] == 403
        assert world.work() == []
        holds_nothing(world, job.job_id)
        restore()

    for needed in kind.needs:
        grant = world.granted[needed]

        def restore(grant: Grant = grant) -> None:
            grants.put(world.member, "default", grant)

        def lower(grant: Grant = grant) -> None:
            reading = Grant(grant.resource_type, grant.resource_pattern, "READ")
            grants.delete(world.member, "default", grant.resource_type, grant.resource_pattern)
            grants.put(world.member, "default", reading)

        lost(lambda needed=needed: world.revoke(needed), restore)  # type: ignore[misc]
        grants.delete(world.member, "default", grant.resource_type, grant.resource_pattern)
        restore()
        lost(lower, lambda: None)
        grants.delete(world.member, "default", grant.resource_type, grant.resource_pattern)
        restore()
    for denied in kind.denied_by:
        pattern = scorer_pattern(world.experiment, SCORER) if denied == "scorer" else "*"

        def allow(denied: str = denied, pattern: str = pattern) -> None:
            grants.delete(world.member, "default", denied, pattern)

        lost(lambda denied=denied, pattern=pattern: world.deny(denied, pattern), allow)  # type: ignore[misc]


@pytest.mark.parametrize("name", KINDS)
def test_a_deleted_creator(world: JobWorld, name: str) -> None:
    job = world.created(KINDS[name])
    users.delete(users.get_profile("member"))
    assert world.work() == []
    holds_nothing(world, job.job_id)


def test_a_creator_whom_the_directory_deactivates(world: JobWorld) -> None:
    job = world.created(KINDS["judge"])
    scim_id = scim_id_of(world.member.user_id, "member")
    scim_users.update(
        scim_id, lambda stored: stored._replace(user=stored.user._replace(is_active=False))
    )
    assert world.work() == []
    holds_nothing(world, job.job_id)


@pytest.mark.parametrize("creator", ["member", "root"])
def test_an_experiment_that_was_moved_meanwhile(
    world: JobWorld, monkeypatch: pytest.MonkeyPatch, creator: str
) -> None:
    """Also of those who administrate the former workspace, to whom it denies nothing."""
    users.create("root", "", is_admin=True)
    grants.put(world.member, "default", Grant("workspace", "*", "MANAGE"))
    job = world.created(KINDS["evaluation"])
    jobs.change("default", job.job_id, lambda stored: stored._replace(creator=creator))
    enable_workspaces(monkeypatch, "team")
    workspace_moves.experiment(world.experiment, "team")
    assert world.work() == []
    ended = jobs.find("default", job.job_id)
    assert ended is not None
    assert "The user who created this job no longer" in str(ended.error_message)
    assert (ended.status, world.calls()) == ("FAILED", 0)
    assert links.traces_of(job.params["run_id"]) == set()


def test_a_role_that_is_taken_back(world: JobWorld) -> None:
    kind = KINDS["evaluation"]
    role = roles.create("editors", "default", None)
    roles.add_permission(role.role_id, world.granted["experiment"])
    roles.assign(world.member, role.role_id)
    world.revoke("experiment")
    job = world.created(kind)
    roles.unassign(world.member, role.role_id)
    assert world.work() == []
    holds_nothing(world, job.job_id)


def test_a_job_that_is_continued_is_decided_again(world: JobWorld) -> None:
    """Each call of the function decides; calls of models that were made before stay."""
    job = world.created(KINDS["detection"])
    assert world.work(milliseconds=1000) == []
    paused = jobs.find("default", job.job_id)
    assert paused is not None
    assert (paused.status, len(world.queue.waiting)) == ("PENDING", 1)
    world.revoke("endpoint")
    assert world.work() == []
    holds_nothing(world, job.job_id)


def test_an_endpoint_that_is_made_anew_is_another_one(world: JobWorld) -> None:
    """The job names its endpoint; the grant is on the id of the former one."""
    job = world.created(KINDS["judge"])
    path = "/api/3.0/mlflow/gateway/endpoints"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(AUTHENTICATION, "none")
        called(
            gateway.app.handler,
            "DELETE",
            f"{path}/delete",
            {"endpoint_id": world.endpoint_id},
        )
        gateway_world.endpoint("e", [gateway_world.model("m2", "openai", world.provider.url)])
    assert world.work() == []
    holds_nothing(world, job.job_id)


def test_a_registered_scorer_asks_no_endpoint_that_its_user_may_not_use(world: JobWorld) -> None:
    """The text in the request is not what runs."""
    world.revoke("endpoint")
    harmless = json.dumps(judge("Is {{ outputs }} fine?", SCORER, model="openai:/gpt-4o"))
    for name, field, text in (
        ("registered judge", "serialized_scorer", harmless),
        ("evaluation", "serialized_scorers", [harmless]),
    ):
        kind = KINDS[name]
        body = {**kind.body(world), field: text}
        asking = kind._replace(body=lambda _world, body=body: body)  # type: ignore[misc]
        assert world.create_as_member(asking)[0] == 403
    assert list(jobs.of_workspace("default")) == []
    assert world.queue.waiting == []


@pytest.mark.parametrize("name", KINDS)
def test_what_a_decision_reads(world: JobWorld, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """A user; for one who is no administrator also grants, roles and the gateway's configuration;
    for an optimization the prompt, the dataset and the configuration once more. Of an API key only
    its grant."""
    job = world.created(KINDS[name])
    role = roles.create("readers", "default", None)
    roles.assign(world.member, role.role_id)
    users.create("root", "", is_admin=True)
    more = {"optimization": 3, "detection with a key": -1}.get(name, 0)
    for creator, reads in (("root", 1), ("member", 4 + more)):
        with capacity.measure() as cost:
            creator_rights.check(job._replace(creator=creator))
        assert (cost.round_trips, cost.write_units) == (reads, 0)
    monkeypatch.setenv(AUTHENTICATION, "none")
    with capacity.measure() as cost:
        creator_rights.check(job._replace(creator=None))
    assert cost.round_trips == 0


def test_a_job_of_nobody_where_logins_are_required(world: JobWorld) -> None:
    job = world.created(KINDS["judge"])
    jobs.change("default", job.job_id, lambda stored: stored._replace(creator=None))
    assert world.work() == []
    holds_nothing(world, job.job_id)
