"""Evaluations of many traces: in many calls of the function, with kills, taken back, and what they
cost."""

from __future__ import annotations

import json
import os
import random
import threading
from collections import Counter
from typing import Any

import pytest

import judge_runner.app
from judge_runner import job_execution
from mlcore import ids
from mlcore.db import keys
from mlcore.db.table import table
from mlcore.prices.model_call_cost import cost
from mlcore.repos.evaluation import jobs
from tests.contract import trace_calls
from tests.contract.conftest import Store
from tests.contract.judges_world import World, ask, assessments, judge

TRACES = int(os.environ.get("EVALUATED_TRACES", "240"))
JUDGE = judge("{{ inputs }} and {{ outputs }}", "rating", feedback_value_type={"type": "integer"})
OF_SESSIONS = judge("{{ conversation }}", "manners")
USAGE = {"prompt_tokens": 1_000, "completion_tokens": 50}


class Killed(BaseException):
    pass


class Clock:
    """Time that passes only where a test says so."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._now = ids.now_ms()
        self._lock = threading.Lock()
        patch.setattr(ids, "now_ms", self.now)

    def now(self) -> int:
        return self._now

    def pass_by(self, milliseconds: int) -> None:
        with self._lock:
            self._now += milliseconds


class Call:
    """What Lambda passes to a call whose time is over after some traces."""

    def __init__(self, traces: int) -> None:
        self._left = traces
        self._lock = threading.Lock()

    def get_remaining_time_in_millis(self) -> int:
        with self._lock:
            self._left -= 1
            return 600_000 if self._left > 0 else 0


@pytest.fixture
def world(store: Store, monkeypatch: pytest.MonkeyPatch) -> World:
    return World(store.api, monkeypatch)


def filled(world: World, count: int) -> list[str]:
    """Traces of sessions of four; the input of each is its number."""
    spans = []
    for number in range(count):
        question, session = f"question {number}", f"session {number // 4}"
        spans.append(
            trace_calls.span(
                f"{number + 1:032x}",
                1,
                start=number * 10,
                end=number * 10 + 5,
                mlflow__spanInputs=question,
                mlflow__spanOutputs="answer",
                session__id=session,
            )
        )
    for begin in range(0, count, 100):
        assert trace_calls.export(world.experiment, spans[begin : begin + 100]).status == 200
    return [f"tr-{number + 1:032x}" for number in range(count)]


def evaluate(world: World, traces: list[str], *judges: Any) -> tuple[str, str]:
    """The ids of the job and of its run."""
    body = {
        "experiment_id": world.experiment,
        "trace_ids": traces,
        "serialized_scorers": list(map(json.dumps, judges)),
    }
    answer = ask("POST", "mlflow/genai/evaluate/invoke", body)
    assert answer.status == 200, answer
    return answer.body["job_id"], answer.body["run_id"]


def priced(world: World, patch: pytest.MonkeyPatch) -> None:
    """Answers have a model whose price is known."""
    complete = world.model.complete

    def answer(*arguments: Any) -> Any:
        return {**complete(*arguments), "model": "gpt-4o", "provider": "openai", "usage": USAGE}

    patch.setattr(judge_runner.app, "_gateway_completion", lambda **_: answer)


def dollars(calls: int) -> float:
    usage = {"input_tokens": 1_000, "output_tokens": 50}
    known = cost("gpt-4o", usage, "openai")
    assert known is not None
    return calls * known["total_cost"]


def metrics_of(world: World, run_id: str) -> dict[str, float]:
    run = world.api.get("runs/get", run_id=run_id)["run"]
    assert run["info"]["status"] == "FINISHED"
    return {metric["key"]: metric["value"] for metric in run["data"]["metrics"]}


def test_many_calls_and_kills_judge_each_trace_once(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    priced(world, monkeypatch)
    clock, rng = Clock(monkeypatch), random.Random(7)
    traces = filled(world, TRACES)
    job_id, run_id = evaluate(world, traces, JUDGE, OF_SESSIONS)
    item = table.get(keys.job("default", job_id))
    assert item is not None
    assert sum(len(next(iter(value.values()))) for value in item.values() if "B" in value) < 390_000
    deaths = {rng.randrange(TRACES) for _ in range(3)}
    counter: Counter[str] = Counter()
    lock = threading.Lock()

    def answer(chat: Any) -> Any:
        text = json.dumps(chat["messages"])
        with lock:
            clock.pass_by(100)
            if "question" not in text.partition("conversation")[0]:
                counter["session"] += 1
                return {"result": "yes", "rationale": ""}
            number = int(text.partition("question ")[2].split(" ")[0].split("\\")[0].strip('"'))
            counter[str(number)] += 1
            if number in deaths:
                deaths.discard(number)
                raise Killed
        return {"result": number, "rationale": "It is its number."}

    world.model.said = answer
    done: list[int] = []
    calls = 0
    while world.queue.waiting:
        calls += 1
        assert calls < 60
        [message] = world.queue.waiting
        try:
            world.work(context=Call(max(8, TRACES // 6)))
        except Killed:
            # SQS delivers its message again, and the lease of the dead call ends.
            world.queue.waiting = [message._replace(receives=message.receives + 1)]
            clock.pass_by(job_execution.LEASE_MS + 1)
        job = world.job(job_id)
        assert job["timeout"] is None or job["timeout"] >= 3600
        progress = ask("GET", f"mlflow/jobs/{job_id}").body["progress"]
        if progress is not None:
            done.append(progress["completed"])
    assert calls >= 6
    assert done == sorted(done)
    assert world.job(job_id)["status"] == "SUCCEEDED"
    # Only what was being asked when a call died is asked again.
    repeated = sum(counter[str(number)] - 1 for number in range(TRACES))
    assert all(counter[str(number)] >= 1 for number in range(TRACES))
    assert repeated <= 3 * 8
    assert counter["session"] == TRACES // 4
    assert metrics_of(world, run_id) == {
        "rating/mean": (TRACES - 1) / 2,
        "manners/mean": 1.0,
    }
    for trace in rng.sample(traces, 12):
        is_first = traces.index(trace) % 4 == 0
        names = sorted(written["assessment_name"] for written in assessments(trace))
        assert names == (["manners", "rating"] if is_first else ["rating"])


def test_the_cost_is_told_and_foretold(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    priced(world, monkeypatch)
    monkeypatch.setattr(judge_runner.trace_scoring, "PARALLEL_CALLS", 1)
    traces = filled(world, 20)
    job_id, _ = evaluate(world, traces, JUDGE)
    assert world.job(job_id)["status_details"] is None, "nothing is known before the first answer"
    assert world.work(context=Call(8)) == []
    for path in (f"jobs/{job_id}", f"mlflow/jobs/{job_id}"):
        status_details = ask("GET", path).body["status_details"]
        assert status_details == {
            "cost_usd": pytest.approx(dollars(5)),
            "expected_cost_usd": pytest.approx(dollars(20)),
        }
    assert world.work() == []
    assert world.job(job_id)["status_details"] == {"cost_usd": pytest.approx(dollars(20))}


def test_a_large_evaluation_that_is_taken_back_spends_no_more(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    priced(world, monkeypatch)
    monkeypatch.setattr(judge_runner.trace_scoring, "PARALLEL_CALLS", 1)
    clock = Clock(monkeypatch)
    traces = filled(world, 30)
    job_id, run_id = evaluate(world, traces, JUDGE)

    def answer(_chat: Any) -> Any:
        if len(world.model.asked) == 10:
            assert ask("PATCH", f"jobs/cancel/{job_id}").status == 200
        clock.pass_by(job_execution.HEARTBEAT_MS + 1)
        return {"result": 1, "rationale": ""}

    world.model.said = answer
    assert world.work() == []
    assert len(world.model.asked) == 10
    job = world.job(job_id)
    assert (job["status"], job["status_details"]) == (
        "CANCELED",
        {"cost_usd": pytest.approx(dollars(9))},
    )
    assert world.api.get("runs/get", run_id=run_id)["run"]["info"]["status"] == "KILLED"


def test_large_jobs_are_found_as_long_as_they_fit_into_an_answer(world: World) -> None:
    """API Gateway takes no answer above 6 MB, and a client that does not uncompress needs one."""
    traces = [f"tr-{number:032x}" for number in random.Random(2).sample(range(9**9), 10_000)]
    made = [evaluate(world, traces, JUDGE)[0] for _ in range(14)]
    answer = ask("POST", "jobs/search", {"job_name": "invoke_genai_evaluate"})
    assert answer.status == 200
    shown = [job["job_id"] for job in answer.body["jobs"]]
    assert shown == made[-len(shown) :]
    assert len(shown) == 10


def test_how_many_traces_an_evaluation_takes(world: World) -> None:
    def answer(count: int, judges: int = 1) -> Any:
        ids_of_traces = [
            f"tr-{number:032x}" for number in random.Random(1).sample(range(9**9), count)
        ]
        body = {
            "experiment_id": world.experiment,
            "trace_ids": ids_of_traces,
            "serialized_scorers": [json.dumps(JUDGE)] * judges,
        }
        return ask("POST", "mlflow/genai/evaluate/invoke", body)

    refused = answer(10_001)
    assert (refused.status, refused.body["message"]) == (
        400,
        "At most 10000 traces can be judged at once, got 10001.",
    )
    hours = {(10_000, 1): 5, (10_000, 9): 24, (2_000, 1): None, (2_001, 1): 2, (5, 1): None}
    for (count, judges), expected in hours.items():
        job = world.job(answer(count, judges).body["job_id"])
        assert job["timeout"] == (None if expected is None else expected * 3600.0)


def test_an_evaluation_too_large_to_be_kept(world: World) -> None:
    """No run is left behind."""
    trace = world.trace("q", "a")
    noise = random.Random(1).randbytes(500_000).hex()
    body = {
        "experiment_id": world.experiment,
        "trace_ids": [trace],
        "serialized_scorers": [json.dumps(judge("{{ inputs }} and {{ outputs }}" + noise))],
    }
    answer = ask("POST", "mlflow/genai/evaluate/invoke", body)
    assert (answer.status, answer.body["error_code"]) == (400, "INVALID_PARAMETER_VALUE")
    assert world.api.post("runs/search", experiment_ids=[world.experiment]) == {}
    assert list(jobs.of_workspace("default")) == []
