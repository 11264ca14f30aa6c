"""The journal of a job's model calls on the real engine: a job whose calls depend on each other is
interrupted anywhere, and each call is made once."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import judge_runner.app
from judge_runner import job_execution
from judge_runner.call_journal import CallJournal
from judge_runner.job_execution import JobExecution
from judge_runner.structured_questions import StructuredQuestions
from mlcore import errors, ids, job_queue
from mlcore.job_queue import JobMessage
from mlcore.judges.judge_model import Complete
from mlcore.repos.evaluation import job_calls, jobs
from tests.contract.conftest import Store
from tests.contract.judges_world import World

Json = dict[str, Any]
NAME = "asks_in_steps"
SCHEMA = {"type": "object", "properties": {"next": {"type": "string"}}}


class Killed(BaseException):
    pass


def run_steps(work: JobExecution, complete: Complete) -> Json:
    """Asks five questions, each made from the answer to the one before; then three equal ones at
    once. Failures of the model are results, too."""
    questions = StructuredQuestions(work.job, "e", CallJournal(work, complete))

    def ask(text: str) -> str:
        try:
            return questions.ask("Say what comes next.", text, SCHEMA, lambda data: data["next"])
        except errors.GatewayCallFailed as error:
            return f"failed: {error.status}"

    steps = ["start"]
    for _ in range(5):
        steps.append(ask(steps[-1]))
    with ThreadPoolExecutor(3) as pool:
        equal = sorted(pool.map(ask, ["equal"] * 3))
    return {"steps": steps, "equal": equal}


@pytest.fixture
def world(store: Store, monkeypatch: pytest.MonkeyPatch) -> World:
    world = World(store.api, monkeypatch)
    runs = {**judge_runner.app._RUN_BY_JOB_NAME, NAME: run_steps}
    monkeypatch.setattr(judge_runner.app, "_RUN_BY_JOB_NAME", runs)
    monkeypatch.setattr(time, "sleep", lambda _seconds: None)
    world.model.said = lambda _chat: {"next": f"answer {len(world.model.asked)}"}
    return world


def submit() -> str:
    job = jobs.new("default", NAME, {}, 1)
    jobs.submit([job])
    return job.job_id


def result(job_id: str) -> Any:
    job = jobs.find("default", job_id)
    assert job is not None
    assert job.status == "SUCCEEDED", job
    return job.result


def restart(world: World, job_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets the dead execution's lease end, and delivers the job's message again."""
    later = ids.now_ms() + job_execution.LEASE_MS + 1
    monkeypatch.setattr(ids, "now_ms", lambda: later)
    world.queue.waiting = []
    job_queue.send(JobMessage("default", job_id))


@pytest.mark.parametrize("calls_before", range(1, 9))
def test_a_job_that_was_killed_after_a_call_makes_it_no_second_time(
    world: World, monkeypatch: pytest.MonkeyPatch, calls_before: int
) -> None:
    job_id = submit()
    put = job_calls.put
    stored: list[Any] = []

    def dying(*arguments: Any) -> Any:
        answer = put(*arguments)
        stored.append(answer)
        if len(stored) == calls_before:
            raise Killed
        return answer

    with monkeypatch.context() as patch:
        patch.setattr(job_calls, "put", dying)
        with pytest.raises(Killed):
            world.work()
    assert calls_before <= len(world.model.asked) <= 8
    restart(world, job_id, monkeypatch)
    assert world.work() == []
    assert len(world.model.asked) == 8
    steps = ["start", *(f"answer {number}" for number in range(1, 6))]
    answers = result(job_id)
    assert answers["steps"] == steps
    assert len(set(answers["equal"])) == 3, "equal requests have an answer each"


def test_a_job_that_needs_several_calls_of_the_function(world: World) -> None:
    job_id = submit()
    for done in range(1, 6):

        class Short:
            """Has time for one call of the model."""

            def get_remaining_time_in_millis(self, last: int = done) -> int:
                return 600_000 if len(world.model.asked) < last else 1_000

        assert world.work(context=Short()) == []
        assert len(world.model.asked) == done
    assert world.work() == []
    assert len(world.model.asked) == 8
    assert result(job_id)["steps"][-1] == "answer 5"


