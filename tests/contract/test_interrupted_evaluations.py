"""Evaluations whose worker fails before its first write, or meets another worker of the same
job."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from typing import Any

import pytest

from judge_runner import job_execution, trace_scoring
from judge_runner.creator_rights import CreatorRights
from mlcore import ids
from mlcore.db.table import table
from mlcore.errors import TemporarilyUnavailable
from mlcore.repos.evaluation import jobs
from mlcore.repos.runs.core import endings
from mlcore.repos.traces import links
from tests.contract.conftest import Store
from tests.contract.judges_world import Context, World, ask, judge

JUDGE = judge("{{ inputs }} and {{ outputs }}", "polite")


@pytest.fixture
def world(store: Store, monkeypatch: pytest.MonkeyPatch) -> World:
    return World(store.api, monkeypatch)


def evaluate(world: World, traces: Sequence[str]) -> tuple[str, str]:
    """The ids of the job and of its run."""
    body = {
        "experiment_id": world.experiment,
        "trace_ids": traces,
        "serialized_scorers": [json.dumps(JUDGE)],
    }
    answer = ask("POST", "mlflow/genai/evaluate/invoke", body)
    assert answer.status == 200, answer
    return answer.body["job_id"], answer.body["run_id"]


@pytest.mark.parametrize(
    ("owner", "name"),
    [
        (CreatorRights, "check"),
        (trace_scoring, "load_traces"),
        (links, "put"),
    ],
)
def test_a_table_that_is_busy_at_first_leaves_all_traces_linked(
    world: World, monkeypatch: pytest.MonkeyPatch, owner: Any, name: str
) -> None:
    traces = [world.trace(f"q{number}", "a") for number in range(3)]
    job_id, run_id = evaluate(world, traces)

    def busy(*_: Any) -> None:
        raise TemporarilyUnavailable("The table is busy.")

    with monkeypatch.context() as patch:
        patch.setattr(owner, name, busy)
        assert len(world.work()) == 1
    assert world.work() == []
    assert world.job(job_id)["status"] == "SUCCEEDED"
    assert links.traces_of(run_id) == set(traces)


def test_a_worker_that_lost_its_job_to_another_does_not_end_its_run(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first worker waits for an answer longer than its lease. SQS has delivered the message to
    a second one, which is still at work when the first one finds out."""
    monkeypatch.setattr(trace_scoring, "PARALLEL_CALLS", 1)
    traces = [world.trace(f"q{number}", "a") for number in range(3)]
    job_id, run_id = evaluate(world, traces)
    [message] = world.queue.waiting
    now = ids.now_ms()
    monkeypatch.setattr(ids, "now_ms", lambda: now)
    asks, may_continue = threading.Event(), threading.Event()
    kept: list[list[str]] = []
    first = threading.Thread(target=lambda: kept.append(world.work(context=Context())))

    def answer(_chat: Any) -> Any:
        if len(world.model.asked) == 1:
            asks.set()
            assert may_continue.wait(20)
        elif first.is_alive():
            may_continue.set()
            first.join(20)
            assert not first.is_alive()
        return {"result": "yes", "rationale": ""}

    world.model.said = answer
    first.start()
    assert asks.wait(20)
    after_lease = now + job_execution.LEASE_MS + 1
    monkeypatch.setattr(ids, "now_ms", lambda: after_lease)
    world.queue.waiting = [message]
    assert world.work() == []
    assert kept == [[message.body]], "its message stays: the other worker may die"
    assert world.job(job_id)["status"] == "SUCCEEDED"
    run = world.api.get("runs/get", run_id=run_id)["run"]
    assert run["info"]["status"] == "FINISHED"
    assert {metric["key"]: metric["value"] for metric in run["data"]["metrics"]} == {
        "polite/mean": 1.0
    }
    assert world.work() == [], "a late message of an ended job changes nothing"
    again = world.api.get("runs/get", run_id=run_id)["run"]
    assert again == run


def test_a_run_that_is_killed_while_its_job_ends_stays_killed(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, run_id = evaluate(world, [world.trace("q", "a")])
    end = endings.end

    def late(*args: Any, **fields: Any) -> None:
        world.api.post("runs/update", run_id=run_id, status="KILLED", end_time=7)
        end(*args, **fields)

    monkeypatch.setattr(endings, "end", late)
    assert world.work() == []
    info = world.api.get("runs/get", run_id=run_id)["run"]["info"]
    assert (info["status"], info["end_time"]) == ("KILLED", 7)


class Killed(BaseException):
    pass


def test_the_message_of_a_killed_worker_comes_again_before_its_job_has_timed_out(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The queue itself hides a received message for an hour, which most jobs may take."""

    def die(_chat: Any) -> Any:
        raise Killed

    job_id, run_id = evaluate(world, [world.trace("q", "a")])
    [message] = world.queue.waiting
    with monkeypatch.context() as patch:
        patch.setattr(world.model, "said", die)
        with pytest.raises(Killed):
            world.work(milliseconds=600_000)
    [hidden_seconds] = world.queue.postponed
    assert 600 < hidden_seconds < 660
    world.queue.waiting = [message]
    again = ids.now_ms() + int(hidden_seconds * 1000)
    monkeypatch.setattr(ids, "now_ms", lambda: again)
    assert world.work() == []
    assert world.job(job_id)["status"] == "SUCCEEDED"
    assert world.api.get("runs/get", run_id=run_id)["run"]["info"]["status"] == "FINISHED"


def test_a_table_that_is_busy_for_minutes_ends_no_job(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def busy(*_: Any) -> None:
        raise TemporarilyUnavailable("The table is busy.")

    job_id, _ = evaluate(world, [world.trace("q", "a")])
    with monkeypatch.context() as patch:
        patch.setattr(trace_scoring, "load_traces", busy)
        for _ in range(14):
            assert len(world.work()) == 1
    assert world.work() == []
    assert world.job(job_id)["status"] == "SUCCEEDED"


def test_a_job_that_kills_each_worker_ends_as_failed_with_its_run(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In time: before SQS gives its message up, and nobody could end the run any more."""

    def die(_chat: Any) -> Any:
        raise Killed

    job_id, run_id = evaluate(world, [world.trace("q", "a")])
    [message] = world.queue.waiting
    start = ids.now_ms()
    world.model.said = die
    for delivery in range(1, 20):
        world.queue.waiting = [message._replace(receives=delivery - 1)]
        now = start + delivery * (job_execution.LEASE_MS + 1)
        monkeypatch.setattr(ids, "now_ms", lambda now=now: now)
        try:
            assert world.work() == []
        except Killed:
            continue
        break
    assert 5 < delivery < 12
    assert world.job(job_id)["status"] == "FAILED"
    assert world.api.get("runs/get", run_id=run_id)["run"]["info"]["status"] == "FAILED"


def test_a_job_that_is_stored_long_after_its_id_was_made_is_run(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sweep makes the ids of all jobs first. While the table is busy, the message of a late one
    arrives before the job is stored."""
    done = world.job(world.invoke(JUDGE, [world.trace("q", "a")])[0])
    assert world.work() == []
    [former] = jobs.of_workspace("default")
    assert former.job_id == done["job_id"]
    late = jobs.new("default", former.name, former.params, 1)
    minute_later = ids.now_ms() + 60_000
    monkeypatch.setattr(ids, "now_ms", lambda: minute_later)
    jobs.enqueue(late)
    assert len(world.work()) == 1
    table.put(*jobs.creation(late))
    assert world.work() == []
    assert world.job(late.job_id)["status"] == "SUCCEEDED"
