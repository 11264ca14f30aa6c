"""Jobs of judges on the real engine: done once, whatever dies, taken back, found."""

from __future__ import annotations

import json
from typing import Any

import pytest

import judge_runner.app
from judge_runner import job_execution
from mlcore import ids, queues
from mlcore.entities.evaluation.jobs import DEFAULT_SECONDS
from mlcore.errors import MlflowError, RequestLimitExceeded, TemporarilyUnavailable
from mlcore.repos.evaluation import jobs
from mlcore.repos.runs.core import endings
from operate import unfinished_jobs
from tests.contract import trace_calls
from tests.contract.conftest import Store
from tests.contract.judges_world import World, ask, assessments, builtin, judge

Json = dict[str, Any]
BOTH = "Is {{ outputs }} a fine answer to {{ inputs }}?"


@pytest.fixture
def world(store: Store, monkeypatch: pytest.MonkeyPatch) -> World:
    return World(store.api, monkeypatch)


def test_a_message_that_comes_twice_asks_once(world: World) -> None:
    traces = [world.trace("q", "a") for _ in range(3)]
    [job_id] = world.invoke(judge(BOTH), traces)
    world.queue.waiting *= 2
    assert world.work() == []
    assert len(world.model.asked) == 3
    assert world.job(job_id)["status"] == "SUCCEEDED"


