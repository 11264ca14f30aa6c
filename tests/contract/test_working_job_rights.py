"""Jobs that lose a right while they work: their run is moved to another experiment, or their
creator loses a grant. What is written afterwards is decided by the rights of that moment."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from judge_runner import creator_rights
from mlcore.auth.permissions import Grant
from mlcore.db import capacity
from mlcore.entities.evaluation.jobs import Job
from mlcore.environment import AUTHENTICATION
from mlcore.errors import InvalidParameterValue, PermissionDenied
from mlcore.repos.evaluation import jobs
from mlcore.repos.experiments import experiments
from mlcore.repos.runs.core import moving, runs
from mlcore.repos.traces import links
from mlcore.repos.users import grants
from tests.contract.conftest import Store
from tests.contract.job_creators_world import KINDS, JobWorld
from tests.contract.judges_world import assessments
from tests.doubles import detective, providers

Json = dict[str, Any]
WITH_RUN = ("evaluation", "detection", "optimization")


@pytest.fixture
def world(store: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[JobWorld]:
    monkeypatch.setattr(moving, "QUIET_SECONDS", -1)
    with providers.serving(detective.answer) as provider:
        yield JobWorld(store.api, monkeypatch, tmp_path, provider)


def other_experiment(world: JobWorld, monkeypatch: pytest.MonkeyPatch) -> str:
    with monkeypatch.context() as patch:
        patch.setenv(AUTHENTICATION, "none")
        return world.api.new_experiment("other")


def move(job: Job, experiment: str) -> None:
    moving.move(job.params["run_id"], experiments.get_active(experiment, "default").experiment)


def stored(job: Job) -> Job:
    current = jobs.find("default", job.job_id)
    assert current is not None
    return current


def texts_of_run(job: Job) -> Json:
    run = runs.load(job.params["run_id"], "default")
    return {name: run.document.texts(name) for name in ("metrics", "params", "tags")}


def before_answer(world: JobWorld, number: int, act: Callable[[], None]) -> None:
    """Does something before the model's answer of that number, counted from 1."""
    answer = world.model.said

    def act_and_answer(chat: Json) -> Any:
        if len(world.model.asked) == number:
            act()
        return answer(chat)

    world.model.said = act_and_answer


@pytest.mark.parametrize("name", WITH_RUN)
@pytest.mark.parametrize("permission", [None, "READ", "EDIT"])
def test_a_run_that_is_moved_before_the_job_begins(
    world: JobWorld, monkeypatch: pytest.MonkeyPatch, name: str, permission: str | None
) -> None:
    other = other_experiment(world, monkeypatch)
    if permission is not None:
        grants.put(world.member, "default", Grant("experiment", other, permission))
    job = world.created(KINDS[name])
    before = texts_of_run(job)
    move(job, other)
    assert world.work() == []
    if permission == "EDIT":
        assert stored(job).status == "SUCCEEDED", stored(job)
        assert texts_of_run(job) != before
        return
    assert stored(job).status == "FAILED"
    assert "may not update runs" in str(stored(job).error_message)
    assert texts_of_run(job) == before
    assert links.traces_of(job.params["run_id"]) == set()
    assert runs.load(job.params["run_id"], "default").item.status == "FAILED"


@pytest.mark.parametrize(
    ("name", "number"),
    [("evaluation", 1), ("evaluation", 2), *((n, i) for n in WITH_RUN[1:] for i in (1, 2, 3))],
)
def test_a_run_that_is_moved_while_the_job_works(
    world: JobWorld, monkeypatch: pytest.MonkeyPatch, name: str, number: int
) -> None:
    other = other_experiment(world, monkeypatch)
    job = world.created(KINDS[name])
    at_move: list[Json] = []

    def act() -> None:
        at_move.append(texts_of_run(job))
        move(job, other)

    before_answer(world, number, act)
    assert world.work() == []
    assert stored(job).status == "FAILED", stored(job)
    assert "may not update runs" in str(stored(job).error_message)
    assert at_move == [texts_of_run(job)]
    assert runs.load(job.params["run_id"], "default").item.status == "FAILED"


@pytest.mark.parametrize("name", ["judge", "evaluation", "detection", "optimization"])
def test_a_right_that_is_lost_while_the_job_works(
    world: JobWorld, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """The answer that is under way is not written, and no other is asked for, once the last
    decision is too old."""
    monkeypatch.setattr(creator_rights, "RECHECK_SECONDS", 0.0)
    monkeypatch.setattr("judge_runner.trace_scoring.PARALLEL_CALLS", 1)
    job = world.created(KINDS[name])
    before_answer(world, 1, lambda: world.revoke("experiment"))
    assert world.work() == []
    assert stored(job).status == "FAILED", stored(job)
    assert "no longer has the rights" in str(stored(job).error_message)
    assert len(world.model.asked) == 1
    assert [assessments(trace) for trace in world.traces] == [[], []]
    if run_id := job.params.get("run_id"):
        run = runs.load(run_id, "default")
        assert (run.item.status, run.document.texts("metrics")) == ("FAILED", {})


@pytest.mark.parametrize("answers", [True, False])
def test_a_right_that_is_lost_before_a_later_answer(
    world: JobWorld, monkeypatch: pytest.MonkeyPatch, answers: bool
) -> None:
    """A detection writes neither the later answer nor that there was none."""
    monkeypatch.setattr(creator_rights, "RECHECK_SECONDS", 0.0)
    monkeypatch.setattr("judge_runner.trace_scoring.PARALLEL_CALLS", 1)
    job = world.created(KINDS["detection"])

    def act() -> None:
        world.revoke("experiment")
        if not answers:
            raise InvalidParameterValue("The model does not answer.")

    before_answer(world, 2, act)
    assert world.work() == []
    assert stored(job).status == "FAILED", stored(job)
    assert "no longer has the rights" in str(stored(job).error_message)
    assert len(world.model.asked) == 2
    assert [len(assessments(trace)) for trace in world.traces] == [1, 0]


def test_a_decision_holds_for_a_minute(world: JobWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many traces a job judges meanwhile: so a job pays three reads a minute, and one more
    if its creator has a role."""
    now = [1000.0]
    monkeypatch.setattr("judge_runner.creator_rights.time.monotonic", lambda: now[0])
    rights = creator_rights.CreatorRights(world.created(KINDS["judge"]))
    for seconds, reads in ((0, 3), (0, 0), (59, 0), (1, 3), (0, 0)):
        now[0] += seconds
        with capacity.measure() as cost:
            for _ in range(100):
                rights.check()
        assert (cost.round_trips, cost.write_units) == (reads, 0)


def test_a_refusal_is_not_kept_as_a_decision(world: JobWorld) -> None:
    rights = creator_rights.CreatorRights(world.created(KINDS["judge"]))
    world.revoke("experiment")
    for _ in range(2):
        with pytest.raises(PermissionDenied):
            rights.check()
    grants.put(world.member, "default", world.granted["experiment"])
    rights.check()


def test_jobs_of_nobody_where_no_login_is_required(
    world: JobWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A moved run is filled in its present experiment, as by any caller there."""
    other = other_experiment(world, monkeypatch)
    job = world.created(KINDS["evaluation"])
    monkeypatch.setenv(AUTHENTICATION, "none")
    move(job, other)
    assert world.work() == []
    assert stored(job).status == "SUCCEEDED"
    assert texts_of_run(job)["metrics"]
