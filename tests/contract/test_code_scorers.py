"""Jobs of scorers that are code: which run, what they write, and which are refused.

``tests/cage`` tests what such code can do; here it runs in the same cage."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any

import pytest

from judge_runner import code_scoring, online_scoring
from mlcore import ids
from mlcore.entities.evaluation.code_scorers import CodeScorer
from mlcore.repos.evaluation import jobs
from mlcore.responses.evaluation import jobs as responses
from mlcore.scorer_cage import cage, remote_cage
from mlcore.scorer_cage.answers import ScorerFeedback
from mlcore.scorer_cage.cage import CageLimits, CageUnavailable, Judgement
from tests.contract import trace_calls
from tests.contract.code_scorer_calls import FLAG, code, refused, register
from tests.contract.conftest import Store
from tests.contract.judges_world import Context, World, ask, assessments

Json = dict[str, Any]
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has cages")


@pytest.fixture
def world(store: Store, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setenv(FLAG, "true")
    return World(store.api, monkeypatch)


def test_writes_what_the_code_returns_and_what_it_took(world: World) -> None:
    trace = world.trace({"question": "Why?"}, "So.")
    data = code("return Feedback(value=len(outputs), rationale=inputs['question'])")
    version = register(world, data)
    job = world.done(data, [trace], scorer_name="quality", scorer_version=version)
    assert job["status"] == "SUCCEEDED", job
    [written] = assessments(trace)
    assert job["result"][trace] == {"assessments": [written], "failures": []}
    assert (written["feedback"], written["rationale"]) == ({"value": 3.0}, "Why?")
    assert written["source"] == {"source_type": "CODE", "source_id": "default"}
    metadata = written["metadata"]
    assert metadata.pop("mlflow.assessment.scorerDigest").startswith("sha256:")
    assert int(metadata.pop("scorer_wall_ms")) >= 0
    assert int(metadata.pop("scorer_cpu_ms")) > 0
    assert metadata.pop("scorer_cost_usd") == "0"
    assert job["status_details"] == {"cost_usd": 0.0}, "AWS is not asked"
    assert metadata == {
        "mlflow.assessment.scorerName": "quality",
        "mlflow.assessment.scorerVersion": "1",
    }
    assert world.model.asked == [], "no model is asked"


def test_a_repeated_job_runs_no_code_again(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[Mapping[str, Any]] = []
    before = cage.judge

    def counted(
        scorer: Mapping[str, Any], call: Mapping[str, Any], limits: CageLimits
    ) -> Judgement:
        ran.append(call)
        return before(scorer, call, limits)

    monkeypatch.setattr(cage, "judge", counted)
    trace = world.trace("q", "a")
    world.invoke(code("return True"), [trace])
    [message] = world.queue.waiting
    assert world.work() == []
    world.queue.waiting.append(message)
    assert world.work() == []
    assert len(ran) == len(assessments(trace)) == 1


def test_an_error_of_the_code_belongs_to_its_trace(world: World) -> None:
    good, bad = world.trace("q", "a"), world.trace("q", "wrong")
    data = code("if outputs == 'wrong':\n    raise ValueError('No.')\nreturn True")
    job = world.done(data, [good, bad])
    assert job["status"] == "SUCCEEDED"
    assert job["result"][bad]["failures"] == [
        {"error_code": "SCORER_ERROR", "error_message": "No."}
    ]
    [failed] = assessments(bad)
    error = failed["feedback"]["error"]
    assert error["stack_trace"].splitlines()[1:] == [
        '  File "<scorer>", line 3, in quality',
        "ValueError: No.",
    ]
    assert assessments(good)[0]["feedback"] == {"value": True}


def test_a_scorers_own_timeout_holds(world: World) -> None:
    trace = world.trace("q", "a")
    job = world.done(code("while True: pass", timeout=1.5), [trace])
    [failure] = job["result"][trace]["failures"]
    assert failure["error_message"] == "The scorer timed out after 1.5 seconds."
    assert int(assessments(trace)[0]["metadata"]["scorer_wall_ms"]) >= 1500


def test_a_judgement_that_was_cut_short_is_begun_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The runner's call had less time left than the scorer may take."""
    monkeypatch.setattr(code_scoring, "RESERVED_SECONDS", 44.5)
    trace = world.trace("q", "a")
    (job_id,) = world.invoke(code("while True: pass", timeout=2.5), [trace])
    world.work(milliseconds=45_700)
    assert world.job(job_id)["status"] == "PENDING"
    assert assessments(trace) == []
    assert len(world.queue.waiting) == 1
    world.work()
    [failure] = world.job(job_id)["result"][trace]["failures"]
    assert failure["error_message"] == "The scorer timed out after 2.5 seconds."