def test_unfinished_jobs_go_on_after_a_restore(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    """The restored table has the jobs, but the new queue lacks their messages."""
    yes = judge("Is {{ outputs }} right?")
    done = world.done(yes, [world.trace("q", "a")])
    (job_id,) = world.invoke(yes, [world.trace("q", "a")])
    world.queue.waiting.clear()
    world.queue.broken = True
    assert unfinished_jobs.run("https://queue/new") == 1
    world.queue.broken = False
    for expected in (1, 1, 0):
        capsys.readouterr()
        assert unfinished_jobs.run("https://queue/new") == 0
        assert f"of {expected} unfinished jobs" in capsys.readouterr().out
        if len(world.queue.waiting) == 2:
            assert world.work() == []
    assert done["status"] == world.job(job_id)["status"] == "SUCCEEDED"
    assert len(world.model.asked) == 2


def test_a_queue_that_takes_nothing(world: World) -> None:
    """Nothing is left, so a client may repeat the request."""
    trace = world.trace("q", "a")
    single = {"serialized_scorer": json.dumps(judge(BOTH)), "log_assessments": True}
    evaluation = {"serialized_scorers": [json.dumps(judge(BOTH))]}
    world.queue.broken = True
    for path, fields in (("scorer/invoke", single), ("genai/evaluate/invoke", evaluation)):
        body = {"experiment_id": world.experiment, "trace_ids": [trace], **fields}
        answer = ask("POST", f"mlflow/{path}", body)
        assert (answer.status, answer.body["error_code"]) == (429, "REQUEST_LIMIT_EXCEEDED")
        assert answer.headers["retry-after"] == "1"
    assert list(jobs.of_workspace("default")) == []
    assert world.api.post("runs/search", experiment_ids=[world.experiment]) == {}
    world.queue.broken = False
    assert world.done(judge(BOTH), [trace])["status"] == "SUCCEEDED"
    assert len(list(jobs.of_workspace("default"))) == 1


def test_an_answer_of_the_queue_that_is_lost(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The queue has the message, and the client is told to repeat the request: one job is made."""
    trace = world.trace("q", "a")
    send = world.queue.send

    def sends_unheard(url: str, messages: Any) -> None:
        send(url, messages)
        raise TemporarilyUnavailable("The queue cannot be reached.")

    body = {
        "experiment_id": world.experiment,
        "trace_ids": [trace],
        "serialized_scorers": [json.dumps(judge(BOTH))],
    }
    with monkeypatch.context() as patch:
        patch.setattr(queues, "send", sends_unheard)
        assert ask("POST", "mlflow/genai/evaluate/invoke", body).status == 429
    assert len(world.work()) == 1, "the job may be stored in a moment"
    assert ask("POST", "mlflow/genai/evaluate/invoke", body).status == 200
    now = ids.now_ms()
    monkeypatch.setattr(ids, "now_ms", lambda: now + 60_000)
    assert world.work() == [], "the message of a job that nobody has stored is dropped"
    [job] = jobs.of_workspace("default")
    assert job.status == "SUCCEEDED"
    page = world.api.post("runs/search", experiment_ids=[world.experiment])
    assert [run["info"]["status"] for run in page["runs"]] == ["FINISHED"]


def test_a_job_goes_on_where_it_was_cut(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its worker dies after one trace, says nothing any more, and its message comes again."""
    monkeypatch.setattr(judge_runner.trace_scoring, "PARALLEL_CALLS", 1)
    traces = [world.trace("q", "a") for _ in range(3)]
    [job_id] = world.invoke(judge(BOTH), traces)
    [message] = world.queue.waiting

    class Killed(BaseException):
        pass

    def dying(_chat: Json) -> Any:
        if len(world.model.asked) == 2:
            raise Killed
        return {"result": "yes", "rationale": ""}

    world.model.said = dying
    with pytest.raises(Killed):
        world.work()
    world.queue.waiting = [message]
    assert len(world.work()) == 1, "somebody may still be at it"
    assert world.queue.postponed[-1] > 0
    now = ids.now_ms()
    monkeypatch.setattr(ids, "now_ms", lambda: now + job_execution.LEASE_MS + 1)
    assert world.work() == []
    job = world.job(job_id)
    assert (job["status"], job["retry_count"]) == ("SUCCEEDED", 1)
    assert all(len(assessments(trace)) == 1 for trace in traces)
    # The trace whose model was being asked is asked again, the one before is not.
    assert len(world.model.asked) == 4


def test_a_job_that_needs_longer_than_a_call_goes_on_in_another(world: World) -> None:
    traces = [world.trace("q", "a") for _ in range(2)]
    [job_id] = world.invoke(judge(BOTH), traces)
    assert world.work(milliseconds=1000) == []
    assert (world.job(job_id)["status"], len(world.queue.waiting)) == ("PENDING", 1)
    assert world.work() == []
    assert world.job(job_id)["status"] == "SUCCEEDED"


def test_a_job_is_taken_back(world: World) -> None:
    trace = world.trace("q", "a")
    [job_id] = world.invoke(judge(BOTH), [trace])
    answer = ask("PATCH", f"jobs/cancel/{job_id}")
    assert (answer.status, answer.body["status"]) == (200, "CANCELED")
    again = ask("PATCH", f"mlflow/jobs/cancel/{job_id}")
    assert (again.status, again.body["message"]) == (
        400,
        f"The Job {job_id} is already finalized with status: CANCELED, it can't be updated.",
    )
    assert world.work() == []
    assert world.model.asked == []
    assert ask("GET", f"mlflow/jobs/{job_id}").body == {
        "status": "CANCELED",
        "result": None,
        "error_message": None,
        "status_details": None,
        "status_message": None,
        "progress": None,
        "progress_updated_at": None,
    }


def test_a_job_that_is_taken_back_in_work_stops(world: World) -> None:
    trace = world.trace("q", "a")
    [job_id] = world.invoke(judge(BOTH), [trace])

    def cancelling(_chat: Json) -> Any:
        assert ask("PATCH", f"jobs/cancel/{job_id}").status == 200
        return {"result": "yes", "rationale": ""}

    world.model.said = cancelling
    assert world.work() == []
    assert world.job(job_id)["status"] == "CANCELED"


def test_a_job_whose_time_is_over_has_timed_out(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    [job_id] = world.invoke(judge(BOTH), [world.trace("q", "a")])
    later = ids.now_ms() + DEFAULT_SECONDS * 1000 + 1
    monkeypatch.setattr(ids, "now_ms", lambda: later)
    assert world.job(job_id)["status"] == "TIMEOUT", "also where nobody took it up"
    assert world.work() == []
    kept = jobs.find("default", job_id)
    assert kept is not None
    assert kept.status == "TIMEOUT"
    assert world.model.asked == []


def test_a_fault_of_ours_is_tried_again_and_told_at_last(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> Any:
        raise RuntimeError("a secret of ours")

    monkeypatch.setattr(judge_runner.trace_scoring, "load_traces", broken)
    [job_id] = world.invoke(judge(BOTH), [world.trace("q", "a")])
    assert len(world.work()) == len(world.work()) == 1
    assert world.job(job_id)["status"] == "PENDING"
    assert world.work() == []
    job = world.job(job_id)
    assert (job["status"], job["error_message"]) == ("FAILED", "The job failed unexpectedly.")


@pytest.mark.parametrize("passing", [RequestLimitExceeded, TemporarilyUnavailable])
def test_a_busy_table_does_not_end_a_job(
    world: World, monkeypatch: pytest.MonkeyPatch, passing: type[MlflowError]
) -> None:
    def busy(*_: Any) -> Any:
        raise passing("The trace is busy with other writes.")

    [job_id] = world.invoke(judge(BOTH), [world.trace("q", "a")])
    with monkeypatch.context() as patch:
        patch.setattr(judge_runner.trace_scoring, "load_traces", busy)
        assert len(world.work()) == 1
    assert world.job(job_id)["status"] == "PENDING"
    assert world.work() == []
    assert world.job(job_id)["status"] == "SUCCEEDED"


@pytest.mark.parametrize("passing", [RequestLimitExceeded, TemporarilyUnavailable])
@pytest.mark.parametrize("session", ["", "s"])
def test_a_table_that_fails_during_a_judgement_is_no_failure_of_the_judge(
    world: World, passing: type[MlflowError], session: str
) -> None:
    failures = iter([passing("The endpoint cannot be read.")])

    def fails_once(_chat: Json) -> Any:
        for failure in failures:
            raise failure
        return {"result": "yes"}

    world.model.said = fails_once
    trace = world.trace("q", "a", session)
    world.invoke(judge("Was {{ conversation }} polite?" if session else BOTH), [trace])
    assert (len(world.work()), assessments(trace), world.work()) == (1, [], [])
    assert [each.get("feedback", {}).get("error") for each in assessments(trace)] == [None]


def test_jobs_are_found_by_what_they_are(world: World) -> None:
    first = world.invoke(judge(BOTH), [world.trace("q", "a")])
    second = world.invoke(judge(BOTH, "other"), [world.trace("q", "a")], log_assessments=False)
    world.work()
    third = world.invoke(judge(BOTH), [world.trace("q", "a")])

    def job_ids(**wanted: Any) -> list[str]:
        return [job["job_id"] for job in ask("POST", "jobs/search", wanted).body["jobs"]]

    assert job_ids() == [*first, *second, *third]
    assert job_ids(statuses=["PENDING"]) == third
    assert job_ids(job_name="invoke_scorer", params={"log_assessments": False}) == second
    assert job_ids(job_name="none") == []


def test_the_two_ways_to_ask_for_jobs_refuse_in_two_shapes(world: World) -> None:
    for method, path in (("GET", "jobs/none"), ("PATCH", "jobs/cancel/none")):
        answer = ask(method, path)
        assert (answer.status, answer.body) == (404, {"detail": "Job with ID none not found"})
        mlflow_answer = ask(method, f"mlflow/{path}")
        assert (mlflow_answer.status, mlflow_answer.code) == (404, "RESOURCE_DOES_NOT_EXIST")
    [job_id] = world.invoke(judge(BOTH), [world.trace("q", "a")])
    world.work()
    again = ask("PATCH", f"jobs/cancel/{job_id}")
    detail = f"The Job {job_id} is already finalized with status: SUCCEEDED, it can't be updated."
    assert (again.status, again.body) == (400, {"detail": detail})
    searched = ask("POST", "jobs/search", {"job_name": 5, "statuses": ["x"] * 5000})
    assert searched.status == 422
    assert searched.body["detail"][0] == {
        "type": "string_type",
        "loc": ["body", "job_name"],
        "msg": "Input should be a valid string",
        "input": 5,
    }
    assert 100 < len(searched.body["detail"]) < 500  # what an answer has room for
    long = ask("POST", "jobs/search", {"job_name": ["x" * 200_000]})
    assert (long.status, long.body["detail"][0]["input"]) == (422, None)
    for depth in (100, 500, 900):
        nested = json.loads("[" * depth + "]" * depth)
        assert ask("POST", "jobs/search", {"job_name": nested}).status == 422


def test_a_run_of_evaluation_has_what_its_judges_come_to(world: World) -> None:
    numbers = iter([1, 2, 6])
    world.model.said = lambda chat: {
        "result": next(numbers) if "rate" in chat["messages"][0]["content"] else "no",
        "rationale": "",
    }
    traces = [world.trace("q", "a") for _ in range(3)]
    rated = judge("rate {{ outputs }}", "rating", feedback_value_type={"type": "integer"})
    rated["aggregations"] = ["mean", "max"]
    answer = ask(
        "POST",
        "mlflow/genai/evaluate/invoke",
        {
            "experiment_id": world.experiment,
            "trace_ids": traces,
            "serialized_scorers": [json.dumps(rated), json.dumps(builtin("Safety"))],
        },
    )
    assert answer.status == 200, answer
    run_id, job_id = answer.body["run_id"], answer.body["job_id"]
    run = world.api.get("runs/get", run_id=run_id)["run"]
    tags = {tag["key"]: tag["value"] for tag in run["data"]["tags"]}
    assert tags["mlflow.runType"] == "genai_evaluate"
    assert tags["mlflow.genaiEvaluate.jobId"] == job_id
    world.queue.waiting *= 2
    assert world.work() == []
    run = world.api.get("runs/get", run_id=run_id)["run"]
    assert run["info"]["status"] == "FINISHED"
    metrics = {metric["key"]: metric["value"] for metric in run["data"]["metrics"]}
    assert metrics == {"rating/mean": 3.0, "rating/max": 6.0, "safety/mean": 0.0}
    assert world.job(job_id)["result"] == {
        "run_id": run_id,
        "total_traces": 3,
        "scorer_count": 2,
    }
    for trace in traces:
        written = assessments(trace)
        assert len(written) == 2
        assert all(
            assessment["metadata"]["mlflow.assessment.sourceRunId"] == run_id
            for assessment in written
        )
    linked = trace_calls.tell(
        "POST",
        "3.0/traces/search",
        {
            "locations": [{"mlflow_experiment": {"experiment_id": world.experiment}}],
            "filter": f"run_id = '{run_id}'",
        },
    )
    assert len(linked["traces"]) == 3


def test_a_repeated_evaluation_logs_its_metrics_once(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker dies after it logged the metrics and before it ended the run. Somebody edits an
    assessment, and then another worker repeats the job."""

    class Killed(BaseException):
        pass

    def dying(*_: Any, **_named: Any) -> None:
        raise Killed

    trace = world.trace("q", "a")
    body = {
        "experiment_id": world.experiment,
        "trace_ids": [trace],
        "serialized_scorers": [json.dumps(builtin("Safety"))],
    }
    job = ask("POST", "mlflow/genai/evaluate/invoke", body).body
    messages = list(world.queue.waiting)
    with monkeypatch.context() as patch:
        patch.setattr(endings, "end", dying)
        with pytest.raises(Killed):
            world.work()
    [written] = assessments(trace)
    path = f"3.0/traces/{trace}/assessments/{written['assessment_id']}"
    edit = {"assessment_id": written["assessment_id"], "feedback": {"value": "no"}}
    trace_calls.tell("PATCH", path, {"assessment": edit, "update_mask": "feedback"})
    now = ids.now_ms()
    monkeypatch.setattr(ids, "now_ms", lambda: now + job_execution.LEASE_MS + 1)
    world.queue.waiting = messages
    assert world.work() == []
    assert world.job(job["job_id"])["status"] == "SUCCEEDED"
    [(time, step, value)] = world.api.history(job["run_id"], "safety/mean")
    assert time <= now
    assert (step, value) == (0, 1.0)
    run = world.api.get("runs/get", run_id=job["run_id"])["run"]
    assert run["info"]["status"] == "FINISHED"
    latest = [
        (metric["timestamp"], metric["step"], metric["value"]) for metric in run["data"]["metrics"]
    ]
    assert latest == [(time, step, value)]


def test_a_run_of_evaluation_ends_with_its_job(world: World) -> None:
    body = {
        "experiment_id": world.experiment,
        "trace_ids": [world.trace("q", "a")],
        "serialized_scorers": [json.dumps(judge(BOTH))],
    }
    cancelled = ask("POST", "mlflow/genai/evaluate/invoke", body).body
    ask("PATCH", f"jobs/cancel/{cancelled['job_id']}")
    failing = {**body, "serialized_scorers": [json.dumps(judge(BOTH, model="openai:/x"))]}
    failed = ask("POST", "mlflow/genai/evaluate/invoke", failing).body
    assert world.work() == []
    for job, status in ((cancelled, "KILLED"), (failed, "FAILED")):
        run = world.api.get("runs/get", run_id=job["run_id"])["run"]
        assert run["info"]["status"] == status