def test_failures_of_the_model_are_kept_after_further_attempts(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    statuses = iter([400, 503, 429, 429, 529, 500, 502])

    def failing(_chat: Json) -> Any:
        status = next(statuses, None)
        if status is None:
            raise Killed
        raise errors.GatewayCallFailed(status, "refused")

    world.model.said = failing
    job_id = submit()
    with pytest.raises(Killed):
        world.work()
    assert len(world.model.asked) == 8, "one for 400, three each for two steps that were busy"
    world.model.said = lambda _chat: {"next": "fine"}
    restart(world, job_id, monkeypatch)
    assert world.work() == []
    assert result(job_id)["steps"][:4] == ["start", "failed: 400", "failed: 429", "failed: 502"]
    assert result(job_id)["steps"][4:] == ["fine", "fine"]


@pytest.mark.parametrize("passing", [errors.RequestLimitExceeded, errors.TemporarilyUnavailable])
def test_a_busy_table_is_no_failure_of_the_model(
    world: World, passing: type[errors.MlflowError]
) -> None:
    def busy(_chat: Json) -> Any:
        raise passing("The endpoint cannot be read.")

    world.model.said = busy
    job_id = submit()
    assert len(world.work()) == 1, "the message comes again"
    world.model.said = lambda _chat: {"next": "fine"}
    assert world.work() == []
    assert result(job_id)["steps"][1:] == ["fine"] * 5


def test_a_long_wait_is_not_waited_for(world: World) -> None:
    def failing(_chat: Json) -> Any:
        raise errors.GatewayCallFailed(429, "The budget is spent.", "3600")

    world.model.said = failing
    job_id = submit()
    assert world.work() == []
    assert result(job_id)["steps"][1:] == ["failed: 429"] * 5
    assert len(world.model.asked) == 8


def test_an_answer_without_the_form_is_asked_for_once_more(world: World) -> None:
    answers = iter(["no JSON", {"next": "a"}, "[]", "```json\n[1]\n```"])
    world.model.said = lambda _chat: next(answers, {"next": "b"})
    job_id = submit()
    assert world.work() == []
    job = jobs.find("default", job_id)
    assert job is not None
    assert (job.status, job.error_message) == (
        "FAILED",
        "The model did not answer in the requested form: it is not a JSON object.",
    )
    assert len(world.model.asked) == 4


def test_what_an_execution_cost_that_died_is_not_lost(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    complete = world.model.complete

    def priced(*arguments: Any) -> Json:
        return {**complete(*arguments), "model": "gpt-4o", "provider": "openai"}

    monkeypatch.setattr(judge_runner.app, "_gateway_completion", lambda **_: priced)
    whole = submit()
    assert world.work() == []
    expected = jobs.find("default", whole)
    world.model.asked.clear()
    put = job_calls.put

    def dying(*arguments: Any) -> Any:
        put(*arguments)
        if len(world.model.asked) == 3:
            raise Killed
        return arguments[2]

    job_id = submit()
    with monkeypatch.context() as patch:
        patch.setattr(job_calls, "put", dying)
        with pytest.raises(Killed):
            world.work()
    restart(world, job_id, monkeypatch)
    assert world.work() == []
    job = jobs.find("default", job_id)
    assert job is not None
    assert expected is not None
    assert expected.dollars is not None
    assert job.dollars == pytest.approx(expected.dollars)


def test_two_executions_at_once_go_on_with_the_same_answer(world: World) -> None:
    job_id = submit()
    call = job_calls.CallId("d", 0)
    expiry = ids.now_ms() + 60_000
    assert job_calls.put(job_id, call, {"completion": "first"}, expiry) == {"completion": "first"}
    assert job_calls.put(job_id, call, {"completion": "second"}, expiry) == {"completion": "first"}
    [data] = job_calls.of_job(job_id).values()
    assert job_calls.unpacked(data) == {"completion": "first"}


def test_an_answer_that_no_item_holds_fails_the_call(world: World) -> None:
    world.model.said = lambda _chat: {
        "next": "".join(chr(0x4E00 + number * 7919 % 20_000) for number in range(300_000))
    }
    job_id = submit()
    assert world.work() == []
    assert result(job_id)["steps"][1] == "failed: 502"