def test_a_judgement_begins_only_with_its_whole_time(world: World) -> None:
    """The runner's call could give it when it began, and another call can."""

    class Falling(Context):
        def get_remaining_time_in_millis(self) -> int:
            self._left = max(60_000, self._left - 200_000)
            return self._left

    trace = world.trace("q", "a")
    (job_id,) = world.invoke(code("return True"), [trace])
    world.work(context=Falling(800_000))
    assert (world.job(job_id)["status"], assessments(trace)) == ("PENDING", [])
    world.work()
    assert world.job(job_id)["status"] == "SUCCEEDED"


def test_a_job_waits_while_too_many_functions_run(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However often that happens, it is no failed attempt. The pauses become longer."""

    def throttled(*_: Any) -> Judgement:
        raise remote_cage.Throttled

    trace = world.trace("q", "a")
    (job_id,) = world.invoke(code("return True"), [trace])
    with monkeypatch.context() as busy:
        busy.setattr(code_scoring, "_run", throttled)
        for seconds in (30, 60, 120, 240, 300, 300):
            assert world.work() == []
            job = world.job(job_id)
            assert job["status"] == "PENDING"
            assert "Lambda" in job["status_details"]["stage"]
            assert [put.delay_seconds for put in world.queue.waiting] == [seconds]
    with monkeypatch.context() as late:
        late.setattr(ids, "now_ms", lambda: job["creation_time"] + 2 * 24 * 3_600_000)
        timed_out = world.job(job_id)
    assert timed_out["status"] == "TIMEOUT"
    assert "concurrent" in timed_out["error_message"]
    world.work()
    job = world.job(job_id)
    assert job["status"] == "SUCCEEDED"
    assert "stage" not in job["status_details"]


def test_the_pauses_become_short_again_after_a_judgement(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = code_scoring._run
    traces = [world.trace("q", "a") for _ in range(3)]
    world.invoke(code("return True"), traces)
    judged: list[bool] = []

    def one_at_a_time(*arguments: Any) -> Judgement:
        if judged:
            raise remote_cage.Throttled
        judged.append(True)
        return run(*arguments)

    monkeypatch.setattr(code_scoring, "_run", one_at_a_time)
    for _ in range(2):
        judged.clear()
        world.work()
        assert [put.delay_seconds for put in world.queue.waiting] == [30]


@pytest.mark.parametrize(
    ("timeout", "seconds"), [(None, 300), (0, 300), (90, 90), (300, 300), (3600, 300)]
)
def test_the_lease_lasts_as_long_as_a_judgement_may(
    world: World, monkeypatch: pytest.MonkeyPatch, timeout: float | None, seconds: float
) -> None:
    """MLflow's default is 300 seconds. Meanwhile no other worker takes the job over."""
    seen: list[tuple[float, int]] = []

    def judged(scorer: Mapping[str, Any], call: Mapping[str, Any], limits: CageLimits) -> Judgement:
        job = jobs.find("default", job_id)
        assert job is not None
        assert job.lease_until is not None
        seen.append((limits.seconds, job.lease_until - ids.now_ms()))
        return Judgement((), None, 1, 1)

    monkeypatch.setattr(cage, "judge", judged)
    (job_id,) = world.invoke(code("return True", timeout=timeout), [world.trace("q", "a")])
    assert world.work() == []
    [(given, lease_ms)] = seen
    assert given == seconds
    assert lease_ms >= max(seconds + 30, 150) * 1000


def test_what_judgements_cost_in_aws_is_told_and_expected(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def judged(_scorer: CodeScorer, _call: Mapping[str, Any], _seconds: float) -> Judgement:
        claim = {"scorer_cost_usd": "9", "own": "text"}
        feedback = tuple(ScorerFeedback(name, 1, None, claim, "q", None) for name in ("q", "r"))
        return Judgement(feedback, None, 7, 5, 0.0000125)

    monkeypatch.setattr(code_scoring, "_run", judged)
    traces = [world.trace("q", "a") for _ in range(4)]
    (job_id,) = world.invoke(code("return True"), traces)
    assert world.work() == []
    assert world.job(job_id)["status_details"] == {"cost_usd": pytest.approx(0.00005)}
    prices = [each["metadata"].get("scorer_cost_usd") for each in assessments(traces[0])]
    assert sorted(prices, key=str) == ["0.000012500", None], "the price of the judgement, once"
    assert [each["metadata"]["own"] for each in assessments(traces[0])] == ["text", "text"]
    stored = jobs.find("default", job_id)
    assert stored is not None
    half = stored._replace(status="RUNNING", completed=2, dollars=0.000025)
    assert responses.job(half)["status_details"]["expected_cost_usd"] == pytest.approx(0.00005)


def test_a_session_is_judged_as_a_whole(world: World) -> None:
    traces = [world.trace("q", f"a{number}", "s-1") for number in range(3)]
    alone = world.trace("q", "a")
    data = code(
        "return ' '.join(trace.data.spans[0].outputs for trace in session)",
        "(session)",
        is_session_level_scorer=True,
    )
    world.done(data, [*traces, alone])
    [written] = assessments(traces[0])
    assert written["feedback"] == {"value": "a0 a1 a2"}
    assert written["metadata"]["mlflow.trace.session"] == "s-1"
    assert assessments(alone) == assessments(traces[1]) == []


def test_a_system_without_a_cage_runs_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(*_: Any) -> Judgement:
        raise CageUnavailable("This system cannot lock up a process for a scorer's code (none).")

    monkeypatch.setattr(cage, "judge", missing)
    trace = world.trace("q", "a")
    job = world.done(code("return True"), [trace])
    assert job["status"] == "FAILED"
    assert "cannot lock up a process" in str(job)
    assert assessments(trace) == []


def test_a_replaced_version_is_not_run_under_its_number(world: World) -> None:
    """The number of a deleted version is given again; a job keeps to the source that it was
    submitted with, or fails."""
    trace = world.trace("q", "a")
    first = code("return 'first'")
    version = register(world, first)
    (job_id,) = world.invoke(first, [trace], scorer_name="quality", scorer_version=version)
    body = {"experiment_id": world.experiment, "name": "quality"}
    assert ask("DELETE", "mlflow/scorers/delete", body).status == 200
    assert register(world, code("return 'second'")) == version
    assert world.work() == []
    job = world.job(job_id)
    assert job["status"] == "FAILED"
    assert "deleted or replaced" in str(job)
    assert assessments(trace) == []


def test_the_registered_source_runs_and_not_the_one_in_the_request(world: World) -> None:
    trace = world.trace("q", "a")
    version = register(world, code("return 'registered'"))
    forged = code("return 'forged'")
    world.done(forged, [trace], scorer_name="quality", scorer_version=version)
    assert assessments(trace)[0]["feedback"] == {"value": "registered"}


def test_an_evaluation_with_a_scorer_whose_text_has_another_name(world: World) -> None:
    """It is found under the name under which it is registered."""
    trace = world.trace("q", "a")
    version = register(world, code("return True"), "registered")
    body = {
        "experiment_id": world.experiment,
        "trace_ids": [trace],
        "serialized_scorers": [json.dumps({"name": "registered"})],
        "scorer_versions": [version],
    }
    asked = ask("POST", "mlflow/genai/evaluate/invoke", body).body
    assert world.work() == []
    assert world.job(asked["job_id"])["status"] == "SUCCEEDED"
    assert [each["assessment_name"] for each in assessments(trace)] == ["quality"]


def test_code_is_refused_unless_the_operator_allows_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = world.trace("q", "a")
    version = register(world, code("return True"))
    (job_id,) = world.invoke(code("return True"), [trace])
    monkeypatch.setenv(FLAG, "false")
    assert "disabled by default" in refused(world, code("return True"), trace)
    named = {"scorer_name": "quality", "scorer_version": version}
    assert "disabled by default" in refused(world, {"name": "quality"}, trace, **named)
    world.work()
    assert world.job(job_id)["status"] == "FAILED", "submitted while it was allowed"
    assert assessments(trace) == []


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"call_source": " \n"}, "has no source code"),
        ({"call_source": 7}, "'call_source' must be a text"),
        ({"call_signature": None}, "'call_signature' must be a text"),
        ({"call_signature": ["(outputs)"]}, "'call_signature' must be a text"),
        ({"original_func_name": "a; import os"}, "name of a function"),
        ({"original_func_name": ""}, "'original_func_name' must be a text"),
        ({"timeout": "1"}, "'timeout' must be a number"),
        ({"timeout": True}, "'timeout' must be a number"),
        ({"timeout": -1}, "'timeout' must not be negative"),
        ({"timeout": float("inf")}, "'timeout' must not be negative"),
        ({"aggregations": "mean"}, "aggregations must be a list"),
        ({"name": None}, "'name' must be a text"),
    ],
)
def test_malformed_code_scorers_are_refused(world: World, fields: Json, message: str) -> None:
    assert message in refused(world, code("return 1", **fields), world.trace("q", "a"))


