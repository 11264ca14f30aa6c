"""Judges that run on the server: what they are asked, what they write, and that they write it
once, whatever dies."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import evaluation.app
import judge_runner.app
from judge_runner import online, work
from mlcore import errors, ids
from mlcore.entities.evaluation.jobs import MOST_SECONDS
from mlcore.gateway import chats
from mlcore.repos.evaluation import jobs, online_scorers
from mlcore.repos.gateway import configuration
from tests.contract import gateway_world, trace_calls
from tests.contract.conftest import Store
from tests.contract.judges_world import Context, World, ask, assessments, builtin, judge
from tests.contract.sealing import seal_here
from tests.doubles import providers

Json = dict[str, Any]
BOTH = "Is {{ outputs }} a fine answer to {{ inputs }}?"


@pytest.fixture
def world(store: Store, monkeypatch: pytest.MonkeyPatch) -> World:
    return World(store.api, monkeypatch)


def test_a_judge_writes_what_mlflows_client_would(world: World) -> None:
    world.model.said = lambda _chat: {"result": True, "rationale": "Because."}
    trace = world.trace({"question": "Why?"}, "So.")
    data = judge(BOTH, feedback_value_type={"type": "boolean", "title": "Result"})
    job = world.done(data, [trace])
    assert (job["status"], job["job_name"]) == ("SUCCEEDED", "invoke_scorer")
    [told] = job["result"][trace]["assessments"]
    assert job["result"][trace]["failures"] == []
    assert assessments(trace) == [told]
    assert told["feedback"] == {"value": True}
    assert (told["assessment_name"], told["rationale"]) == ("quality", "Because.")
    assert told["source"] == {"source_type": "LLM_JUDGE", "source_id": "gateway:/e"}
    assert told["span_id"] == "0000000000000001"
    digest = told["metadata"].pop("mlflow.assessment.scorerDigest")
    assert digest.startswith("sha256:")
    assert told["metadata"] == {
        "mlflow.assessment.judgeInputTokens": "11",
        "mlflow.assessment.judgeOutputTokens": "7",
        "guideline": BOTH,
    }
    [chat] = world.model.asked
    assert (chat["endpoint"], chat["workspace"]) == ("e", "default")
    assert BOTH in chat["messages"][0]["content"]
    assert '"question": "Why?"' in world.model.shown()
    schema = chat["response_format"]["json_schema"]["schema"]
    assert schema["properties"]["result"]["type"] == "boolean"


def test_only_whoever_asks_for_it_has_assessments_written(world: World) -> None:
    trace = world.trace("q", "a")
    job = world.done(judge(BOTH), [trace], log_assessments=False)
    assert len(job["result"][trace]["assessments"]) == 1
    assert assessments(trace) == []


@pytest.mark.parametrize(
    ("said", "value"),
    [
        ('```json\n{"result": "good", "rationale": "r"}\n```', "good"),
        ('Sure!\n```json\n{"result": [1, 2], "rationale": "r"}\n```', [1.0, 2.0]),
        ('{"rationale": "a\nline", "result": {"a": 1}}', {"a": 1.0}),
    ],
)
def test_answers_may_be_wrapped(world: World, said: str, value: Any) -> None:
    world.model.said = lambda _chat: said
    job = world.done(judge(BOTH), [trace := world.trace("q", "a")])
    assert job["result"][trace]["assessments"][0]["feedback"]["value"] == value


def test_what_fails_is_told_of_each_trace(world: World) -> None:
    """A model that answers nonsense, or is not there, is no failure of the job's."""

    def said(chat: Json) -> Any:
        if "first" in chat["messages"][-1]["content"]:
            return "I would rather not."
        raise errors.GatewayCallFailed(429, "Too many requests.")

    world.model.said = said
    traces = [world.trace("first", "a"), world.trace("second", "a")]
    job = world.done(judge(BOTH), traces)
    assert job["status"] == "SUCCEEDED"
    failures = [job["result"][trace]["failures"] for trace in traces]
    why = "Failed to parse response from judge model. Response: I would rather not."
    gone = "Failed to invoke judge model: Too many requests."
    assert failures == [
        [{"error_code": "SCORER_ERROR", "error_message": why}],
        [{"error_code": "SCORER_ERROR", "error_message": gone}],
    ]
    [written] = assessments(traces[1])
    assert written["feedback"]["error"]["error_message"] == gone
    assert written["source"] == {"source_type": "CODE", "source_id": "quality"}


