"""Optimization of prompts on the real engine: what is registered, what is logged, and that nothing
is asked or written twice, whatever interrupts a job."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from judge_runner import job_execution
from mlcore import ids
from mlcore.errors import GatewayCallFailed
from mlcore.repos.evaluation import jobs
from tests.contract.conftest import Store
from tests.contract.evaluation_calls import new_dataset, upsert
from tests.contract.optimization_world import GOOD, POOR, OptimizationWorld, ask
from tests.contract.trace_calls import info, start, tell

Json = dict[str, Any]


@pytest.fixture
def world(store: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> OptimizationWorld:
    return OptimizationWorld(store.api, monkeypatch, tmp_path)


def test_what_creation_makes(world: OptimizationWorld) -> None:
    body = {**world.body(max_metric_calls=50), "tags": [{"key": "team", "value": "a"}]}
    job = world.create(body)
    assert job == {
        "job_id": job["job_id"],
        "run_id": job["run_id"],
        "state": {"status": "JOB_STATUS_PENDING"},
        "experiment_id": world.experiment,
        "source_prompt_uri": "prompts:/qa/1",
        "config": body["config"],
        "creation_timestamp_ms": job["creation_timestamp_ms"],
        "tags": [{"key": "team", "value": "a"}],
    }
    assert world.get(job["job_id"]) == job
    run = world.run(job["run_id"])
    assert run["info"]["status"] == "RUNNING"
    assert run["info"]["run_name"] == f"optimize_prompt_gepa_qa_1_{job['creation_timestamp_ms']}"
    assert {each["key"]: each["value"] for each in run["data"]["params"]} == {
        "source_prompt_uri": "prompts:/qa/1",
        "optimizer_type": "gepa",
        "dataset_id": world.dataset,
        "scorer_names": '["Equivalence"]',
        "optimizer_config_json": body["config"]["optimizer_config_json"],
    }
    [used] = run["inputs"]["dataset_inputs"]
    assert used["tags"] == [{"key": "mlflow.data.context", "value": "optimization"}]
    assert json.loads(used["dataset"]["source"]) == {"dataset_id": world.dataset}


def test_what_creation_costs(world: OptimizationWorld) -> None:
    """Experiment, prompt and its version, dataset, endpoints, the run's dataset and its context,
    and the transaction of run and job."""
    world.create(world.body())
    world.create(world.body())
    assert world.api.cost.round_trips == 7


@pytest.mark.parametrize("kind", ["GEPA", "METAPROMPT"])
def test_a_better_prompt_is_registered(world: OptimizationWorld, kind: str) -> None:
    job = world.optimized(world.body(kind, max_metric_calls=20))
    assert job["state"]["status"] == "JOB_STATUS_COMPLETED"
    assert job["optimized_prompt_uri"] == "prompts:/qa/2"
    assert job["initial_eval_scores"] == {"aggregate": 0.0, "equivalence": 0.0}
    assert job["final_eval_scores"] == {"aggregate": 1.0, "equivalence": 1.0}
    _, made = world.versions()
    tags = {tag["key"]: tag["value"] for tag in made["tags"]}
    assert tags == {
        "mlflow.prompt.is_prompt": "true",
        "mlflow.prompt.text": GOOD,
        "_mlflow_prompt_type": "text",
        "_mlflow_prompt_model_config": '{"provider": "gateway", "model_name": "e"}',
    }
    run = world.run(job["run_id"])
    assert run["info"]["status"] == "FINISHED"
    logged = {tag["key"]: tag["value"] for tag in run["data"]["tags"]}
    assert json.loads(logged["mlflow.linkedPrompts"]) == [
        {"name": "qa", "version": "1"},
        {"name": "qa", "version": "2"},
    ]
    params = {each["key"]: each["value"] for each in run["data"]["params"]}
    classes = {"GEPA": "GepaPromptOptimizer", "METAPROMPT": "MetaPromptOptimizer"}
    assert params["optimizer"] == classes[kind]
    assert (params["num_prompts"], params["num_training_samples"]) == ("1", "4")
    metrics = {each["key"]: (each["value"], each["step"]) for each in run["data"]["metrics"]}
    assert metrics["eval_score"] == metrics["eval_score.equivalence"] == (1.0, 1)
    assert metrics["final_eval_score"] == (1.0, 0)


def test_progress_is_that_of_the_run(world: OptimizationWorld) -> None:
    job = world.optimized(world.body(max_metric_calls=28))
    # 4 of the given prompt, 3 and 3 of a batch, 4 of the better one.
    assert job["state"]["metadata"] == {"progress": "0.5"}


def test_progress_is_counted_in_records(
    world: OptimizationWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_execution, "HEARTBEAT_MS", -1)
    job = world.create(world.body("METAPROMPT"))
    shown: list[Json] = []

    def look() -> None:
        if world.proposed:
            shown.append(world.job(job["job_id"])["progress"])

    world.before = look
    assert world.work() == []
    assert {each["unit"] for each in shown} == {"record"}
    assert {each["total"] for each in shown} == {8}
    assert all(4 <= each["completed"] <= 8 for each in shown)


@pytest.mark.parametrize("kind", ["GEPA", "METAPROMPT"])
def test_a_prompt_that_is_not_better_is_not_registered(world: OptimizationWorld, kind: str) -> None:
    world.proposals = ["Tell me of {{ question }}"]
    job = world.optimized(world.body(kind, max_metric_calls=20))
    assert job["state"]["status"] == "JOB_STATUS_COMPLETED"
    assert "optimized_prompt_uri" not in job
    assert job["final_eval_scores"]["aggregate"] == 0.0
    assert len(world.versions()) == 1
    assert world.run(job["run_id"])["info"]["status"] == "FINISHED"


def test_without_data_the_prompt_alone_is_improved(world: OptimizationWorld) -> None:
    body = world.body("METAPROMPT", guidelines="For children.", lm_kwargs={"temperature": 0.5})
    body["config"] |= {"dataset_id": "", "scorers": []}
    job = world.optimized(body)
    assert job["optimized_prompt_uri"] == "prompts:/qa/2"
    assert "final_eval_scores" not in job
    [chat] = world.model.asked
    assert chat["temperature"] == 0.5
    assert "For children." in chat["messages"][0]["content"]
    assert POOR in chat["messages"][1]["content"]


def test_a_chat_prompt(world: OptimizationWorld) -> None:
    text = json.dumps([{"role": "user", "content": POOR}])
    world.prompt("chat", text, _mlflow_prompt_type="chat")
    world.proposals = [{"messages": [{"role": "user", "content": GOOD}]}]
    job = world.optimized({**world.body("METAPROMPT"), "source_prompt_uri": "prompts:/chat@latest"})
    assert job["optimized_prompt_uri"] == "prompts:/chat/2"
    tags = {tag["key"]: tag["value"] for tag in world.versions("chat")[1]["tags"]}
    assert json.loads(tags["mlflow.prompt.text"]) == [{"role": "user", "content": GOOD}]
    assert tags["_mlflow_prompt_type"] == "chat"


@pytest.mark.parametrize(
    ("proposed", "reason"),
    [
        ("Answer briefly.", "lacks ['question']"),
        ("Answer {{ question }} for {{ reader }}", "new names in double braces: ['reader']"),
        ("{% if x %}{{ question }}{% endif %}", "statements in {% %}"),
        ({"text": "?"}, 'lacks the field "prompt"'),
    ],
)
def test_a_proposal_that_cannot_be_used(
    world: OptimizationWorld, proposed: Any, reason: str
) -> None:
    """It is asked for once more with the reason."""
    world.proposals = [proposed, GOOD]
    job = world.optimized(world.body("METAPROMPT"))
    assert job["optimized_prompt_uri"] == "prompts:/qa/2"
    world.proposals = [proposed]
    job = world.optimized(world.body("METAPROMPT"))
    assert job["state"]["status"] == "JOB_STATUS_FAILED"
    assert reason in job["state"]["error_message"]
    assert world.run(job["run_id"])["info"]["status"] == "FAILED"
    assert len(world.versions()) == 2


def test_values_with_braces_stay_what_they_are(world: OptimizationWorld) -> None:
    """Records may contain template code; it is neither filled nor run."""
    hostile = "{{ secret }} {% for x in y %}{{ question }} {0} %s"
    dataset = new_dataset(experiment_ids=[world.experiment])
    record = {"inputs": {"question": hostile, "secret": "s"}, "outputs": "{{ question }}"}
    assert upsert(dataset, record).status == 200
    body = world.body("METAPROMPT")
    body["config"]["dataset_id"] = dataset
    job = world.optimized(body)
    assert job["state"]["status"] == "JOB_STATUS_COMPLETED"
    assert world.predicted[0] == f"Say something about {hostile}"


def test_cancel_stops_a_job(world: OptimizationWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also between the last answer and the registration."""
    job = world.create(world.body("METAPROMPT"))
    monkeypatch.setattr(job_execution, "HEARTBEAT_MS", -1)

    def cancel() -> None:
        world.before = lambda: None
        answer = ask("POST", f"/{job['job_id']}/cancel")
        assert (answer.status, answer.body["job"]["state"]["status"]) == (
            200,
            "JOB_STATUS_CANCELED",
        )

    world.before = cancel
    assert world.work() == []
    assert len(world.model.asked) <= 8
    done = world.get(job["job_id"])
    assert done["state"] == {"status": "JOB_STATUS_CANCELED"}
    assert world.run(job["run_id"])["info"]["status"] == "KILLED"
    again = ask("POST", f"/{job['job_id']}/cancel")
    assert (again.status, again.body["message"]) == (
        400,
        f"The Job {job['job_id']} is already finalized with status: CANCELED, it can't be updated.",
    )