@pytest.mark.parametrize(
    ("source", "signature", "message"),
    [
        ("return (", "(outputs)", "Failed to recreate function"),
        ("return 1", "outputs", "Invalid signature format"),
        ("return 1", "(outputs): pass\nimport os\ndef f(", "Invalid signature format"),
        ("return 1", "(outputs, )):\n  pass\ndef g((", "Invalid signature format"),
        ("return \x00", "(outputs)", "Failed to recreate function"),
    ],
)
def test_source_that_is_no_function_fails_in_the_cage(
    world: World, source: str, signature: str, message: str
) -> None:
    trace = world.trace("q", "a")
    job = world.done(code(source, signature), [trace])
    [failure] = job["result"][trace]["failures"]
    assert message in failure["error_message"]


def test_new_traces_are_scored_by_code_automatically(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(online_scoring.BUFFER_SECONDS, "0")
    monkeypatch.setattr(trace_calls, "START", (ids.now_ms() + 30_000) * 1_000_000)
    register(world, code("return outputs == 'a'"))
    config = {"experiment_id": world.experiment, "name": "quality", "sample_rate": 1.0}
    assert ask("PUT", "mlflow/scorers/online-config", config).status == 200
    trace = world.trace("q", "a")
    monkeypatch.setattr(ids, "now_ms", lambda: int(trace_calls.START / 1_000_000) + 60_000)
    online_scoring.sweep(lambda: 600_000)
    world.work()
    [written] = assessments(trace)
    assert written["feedback"] == {"value": True}
    monkeypatch.setenv(FLAG, "false")
    later = world.trace("q", "b")
    online_scoring.sweep(lambda: 600_000)
    world.work()
    assert assessments(later) == []


@pytest.mark.parametrize(
    ("flag", "signature", "message"),
    [
        ("true", "(outputs, expectations)", "requires expectations"),
        ("true", "(*, outputs: str, expectations: dict[str, str] | None = None)", "expectations"),
        ("false", "(outputs)", "does not use a gateway model"),
    ],
)
def test_automatic_scoring_is_refused_as_by_mlflows_server(
    world: World, monkeypatch: pytest.MonkeyPatch, flag: str, signature: str, message: str
) -> None:
    register(world, code("return True", signature))
    monkeypatch.setenv(FLAG, flag)
    config = {"experiment_id": world.experiment, "name": "quality", "sample_rate": 1.0}
    answer = ask("PUT", "mlflow/scorers/online-config", config)
    assert answer.status == 400
    assert message in answer.body["message"]