def test_a_model_that_knows_no_schemas_is_asked_without(world: World) -> None:
    def said(chat: Json) -> Any:
        if "response_format" in chat:
            raise errors.GatewayCallFailed(400, "response_format is not supported")
        return {"result": "yes", "rationale": ""}

    world.model.said = said
    traces = [world.trace("q", "a") for _ in range(2)]
    job = world.done(judge(BOTH), traces)
    assert all(not one["failures"] for one in job["result"].values())


def test_a_judge_without_a_key_fails_as_on_mlflows_server(world: World) -> None:
    job = world.done(judge(BOTH, model="openai:/gpt-4o"), [world.trace("q", "a")])
    assert (job["status"], job["result"]) == ("FAILED", job["error_message"])
    assert job["error_message"] == (
        "OPENAI_API_KEY environment variable must be set to use the openai provider."
    )


def test_expectations_are_those_of_people(world: World) -> None:
    trace = world.trace("q", "a")
    data = judge("Does {{ outputs }} meet {{ expectations }}?")
    job = world.done(data, [trace])
    [failure] = job["result"][trace]["failures"]
    assert failure["error_message"] == (
        "Must specify 'expectations' - required by template variables in instructions."
    )
    for source, value in (("HUMAN", "forty-two"), ("CODE", "seven")):
        assessment = {
            "assessment_name": f"of_{source.lower()}",
            "source": {"source_type": source, "source_id": "x"},
            "expectation": {"value": value},
        }
        trace_calls.tell("POST", f"3.0/traces/{trace}/assessments", {"assessment": assessment})
    world.done(data, [trace])
    assert "forty-two" in world.model.shown()
    assert "seven" not in world.model.shown()


def test_a_trace_is_shown_with_its_steps(world: World) -> None:
    """Also where the root tells nothing of what the instructions name."""
    parts = ("0000000000000000000000000000b001", "q")
    spans = [
        trace_calls.span(parts[0], 1, start=1, end=9),
        trace_calls.span(
            parts[0],
            2,
            1,
            start=2,
            end=3,
            mlflow__spanType="TOOL",
            mlflow__spanInputs={"city": "Bern"},
        ),
    ]
    assert trace_calls.export(world.experiment, spans).status == 200
    trace = f"tr-{parts[0]}"
    for instructions in ("Was {{ trace }} efficient?", BOTH):
        world.done(judge(instructions), [trace])
        assert world.model.shown().startswith("trace: ")
        assert '"city": "Bern"' in world.model.shown()
    world.done(builtin("ToolCallEfficiency"), [world.trace("q", "a")])
    assert "tool_calls: []" in world.model.shown()


def test_a_conversation_is_judged_as_a_whole(world: World) -> None:
    session = {"mlflow__trace__session": "s-1"}
    first = world.trace("Hello", "Hi, what is it?", "s-1", **session)
    second = world.trace("The weather", "Rain.", "s-1", **session)
    alone = world.trace("Nobody", "Nothing")
    [job_id] = world.invoke(judge("Is {{ conversation }} polite?"), [second, first, alone])
    world.work()
    job = world.job(job_id)
    assert list(job["result"]) == [first]
    [told] = assessments(first)
    assert told["metadata"]["mlflow.trace.session"] == "s-1"
    shown = world.model.shown()
    said = json.loads(shown.removeprefix("conversation: "))
    assert [one["content"] for one in said] == ["Hello", "Hi, what is it?", "The weather", "Rain."]
    assert assessments(second) == []


