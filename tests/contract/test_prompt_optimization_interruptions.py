"""Interrupted optimizations of prompts on the real engine: nothing is asked or written twice, and
nothing half is left."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from judge_runner import evaluation_runs, job_execution
from judge_runner.job_execution import JobExecution
from judge_runner.optimization_run import OptimizationRun
from mlcore import ids
from mlcore.entities.metrics import Metric
from mlcore.repos.evaluation import job_calls, jobs
from mlcore.repos.runs.core import creations
from mlcore.repos.runs.history import metric_history
from tests.contract.conftest import Store
from tests.contract.evaluation_calls import upsert
from tests.contract.optimization_world import CAPITALS, OptimizationWorld, ask

Json = dict[str, Any]


@pytest.fixture
def world(store: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> OptimizationWorld:
    return OptimizationWorld(store.api, monkeypatch, tmp_path)


class Killed(BaseException):
    pass


@pytest.mark.parametrize("kind", ["GEPA", "METAPROMPT"])
def test_a_kill_anywhere_asks_nothing_twice_and_registers_once(
    world: OptimizationWorld, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """A worker dies before its n-th answer, for each n, and before each write that ends the job."""
    body = world.body(kind, max_metric_calls=14)
    undisturbed = world.optimized(body)
    call_count = len(world.model.asked)
    score = undisturbed["final_eval_scores"]
    assert len(world.versions()) == 2
    for round_number, last in enumerate(range(1, call_count + 1, 4)):
        job = world.create(body)
        [message] = world.queue.waiting
        world.model.asked.clear()
        world.proposed = 0

        def die(last: int = last) -> None:
            if len(world.model.asked) == last:
                raise Killed

        world.before = die
        with pytest.raises(Killed):
            world.work()
        world.before = lambda: None
        world.proposed = 0 if last < call_count // 2 else world.proposed
        world.queue.waiting = [message]
        after_lease = ids.now_ms() + job_execution.LEASE_MS + 1000
        monkeypatch.setattr(ids, "now_ms", lambda now=after_lease: now)
        assert world.work() == []
        done = world.get(job["job_id"])
        assert done["state"]["status"] == "JOB_STATUS_COMPLETED", done
        assert done["final_eval_scores"] == score
        # Answers on their way when the worker died are lost: at most one for each thread.
        assert call_count <= len(world.model.asked) <= call_count + 8
        assert len(world.versions()) == round_number + 3


@pytest.mark.parametrize(
    ("owner", "name"),
    [
        (OptimizationRun, "link"),
        (evaluation_runs, "finish"),
        (JobExecution, "succeed"),
        (JobExecution, "summarize_beside"),
    ],
)
@pytest.mark.parametrize("before", [True, False])
def test_a_kill_at_the_end_registers_once(
    world: OptimizationWorld, monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, before: bool
) -> None:
    job = world.create(world.body("METAPROMPT"))
    [message] = world.queue.waiting
    with monkeypatch.context() as patch:
        real = getattr(owner, name)
        calls: list[int] = []

        def dying(*args: Any, **fields: Any) -> Any:
            calls.append(1)
            is_last = name != "link" or len(calls) == 2
            if before and is_last:
                raise Killed
            result = real(*args, **fields)
            if is_last:
                raise Killed
            return result

        patch.setattr(owner, name, dying)
        with pytest.raises(Killed):
            world.work()
    call_count = len(world.model.asked)
    world.queue.waiting = [message]
    now = ids.now_ms()
    monkeypatch.setattr(ids, "now_ms", lambda: now + job_execution.LEASE_MS + 1)
    assert world.work() == []
    done = world.get(job["job_id"])
    assert (done["state"]["status"], done["optimized_prompt_uri"]) == (
        "JOB_STATUS_COMPLETED",
        "prompts:/qa/2",
    )
    assert len(world.versions()) == 2
    assert len(world.model.asked) == call_count
    assert world.run(job["run_id"])["info"]["status"] == "FINISHED"


def test_an_indexer_that_is_faster(
    world: OptimizationWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It makes points the latest ones of the run as soon as they are in the history, before the job
    does."""
    write = metric_history.write

    def written(experiment_id: str, run_id: str, points: list[Metric]) -> None:
        write(experiment_id, run_id, points)
        latest = [point._asdict() for point in points]
        world.api.post("runs/log-batch", run_id=run_id, metrics=latest)

    monkeypatch.setattr(metric_history, "write", written)
    job = world.optimized(world.body(max_metric_calls=20))
    assert job["state"]["status"] == "JOB_STATUS_COMPLETED"
    run = world.run(job["run_id"])
    assert run["info"]["status"] == "FINISHED"
    metrics = {each["key"]: (each["value"], each["step"]) for each in run["data"]["metrics"]}
    assert metrics["eval_score"] == (1.0, 1)
    assert metrics["final_eval_score"] == (1.0, 0)


