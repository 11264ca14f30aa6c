"""Judges that run on the server: what they are asked, what they write, and that they write it
once, whatever dies."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import judge_runner.app
from mlcore import errors
from mlcore.gateway import guarded_calls
from tests.contract import gateway_world, trace_calls
from tests.contract.conftest import Store
from tests.contract.judges_world import World, ask, assessments, builtin, judge
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
    [assessment] = job["result"][trace]["assessments"]
    assert job["result"][trace]["failures"] == []
    assert assessments(trace) == [assessment]
    assert assessment["feedback"] == {"value": True}
    assert (assessment["assessment_name"], assessment["rationale"]) == ("quality", "Because.")
    assert assessment["source"] == {"source_type": "LLM_JUDGE", "source_id": "gateway:/e"}
    assert assessment["span_id"] == "0000000000000001"
    digest = assessment["metadata"].pop("mlflow.assessment.scorerDigest")
    assert digest.startswith("sha256:")
    assert assessment["metadata"] == {
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


def test_rules_rate_without_a_model(world: World) -> None:
    long, short = world.trace("q", "x" * 40), world.trace("q", "I am ann@shop.example")
    expected: dict[str, tuple[Json, str, str]] = {
        "ResponseLength": ({"max_length": 30}, "no", "yes"),
        "PIIDetection": ({}, "yes", "no"),
        "RegexMatch": ({"pattern": "^X+$", "case_insensitive": True}, "yes", "no"),
    }
    for kind, (settings, of_long, of_short) in expected.items():
        job = world.done(builtin(kind, "rule", **{"model": None, **settings}), [long, short])
        values = {}
        for trace in (long, short):
            [assessment] = job["result"][trace]["assessments"]
            assert assessment["source"]["source_type"] == "CODE"
            values[trace] = assessment["feedback"]["value"]
        assert (kind, values) == (kind, {long: of_long, short: of_short})
    assert world.model.asked == []


def test_only_whoever_asks_for_it_has_assessments_written(world: World) -> None:
    trace = world.trace("q", "a")
    job = world.done(judge(BOTH), [trace], log_assessments=False)
    assert len(job["result"][trace]["assessments"]) == 1
    assert assessments(trace) == []


@pytest.mark.parametrize(
    ("reply", "value"),
    [
        ('```json\n{"result": "good", "rationale": "r"}\n```', "good"),
        ('Sure!\n```json\n{"result": [1, 2], "rationale": "r"}\n```', [1.0, 2.0]),
        ('{"rationale": "a\nline", "result": {"a": 1}}', {"a": 1.0}),
    ],
)
def test_answers_may_be_wrapped(world: World, reply: str, value: Any) -> None:
    world.model.said = lambda _chat: reply
    job = world.done(judge(BOTH), [trace := world.trace("q", "a")])
    assert job["result"][trace]["assessments"][0]["feedback"]["value"] == value


def test_what_fails_is_told_of_each_trace(world: World) -> None:
    """A model that answers nonsense, or is not there, is no failure of the job's."""

    def reply(chat: Json) -> Any:
        if "first" in chat["messages"][-1]["content"]:
            return "I would rather not."
        raise errors.GatewayCallFailed(429, "Too many requests.")

    world.model.said = reply
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
    def reply(chat: Json) -> Any:
        if "response_format" in chat:
            raise errors.GatewayCallFailed(400, "response_format is not supported")
        return {"result": "yes", "rationale": ""}

    world.model.said = reply
    traces = [world.trace("q", "a") for _ in range(2)]
    job = world.done(judge(BOTH), traces)
    assert all(not result["failures"] for result in job["result"].values())


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
    [assessment] = assessments(first)
    assert assessment["metadata"]["mlflow.trace.session"] == "s-1"
    shown = world.model.shown()
    messages = json.loads(shown.removeprefix("conversation: "))
    assert [message["content"] for message in messages] == [
        "Hello",
        "Hi, what is it?",
        "The weather",
        "Rain.",
    ]
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
        [assessment] = job["result"][trace]["assessments"]
        assert assessment["feedback"] == {"value": "yes"}, kind
        assert assessment["metadata"].get("guideline") == ("Be short." if guided else None)
        for text in expected:
            assert text in world.model.shown(), kind
    world.model.said = lambda chat: {"result": "sky" in str(chat["messages"][-1]), "rationale": ""}
    job = world.done(builtin("RetrievalRelevance", "relevant"), [trace])
    assessment = job["result"][trace]["assessments"]
    assert [
        (verdict["assessment_name"], verdict["feedback"]["value"]) for verdict in assessment
    ] == [
        ("relevant/precision", 0.5),
        ("relevant", "yes"),
        ("relevant", "no"),
    ]
    assert {span["span_id"] for span in assessment} == {"0000000000000002"}
    failed = world.done(builtin("Correctness"), [trace])["result"][trace]["failures"]
    assert "expected_response" in failed[0]["error_message"]


def test_a_registered_judge_asks_an_endpoint_by_its_name(
    world: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """From the registered judge over the gateway to a server that speaks OpenAI's protocol."""
    seal_here(monkeypatch, tmp_path)
    gateway_world.allow_local(monkeypatch)
    monkeypatch.setattr(
        judge_runner.app, "_gateway_completion", lambda **_: guarded_calls.complete_chat
    )

    def answer(request: providers.Asked) -> providers.Told:
        response = providers.openai(request)
        rating = json.dumps({"result": "yes", "rationale": "Fine."})
        response.body["choices"][0]["message"]["content"] = rating
        return response

    with providers.serving(answer) as provider:
        model = gateway_world.model("m", "openai", f"{provider.url}/v1")
        gateway_world.endpoint("e", [model])
        registered = {
            "experiment_id": world.experiment,
            "name": "quality",
            "serialized_scorer": json.dumps(judge(BOTH)),
        }
        assert ask("POST", "mlflow/scorers/register", registered).status == 200
        traces = [world.trace("q", "a") for _ in range(3)]
        job = world.done(judge(BOTH), traces, scorer_name="quality", scorer_version=1)
        assert job["status"] == "SUCCEEDED", job
        assert len(provider.asked) == 3
    for trace in traces:
        [assessment] = assessments(trace)
        assert assessment["feedback"] == {"value": "yes"}, assessment
        assert assessment["metadata"]["mlflow.assessment.scorerVersion"] == "1"
        assert assessment["source"]["source_id"] == "gateway:/e"