def test_builtin_judges_ask_what_they_need(world: World) -> None:
    documents = [{"page_content": "The sky is blue."}, {"page_content": "Grass is green."}]
    number = "0000000000000000000000000000c001"
    spans = [
        trace_calls.span(
            number, 1, mlflow__spanInputs="Which colour?", mlflow__spanOutputs="Blue."
        ),
        trace_calls.span(number, 2, 1, mlflow__spanType="RETRIEVER", mlflow__spanOutputs=documents),
    ]
    assert trace_calls.export(world.experiment, spans).status == 200
    trace = f"tr-{number}"
    kinds = {
        "Safety": ("Blue.",),
        "RelevanceToQuery": ("Which colour?", "Blue."),
        "RetrievalGroundedness": ("Blue.", "The sky is blue.", "Grass is green."),
        "Guidelines": ("Be short.",),
    }
    for kind, expected in kinds.items():
        guided: Json = {"guidelines": ["Be short."]} if kind == "Guidelines" else {}
        world.model.said = lambda _chat: {"result": " Yes", "rationale": ""}
        job = world.done(builtin(kind, **guided), [trace])
        [told] = job["result"][trace]["assessments"]
        assert told["feedback"] == {"value": "yes"}, kind
        assert told["metadata"].get("guideline") == ("Be short." if guided else None)
        for text in expected:
            assert text in world.model.shown(), kind
    world.model.said = lambda chat: {"result": "sky" in str(chat["messages"][-1]), "rationale": ""}
    job = world.done(builtin("RetrievalRelevance", "relevant"), [trace])
    told = job["result"][trace]["assessments"]
    assert [(one["assessment_name"], one["feedback"]["value"]) for one in told] == [
        ("relevant/precision", 0.5),
        ("relevant", "yes"),
        ("relevant", "no"),
    ]
    assert {one["span_id"] for one in told} == {"0000000000000002"}
    failed = world.done(builtin("Correctness"), [trace])["result"][trace]["failures"]
    assert "expected_response" in failed[0]["error_message"]


def test_a_message_that_comes_twice_asks_once(world: World) -> None:
    traces = [world.trace("q", "a") for _ in range(3)]
    [job_id] = world.invoke(judge(BOTH), traces)
    world.queue.waiting *= 2
    assert world.work() == []
    assert len(world.model.asked) == 3
    assert world.job(job_id)["status"] == "SUCCEEDED"