@pytest.mark.parametrize("candidate", [0, 1])
@pytest.mark.parametrize("indexed", [True, False])
def test_a_kill_between_the_points_of_a_candidate_and_its_run(
    world: OptimizationWorld, monkeypatch: pytest.MonkeyPatch, candidate: int, indexed: bool
) -> None:
    """The repetition logs each candidate once, and lists the files of all: whether the indexer has
    made the points the latest ones of the run meanwhile, or not."""
    job = world.create(world.body(max_metric_calls=20))
    [message] = world.queue.waiting
    write = metric_history.write

    def write_and_die(experiment_id: str, run_id: str, points: list[Metric]) -> None:
        write(experiment_id, run_id, points)
        if points[0].step == candidate:
            if indexed:
                latest = [point._asdict() for point in points]
                world.api.post("runs/log-batch", run_id=run_id, metrics=latest)
            raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(metric_history, "write", write_and_die)
        with pytest.raises(Killed):
            world.work()
    world.queue.waiting = [message]
    now = ids.now_ms()
    monkeypatch.setattr(ids, "now_ms", lambda: now + job_execution.LEASE_MS + 1)
    assert world.work() == []
    assert world.get(job["job_id"])["state"]["status"] == "JOB_STATUS_COMPLETED"
    tags = {each["key"]: each["value"] for each in world.run(job["run_id"])["data"]["tags"]}
    assert [table["path"] for table in json.loads(tags["mlflow.loggedArtifacts"])] == [
        f"prompt_candidates/iteration_{number}/eval_results.json" for number in (0, 1)
    ]
    history = world.api.get("metrics/get-history", run_id=job["run_id"], metric_key="eval_score")
    assert [(point.get("step", 0), point["value"]) for point in history["metrics"]] == [
        (0, 0.0),
        (1, 1.0),
    ]


def test_records_that_are_changed_before_a_job_continues(
    world: OptimizationWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A killed job repeats its steps with the records that it began with: it asks nothing that it
    would not have asked, and all scores are about the same records."""
    body = world.body(max_metric_calls=20)
    world.optimized(body)
    call_count, world.proposed = len(world.model.asked), 0
    world.model.asked.clear()
    job = world.create(body)
    [message] = world.queue.waiting

    def die() -> None:
        if len(world.model.asked) == call_count - 3:
            raise Killed

    world.before = die
    with pytest.raises(Killed):
        world.work()
    world.before = lambda: None
    assert upsert(world.dataset, {"inputs": {"question": "Oz"}, "outputs": "Ur"}).status == 200
    world.queue.waiting = [message]
    now = ids.now_ms()
    monkeypatch.setattr(ids, "now_ms", lambda: now + job_execution.LEASE_MS + 1)
    assert world.work() == []
    done = world.get(job["job_id"])
    assert (done["state"]["status"], done["final_eval_scores"]) == (
        "JOB_STATUS_COMPLETED",
        {"aggregate": 1.0, "equivalence": 1.0},
    )
    params = {each["key"]: each["value"] for each in world.run(job["run_id"])["data"]["params"]}
    assert params["num_training_samples"] == str(len(CAPITALS))
    assert not [text for text in world.predicted if "Oz" in text]
    assert call_count <= len(world.model.asked) <= call_count + 8


def test_any_text_of_a_record_can_be_remembered(store: Store) -> None:
    call = job_calls.CallId("records", 0)
    for _ in range(2):
        assert job_calls.put("job", call, ["\ud800 é"], ids.now_ms()) == ["\ud800 é"]


def test_a_message_that_comes_twice(world: OptimizationWorld) -> None:
    world.create(world.body("METAPROMPT"))
    world.queue.waiting *= 2
    assert world.work() == []
    assert len(world.versions()) == 2
    assert len(world.predicted) == 2 * len(CAPITALS)


def test_a_job_that_needs_longer_than_a_call(world: OptimizationWorld) -> None:
    job = world.create(world.body())
    assert world.work(milliseconds=1000) == []
    assert world.get(job["job_id"])["state"] == {"status": "JOB_STATUS_PENDING"}
    assert world.run(job["run_id"])["info"]["status"] == "RUNNING"
    assert world.work() == []
    assert world.get(job["job_id"])["state"]["status"] == "JOB_STATUS_COMPLETED"


def test_a_creator_that_dies(world: OptimizationWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before it has stored the job, nothing is left; after that, the job is done."""
    store_run = creations.create

    def die(*args: Any, **fields: Any) -> None:
        if fields.pop("stores", False):
            store_run(*args, **fields)
        raise Killed

    monkeypatch.setattr(creations, "create", die)
    with pytest.raises(Killed):
        ask("POST", "", world.body("METAPROMPT"))
    assert list(jobs.of_workspace("default")) == []
    assert world.api.post("runs/search", experiment_ids=[world.experiment]) == {}
    assert len(world.work()) == 1, "the job may be stored in a moment"
    now = ids.now_ms()
    with monkeypatch.context() as patch:
        patch.setattr(ids, "now_ms", lambda: now + 41_000)
        assert world.work() == []

    def store_and_die(*args: Any, **fields: Any) -> None:
        die(*args, stores=True, **fields)

    monkeypatch.setattr(creations, "create", store_and_die)
    with pytest.raises(Killed):
        ask("POST", "", world.body("METAPROMPT"))
    used = world.api.post("experiments/search-datasets", experiment_ids=[world.experiment])
    assert [each["context"] for each in used["dataset_summaries"]] == ["optimization"]
    assert world.work() == []
    [job] = jobs.of_workspace("default")
    assert job.status == "SUCCEEDED"
    assert world.run(job.params["run_id"])["info"]["status"] == "FINISHED"


def test_a_message_that_comes_before_its_job(
    world: OptimizationWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    store_run = creations.create

    def late(*args: Any, **fields: Any) -> None:
        assert len(world.work()) == 1
        assert world.queue.postponed[-1] == 3.0
        store_run(*args, **fields)

    monkeypatch.setattr(creations, "create", late)
    job = world.create(world.body("METAPROMPT"))
    assert world.work() == []
    assert world.get(job["job_id"])["state"]["status"] == "JOB_STATUS_COMPLETED"