def test_a_job_cancelled_at_the_last_moment_registers_nothing(
    world: OptimizationWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = world.create(world.body("METAPROMPT"))
    real = job_execution.JobExecution.summarize_beside

    def cancelled(work: Any, commit: Any) -> Any:
        def late(storing: Any) -> None:
            assert ask("POST", f"/{job['job_id']}/cancel").status == 200
            commit(storing)

        return real(work, late)

    monkeypatch.setattr(job_execution.JobExecution, "summarize_beside", cancelled)
    assert world.work() == []
    assert len(world.versions()) == 1
    assert world.get(job["job_id"])["state"] == {"status": "JOB_STATUS_CANCELED"}
    assert world.run(job["run_id"])["info"]["status"] == "KILLED"


def test_a_deleted_job(world: OptimizationWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    job = world.create(world.body())
    trace_id = "tr-judged"
    assessment = {
        "assessment_name": "n",
        "source": {"source_type": "CODE", "source_id": "c"},
        "feedback": {"value": 1},
        "metadata": {"mlflow.assessment.sourceRunId": job["run_id"]},
    }
    judged = start(world.experiment, trace_id, assessments=[assessment])
    tell("POST", "3.0/traces", judged)
    assert ask("DELETE", f"/{job['job_id']}").body == {}
    assert "assessments" not in info(trace_id)
    for method, path in (("GET", ""), ("DELETE", ""), ("POST", "/cancel")):
        answer = ask(method, f"/{job['job_id']}{path}")
        assert (answer.status, answer.body["error_code"]) == (404, "RESOURCE_DOES_NOT_EXIST")
        assert answer.body["message"] == f"Job with ID {job['job_id']} not found"
    assert world.run(job["run_id"])["info"]["lifecycle_stage"] == "deleted"
    now = ids.now_ms()
    monkeypatch.setattr(ids, "now_ms", lambda: now + 41_000)
    assert world.work() == []
    assert world.model.asked == []


def test_time_is_limited(world: OptimizationWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    job = world.create(world.body())
    now = ids.now_ms()
    monkeypatch.setattr(ids, "now_ms", lambda: now + 3_600_001)
    assert world.get(job["job_id"])["state"]["status"] == "JOB_STATUS_FAILED"
    assert world.work() == []
    assert world.run(job["run_id"])["info"]["status"] == "FAILED"
    assert world.model.asked == []


def test_jobs_of_an_experiment(world: OptimizationWorld) -> None:
    made = [world.create(world.body()), world.create(world.body("METAPROMPT"))]
    other = world.api.new_experiment("other")
    world.create({**world.body(), "experiment_id": other})
    for answer in (
        ask("GET", "/search", experiment_id=world.experiment),
        ask("POST", "/search", {"experiment_id": world.experiment}),
    ):
        assert answer.body == {"jobs": made}
    assert ask("GET", "/search", experiment_id="none").body == {}


def test_a_queue_that_takes_nothing(world: OptimizationWorld) -> None:
    """Nothing is left, so a client may repeat the request."""
    world.queue.broken = True
    answer = ask("POST", "", world.body())
    assert (answer.status, answer.headers["retry-after"]) == (429, "1")
    assert list(jobs.of_workspace("default")) == []
    assert world.api.post("runs/search", experiment_ids=[world.experiment]) == {}


def test_models_that_fail(world: OptimizationWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """A provider that refuses a chat gives a bad answer; one that refuses every chat ends the
    job."""
    monkeypatch.setattr("judge_runner.call_journal.time.sleep", lambda _seconds: None)
    for status, ends in ((400, "JOB_STATUS_COMPLETED"), (403, "JOB_STATUS_FAILED")):

        def refuse(status: int = status) -> None:
            if world.model.asked[-1]["messages"][0]["content"].startswith("Say"):
                raise GatewayCallFailed(status, "Refused.")

        world.before = refuse
        job = world.optimized(world.body("METAPROMPT"))
        assert job["state"]["status"] == ends
    assert job["state"]["error_message"] == "Refused."