def test_a_job_goes_on_where_it_was_cut(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its worker dies after one trace, says nothing any more, and its message comes again."""
    monkeypatch.setattr(judge_runner.scoring, "AT_ONCE", 1)
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
    monkeypatch.setattr(ids, "now_ms", lambda: now + work.LEASE_MS + 1)
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
    later = ids.now_ms() + MOST_SECONDS * 1000 + 1
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

    monkeypatch.setattr(judge_runner.scoring, "present", broken)
    [job_id] = world.invoke(judge(BOTH), [world.trace("q", "a")])
    assert len(world.work()) == len(world.work()) == 1
    assert world.job(job_id)["status"] == "PENDING"
    assert world.work() == []
    job = world.job(job_id)
    assert (job["status"], job["error_message"]) == ("FAILED", "The job failed unexpectedly.")


def test_traces_of_others_are_not_judged(world: World) -> None:
    other = world.api.post("experiments/create", name="other")["experiment_id"]
    trace = world.trace("q", "a")
    body = {
        "experiment_id": other,
        "serialized_scorer": json.dumps(judge(BOTH)),
        "trace_ids": [trace],
    }
    answer = ask("POST", "mlflow/scorer/invoke", body)
    assert (answer.status, answer.code) == (403, "PERMISSION_DENIED")
    assert answer.body["message"] == "Not all requested traces could be accessed."
    job = world.done(judge(BOTH), ["tr-none"])
    assert job["error_message"] == "Traces not found: ['tr-none']"


def test_jobs_are_found_by_what_they_are(world: World) -> None:
    first = world.invoke(judge(BOTH), [world.trace("q", "a")])
    second = world.invoke(judge(BOTH, "other"), [world.trace("q", "a")], log_assessments=False)
    world.work()
    third = world.invoke(judge(BOTH), [world.trace("q", "a")])

    def found(**wanted: Any) -> list[str]:
        return [job["job_id"] for job in ask("POST", "jobs/search", wanted).body["jobs"]]

    assert found() == [*first, *second, *third]
    assert found(statuses=["PENDING"]) == third
    assert found(job_name="invoke_scorer", params={"log_assessments": False}) == second
    assert found(job_name="none") == []
    assert ask("POST", "jobs/search", {"statuses": ["x"]}).status == 400


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
    metrics = {one["key"]: one["value"] for one in run["data"]["metrics"]}
    assert metrics == {"rating/mean": 3.0, "rating/max": 6.0, "safety/mean": 0.0}
    assert world.job(job_id)["result"] == {
        "run_id": run_id,
        "total_traces": 3,
        "scorer_count": 2,
    }
    for trace in traces:
        written = assessments(trace)
        assert len(written) == 2
        assert all(one["metadata"]["mlflow.assessment.sourceRunId"] == run_id for one in written)
    linked = trace_calls.tell(
        "POST",
        "3.0/traces/search",
        {
            "locations": [{"mlflow_experiment": {"experiment_id": world.experiment}}],
            "filter": f"run_id = '{run_id}'",
        },
    )
    assert len(linked["traces"]) == 3


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
    for asked, status in ((cancelled, "KILLED"), (failed, "FAILED")):
        run = world.api.get("runs/get", run_id=asked["run_id"])["run"]
        assert run["info"]["status"] == status


def test_a_registered_judge_asks_an_endpoint_by_its_name(
    world: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """From the registered judge over the gateway to a server that speaks OpenAI's protocol."""
    seal_here(monkeypatch, tmp_path)
    gateway_world.allow_local(monkeypatch)
    monkeypatch.setattr(judge_runner.app, "_complete", lambda: chats.complete)

    def answer(asked: providers.Asked) -> providers.Told:
        told = providers.openai(asked)
        rating = json.dumps({"result": "yes", "rationale": "Fine."})
        told.body["choices"][0]["message"]["content"] = rating
        return told

    with providers.serving(answer) as provider:
        model = gateway_world.model("m", "openai", f"{provider.url}/v1")
        gateway_world.endpoint("e", [model])
        event = {
            "version": "2.0",
            "rawPath": "/api/3.0/mlflow/scorers/register",
            "headers": {"content-type": "application/json", "host": "localhost"},
            "requestContext": {"http": {"method": "POST"}, "requestId": "test"},
            "isBase64Encoded": False,
            "body": json.dumps(
                {
                    "experiment_id": world.experiment,
                    "name": "quality",
                    "serialized_scorer": json.dumps(judge(BOTH)),
                }
            ),
        }
        assert evaluation.app.handler(event, None)["statusCode"] == 200
        traces = [world.trace("q", "a") for _ in range(3)]
        job = world.done(judge(BOTH), traces, scorer_name="quality", scorer_version=1)
        assert job["status"] == "SUCCEEDED", job
        assert len(provider.asked) == 3
    for trace in traces:
        [told] = assessments(trace)
        assert told["feedback"] == {"value": "yes"}, told
        assert told["metadata"]["mlflow.assessment.scorerVersion"] == "1"
        assert told["source"]["source_id"] == "gateway:/e"


def set_online(world: World, name: str, rate: float, filter_string: str = "") -> Json:
    body = {
        "experiment_id": world.experiment,
        "name": name,
        "sample_rate": rate,
        "filter_string": filter_string,
    }
    answer = ask("PUT", "mlflow/scorers/online-config", body)
    assert answer.status == 200, answer
    return dict(answer.body["config"])


def registered(world: World, data: Json, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """The scorer's id; the endpoint is made with the first."""
    seal_here(monkeypatch, tmp_path)
    if not configuration.read("default").endpoints:
        gateway_world.endpoint("e", [gateway_world.model("m", "openai")])
    body = {
        "experiment_id": world.experiment,
        "name": data["name"],
        "serialized_scorer": json.dumps(data),
    }
    answer = ask("POST", "mlflow/scorers/register", body)
    assert answer.status == 200, answer
    return str(answer.body["scorer_id"])


def test_new_traces_are_judged_once_by_those_that_judge_by_themselves(
    world: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Sampled, filtered; sweeps side by side or cut short before they say how far they came."""
    monkeypatch.setenv(online.BUFFER_SECONDS, "0")
    now = ids.now_ms()
    monkeypatch.setattr(trace_calls, "START", (now + 5_000) * 1_000_000)
    scorer_id = registered(world, judge(BOTH, "all"), monkeypatch, tmp_path)
    registered(world, judge(BOTH, "some"), monkeypatch, tmp_path)
    registered(world, judge(BOTH, "off"), monkeypatch, tmp_path)
    registered(world, judge("Is {{ conversation }} polite?", "talk"), monkeypatch, tmp_path)
    config = set_online(world, "all", 1.0)
    assert set_online(world, "all", 1.0) == config, "sent twice"
    set_online(world, "some", 1.0, "tags.env = 'prod'")
    set_online(world, "off", 0.0)
    set_online(world, "talk", 1.0)
    listed = ask("GET", "mlflow/scorers/online-configs", scorer_ids=[scorer_id]).body["configs"]
    assert listed == [config]
    session = {"mlflow__trace__session": "s-1"}
    traces = [world.trace("q", "a"), world.trace("q", "a", "s-1", **session)]
    trace_calls.tell("PATCH", f"3.0/traces/{traces[0]}/tags", {"key": "env", "value": "prod"})
    monkeypatch.setattr(ids, "now_ms", lambda: now + 60_000)
    reach = online_scorers.reach

    def cut_short(*_: Any) -> None:
        raise errors.TemporarilyUnavailable("The table is away.")

    monkeypatch.setattr(online_scorers, "reach", cut_short)
    judge_runner.app.handler({"source": "schedule"}, Context())
    monkeypatch.setattr(online_scorers, "reach", reach)
    judge_runner.app.handler({"source": "schedule"}, Context())
    assert world.work() == []
    judge_runner.app.handler({"source": "schedule"}, Context())
    assert world.queue.waiting == []
    named = [sorted(one["assessment_name"] for one in assessments(trace)) for trace in traces]
    assert named == [["all", "some"], ["all", "talk"]]
    assert len(world.model.asked) == 4
    later = world.trace("q", "a")
    judge_runner.app.handler({"source": "schedule"}, Context())
    assert world.work() == []
    assert [one["assessment_name"] for one in assessments(later)] == ["all"]
    assert ask(
        "DELETE", "mlflow/scorers/delete", {"experiment_id": world.experiment, "name": "all"}
    )
    gone = ask("GET", "mlflow/scorers/online-configs", scorer_ids=[scorer_id]).body["configs"]
    assert gone == []


def test_scorers_that_cannot_judge_by_themselves_are_refused(
    world: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    registered(world, judge("{{ outputs }}, {{ expectations }}?", "x"), monkeypatch, tmp_path)
    registered(world, judge(BOTH, "direct", model="openai:/m"), monkeypatch, tmp_path)
    for name, why in (
        ("x", "requires expectations, but scorers with expectations are not currently supported"),
        ("direct", "does not use a gateway model"),
    ):
        body = {"experiment_id": world.experiment, "name": name, "sample_rate": 0.5}
        answer = ask("PUT", "mlflow/scorers/online-config", body)
        assert answer.status == 400
        assert why in answer.body["message"]


def test_a_share_of_traces_is_judged_by_all_that_come_before() -> None:
    """Whoever has a lower rate judges only what those with higher ones do, and as many."""
    rated = [("half", 0.5), ("quarter", 0.25), ("all", 1.0)]
    chosen = [online.sampled(f"tr-{number}", rated) for number in range(2000)]
    assert all(names == ["all", "half", "quarter"][: len(names)] for names in chosen)
    for name, rate in rated:
        assert abs(sum(name in names for names in chosen) / 2000 - rate) < 0.04
    assert online.sampled("tr-1", [("never", 0.0)]) == []
