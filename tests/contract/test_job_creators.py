"""Jobs whose creator loses a right, or is deleted, before the job ends: what nobody may create any
more is not done either."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import gateway.app
from judge_runner import creator_rights
from mlcore.auth.permissions import Grant, scorer_pattern
from mlcore.db import capacity
from mlcore.entities.scim import scim_id_of
from mlcore.environment import AUTHENTICATION
from mlcore.ids import now_ms
from mlcore.repos.evaluation import jobs
from mlcore.repos.removal import workspace_moves
from mlcore.repos.traces import links
from mlcore.repos.users import api_keys, grants, roles, scim_users, users
from tests.contract import gateway_world
from tests.contract.api import called
from tests.contract.conftest import Store, enable_workspaces
from tests.contract.job_creators_world import KINDS, SCORER, JobWorld, holds_nothing
from tests.contract.judges_world import judge
from tests.contract.logins import named
from tests.doubles import detective, providers

Json = dict[str, Any]


@pytest.fixture
def world(store: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[JobWorld]:
    with providers.serving(detective.answer) as provider:
        yield JobWorld(store.api, monkeypatch, tmp_path, provider)


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


def test_a_later_user_of_the_same_name(world: JobWorld) -> None:
    """Inherits no jobs, although it has the same rights."""
    job = world.created(KINDS["judge"])
    waiting = world.created(KINDS["judge"])
    [message, later] = world.queue.waiting
    world.queue.waiting = [message]
    assert world.work() == []
    path = f"/ajax-api/3.0/jobs/{job.job_id}"
    status, text = world.ask(named("member"), "GET", path)
    assert (status, json.loads(text)["status"]) == (200, "SUCCEEDED")
    calls = world.calls()

    users.delete(users.get_profile("member"))
    again = users.create("member", "", is_admin=False)
    for grant in world.granted.values():
        grants.put(again, "default", grant)
    world.queue.waiting = [later]
    assert world.work() == []
    ended = jobs.find("default", waiting.job_id)
    assert ended is not None
    assert ended.status == "FAILED"
    assert "does not exist any more" in str(ended.error_message)
    assert world.calls() == calls
    refused = world.ask(named("member"), "GET", path)
    assert refused == world.ask(named("member"), "GET", f"/ajax-api/3.0/jobs/{jobs.new_id()}")
    assert refused[0] == 403
    cancelled = f"/ajax-api/3.0/jobs/cancel/{waiting.job_id}"
    assert world.ask(named("member"), "PATCH", cancelled)[0] == 403
    status, text = world.ask(named("member"), "POST", "/ajax-api/3.0/jobs/search")
    assert (status, json.loads(text)) == (200, {"jobs": []})
    own = world.created(KINDS["judge"])
    status, text = world.ask(named("member"), "POST", "/ajax-api/3.0/jobs/search")
    assert [each["job_id"] for each in json.loads(text)["jobs"]] == [own.job_id]


def test_an_api_key_that_is_revoked(world: JobWorld) -> None:
    """One that has expired, or that somebody else revokes, changes nothing."""
    kind = KINDS["judge"]
    made = [
        api_keys.create(world.member, name, "default", None, None).key
        for name in ("revoked", "expired")
    ]
    created = []
    for key in made:
        claims = {"key_user": "member", "key_id": key.key_id, "is_admin": False}
        assert world.ask({"lambda": claims}, "POST", kind.path, kind.body(world))[0] == 200
        created.append(world.stored())
    created.append(world.created(kind))
    api_keys.delete(made[0].key_id)
    api_keys.expire(made[1], now_ms() - 1)
    assert world.work() == []
    ended = [jobs.find("default", job.job_id) for job in created]
    assert [job and job.status for job in ended] == ["FAILED", "SUCCEEDED", "SUCCEEDED"]
    assert ended[0] is not None
    assert "API key by which this job was created was revoked" in str(ended[0].error_message)


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
    jobs.change(
        "default", job.job_id, lambda stored: stored._replace(creator=creator, creator_id=None)
    )
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
            creator_rights.check(job._replace(creator=creator, creator_id=None))
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
