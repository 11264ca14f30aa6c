"""Guardrails of endpoints: judges before a call and after it, what they refuse and what they have
rewritten."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mlcore.gateway import guarded_calls
from tests.contract.conftest import Store
from tests.contract.gateway_requests import events_of, post
from tests.contract.gateway_world import allow_local, endpoint, guard, judge, model
from tests.contract.raw_provider import FORM, FORM_TYPE
from tests.contract.raw_requests import send
from tests.contract.sealing import seal_here
from tests.doubles.providers import (
    Asked,
    Provider,
    Told,
    anthropic,
    failing,
    gemini,
    openai,
    saying,
    serving,
)

Json = dict[str, Any]
WORD = "forbidden"
BAD: list[Json] = [{"role": "user", "content": f"a {WORD} word"}]
GOOD: list[Json] = [{"role": "user", "content": "a good word"}]
STREAMED: Json = {"stream": True, "stream_options": {"include_usage": True}}
REFUSED = "Guardrail 'no words' blocked: There is a forbidden word."


@pytest.fixture(autouse=True)
def local_providers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    seal_here(monkeypatch, tmp_path)
    allow_local(monkeypatch)


class World:
    """An endpoint ``chat``; ``judge`` says no to what holds a word, ``cleaner`` takes it out."""

    def __init__(self, provider: Provider, aside: Provider) -> None:
        self.provider, self.aside = provider, aside
        self.chat = endpoint("chat", [model("m", "openai", provider.url, model_name="gpt-x")])
        self.judge = endpoint("judge", [model("j", "openai", aside.url, model_name="judge-x")])
        self.cleaner = endpoint("cleaner", [model("c", "openai", aside.url, model_name="clean-x")])

    def guard(self, names: str, stage: str, action: str = "VALIDATION", **more: Any) -> str:
        scorer = judge("no words", f"Is {{{{ {names} }}}} free of forbidden words?", "judge")
        return guard(self.chat, scorer, stage, action, **more)

    def judged(self) -> list[str]:
        """What the judge was shown."""
        return [
            request.body["messages"][-1]["content"]
            for request in self.aside.asked
            if request.body["model"] == "judge-x"
        ]


def aside(request: Asked) -> Told:
    shown = request.body["messages"][-1]["content"]
    if request.body["model"] == "judge-x":
        content: Any = {"result": "no", "rationale": "There is a forbidden word."}
        if WORD not in shown:
            content = {"result": "yes", "rationale": "It is fine."}
    else:
        content = json.loads(shown[shown.index("{") :].replace(WORD, "[REDACTED]"))
    return saying(json.dumps(content))(request)


@pytest.fixture
def world(store: Store) -> Iterator[World]:
    with serving(openai) as provider, serving(aside) as other:
        yield World(provider, other)


def rule(kind: str, **settings: Any) -> Json:
    data = {"builtin_scorer_class": kind, "builtin_scorer_pydantic_data": settings}
    return {"name": f"{kind} {settings}", **data}


ROUTES = [
    ("chat/mlflow/invocations", {}),
    ("mlflow/v1/chat/completions", {"model": "chat"}),
    ("openai/v1/chat/completions", {"model": "chat"}),
]


@pytest.mark.parametrize(("path", "named"), ROUTES)
def test_a_request_is_refused_before_it_leaves(world: World, path: str, named: Json) -> None:
    world.guard("inputs", "BEFORE")
    assert post(path, {**named, "messages": GOOD})[0] == 200
    assert len(world.provider.asked) == 1
    status, _, text = post(path, {**named, "messages": BAD})
    assert (status, json.loads(text)["detail"]) == (400, REFUSED)
    status, _, text = post(path, {**named, "messages": BAD, "stream": True})
    assert (status, json.loads(text)["detail"]) == (400, REFUSED)
    assert len(world.provider.asked) == 1
    streamed = post(path, {**named, "messages": GOOD, **STREAMED})[2]
    assert events_of(streamed)[-1]["usage"]


@pytest.mark.parametrize(("path", "named"), ROUTES)
def test_an_answer_is_refused(world: World, path: str, named: Json) -> None:
    """Whether the caller asks for a stream or not."""
    world.guard("outputs", "AFTER")
    status, _, text = post(path, {**named, "messages": BAD})
    assert (status, json.loads(text)["detail"]) == (400, REFUSED)
    assert "echo: a forbidden word" in world.judged()[0]
    assert post(path, {**named, "messages": GOOD})[0] == 200
    assert len(world.judged()) == 2
    streamed = post(path, {**named, "messages": BAD, "stream": True})[2]
    assert (json.loads(streamed)["detail"], len(world.judged())) == (REFUSED, 3)
    chunks = events_of(post(path, {**named, "messages": GOOD, **STREAMED})[2])
    assert chunks[0]["choices"][0]["delta"]["content"] == "echo: a good word"
    assert (chunks[0]["object"], chunks[-1]["usage"]["total_tokens"]) == (
        "chat.completion.chunk",
        18,
    )
    assert not any(request.body.get("stream") for request in world.provider.asked)


@pytest.mark.parametrize(("path", "named"), ROUTES)
def test_rules_ask_no_model(world: World, path: str, named: Json) -> None:
    guard(world.chat, rule("PIIDetection"), "BEFORE")
    guard(world.chat, rule("ResponseLength", max_length=30), "AFTER")
    private: Json = {"role": "user", "content": "I am ann@shop.example"}
    history = [private, {"role": "assistant", "content": "Hi."}, *GOOD]
    for messages in ([private], history, [{**private, "role": "system"}, *GOOD]):
        for stream in ({}, {"stream": True}):
            status, _, text = post(path, {**named, "messages": messages, **stream})
            assert status == 400
            assert json.loads(text)["detail"].endswith("blocked: Detected PII: email")
    assert world.provider.asked == []  # nothing has left
    assert post(path, {**named, "messages": GOOD})[0] == 200
    long = [{"role": "user", "content": "a long word" * 9}]
    for stream in ({}, {"stream": True}):
        status, _, text = post(path, {**named, "messages": long, **stream})
        assert (status, "exceeds the maximum (30 chars)" in text) == (400, True)
    assert world.aside.asked == []


def test_no_form_of_a_stream_evades_a_guardrail(store: Store) -> None:
    """Somebody who wants the forbidden word tries each path that streams."""
    with serving(anthropic) as claude, serving(gemini) as google, serving(aside) as other:
        endpoint("judge", [model("j", "openai", other.url, model_name="judge-x")])
        made = {
            "c": endpoint("c", [model("c", "anthropic", f"{claude.url}/v1")]),
            "g": endpoint("g", [model("g", "gemini", f"{google.url}/v1beta")]),
        }
        for name, endpoint_id in made.items():
            scorer = judge(f"no words {name}", "Is {{ outputs }} free of forbidden words?", "judge")
            guard(endpoint_id, scorer, "AFTER")
        for word, expected in ((WORD, 400), ("good", 200)):
            messages = [{"role": "user", "content": f"a {word} word"}]
            contents = [{"role": "user", "parts": [{"text": f"a {word} word"}]}]
            message = {"max_tokens": 9, "messages": messages, "stream": True}
            claude_stream = post("anthropic/v1/messages", {"model": "c", **message})
            gemini_stream = post(
                "gemini/v1beta/models/g:streamGenerateContent", {"contents": contents}
            )
            for status, _, text in (claude_stream, gemini_stream):
                assert status == expected, text
                assert "echo:" not in text or word == "good"
            for path, body in (
                ("proxy/c/v1/messages", {"model": "x", **message}),
                ("proxy/c/v1/messages?beta=true", {"model": "x", **message, "stream": 1}),
                ("proxy/g/v1beta/models/x:streamGenerateContent", {"contents": contents}),
            ):
                status, _, text = post(path, body)
                assert status == 400, (path, text)
                assert "echo:" not in text or word == "good"
            # A path that is spelled otherwise is no stream to the provider: its answer is checked.
            misspelled = "proxy/g/v1beta/models/x%3AstreamGenerateContent"
            assert post(misspelled, {"contents": contents})[0] == expected
        kinds = [event["type"] for event in events_of(claude_stream[2])]
        assert kinds[0] == "message_start"
        assert kinds[-2:] == ["message_delta", "message_stop"]
        assert "candidates" in events_of(gemini_stream[2])[0]


def test_a_guarded_response_of_openai_is_not_streamed(world: World) -> None:
    world.guard("outputs", "AFTER")
    body = {"model": "chat", "input": "a good word"}
    assert post("openai/v1/responses", body)[0] == 200
    calls = len(world.provider.asked)
    status, _, text = post("openai/v1/responses", {**body, "stream": True})
    assert (status, "without streaming" in text) == (400, True)
    assert len(world.provider.asked) == calls


@pytest.mark.parametrize("rewritten", ["{}", '{"choices": []}', '{"choices": [3]}'])
def test_a_rewritten_passthrough_keeps_its_form(world: World, rewritten: str) -> None:
    world.guard("outputs", "AFTER", "SANITIZATION", action_endpoint_id=world.cleaner)
    judged = aside

    def emptied(request: Asked) -> Told:
        return judged(request) if request.body["model"] == "judge-x" else saying(rewritten)(request)

    world.aside.answer = emptied
    status, _, text = post("openai/v1/chat/completions", {"model": "chat", "messages": BAD})
    assert (status, "unusable object" in text) == (400, True)


@pytest.mark.parametrize(("path", "named"), ROUTES)
def test_both_ways_are_rewritten(world: World, path: str, named: Json) -> None:
    world.guard("inputs", "BEFORE", "SANITIZATION", action_endpoint_id=world.cleaner)
    body = {**named, "messages": BAD, "temperature": 0.5}
    answer = json.loads(post(path, body)[2])
    assert answer["choices"][0]["message"]["content"] == "echo: a [REDACTED] word"
    sent = world.provider.asked[-1].body
    assert (sent["messages"][0]["content"], sent["temperature"]) == ("a [REDACTED] word", 0.5)
    world.provider.answer = lambda request: openai(
        request._replace(body={**request.body, "messages": BAD})
    )
    assert f"echo: a {WORD} word" in post(path, body)[2]
    scorer = judge("no words said", "Is {{ outputs }} free of forbidden words?", "judge")
    guard(world.chat, scorer, "AFTER", "SANITIZATION", action_endpoint_id=world.cleaner)
    answer = json.loads(post(path, body)[2])
    assert answer["choices"][0]["message"]["content"] == "echo: a [REDACTED] word"


def test_guardrails_have_an_order(world: World) -> None:
    """Each sees what the one before has left."""
    last = judge("last", "Is {{ inputs }} free of forbidden words?", "judge")
    guard(world.chat, last, "BEFORE")
    kept = {"action_endpoint_id": world.cleaner, "execution_order": 1}
    world.guard("inputs", "BEFORE", "SANITIZATION", **kept)
    assert post("chat/mlflow/invocations", {"messages": BAD})[0] == 200
    assert [WORD in shown for shown in world.judged()] == [True, False]


def _files(request: Asked) -> Told:
    """Sound, and texts that are written already."""
    if request.path.endswith("/content"):
        return Told(body=b"\x00\xff", content_type="audio/mpeg")
    return Told(body={"object": "response", "text": f"a {request.path.rpartition('/')[2]} word"})


def test_a_file_that_no_guardrail_can_check(world: World) -> None:
    """Nobody sends as a file what a guardrail would refuse."""
    world.provider.answer = _files
    world.guard("inputs", "BEFORE")
    form = {"content-type": FORM_TYPE}
    refused = send("POST", "chat/v1/files", FORM, headers=form)
    assert (refused.status, "cannot check this request" in refused.json["detail"]) == (400, True)
    assert world.provider.asked == []
    assert send("GET", "chat/v1/files/f1/content").body == b"\x00\xff"


def test_an_answer_that_is_read_later(world: World) -> None:
    """Nobody reads by a GET what a guardrail would refuse."""
    world.provider.answer = _files
    world.guard("outputs", "AFTER")
    refused = send("GET", "chat/v1/files/f1/content")
    assert (refused.status, "cannot check this answer" in refused.json["detail"]) == (400, True)
    assert send("GET", "chat/v1/responses/good").status == 200
    refused = send("GET", f"chat/v1/responses/{WORD}")
    assert (refused.status, refused.json["detail"]) == (400, REFUSED)


def test_embeddings(world: World) -> None:
    """Only what goes in is looked at."""
    world.guard("inputs", "BEFORE")
    guard(world.chat, judge("after", "Is {{ outputs }} fine?", "judge"), "AFTER")
    for path, named in (
        ("chat/mlflow/invocations", {}),
        ("openai/v1/embeddings", {"model": "chat"}),
    ):
        assert post(path, {**named, "input": "a good word"})[0] == 200
        status, _, text = post(path, {**named, "input": WORD})
        assert (status, json.loads(text)["detail"]) == (400, REFUSED)


def test_a_built_in_judge_and_one_that_says_true(world: World) -> None:
    safe = {
        "name": "safe",
        "builtin_scorer_class": "Safety",
        "builtin_scorer_pydantic_data": {"name": "safe", "model": "gateway:/judge"},
    }
    guard(world.chat, safe, "AFTER")
    status, _, text = post("chat/mlflow/invocations", {"messages": BAD})
    blocked = "Guardrail 'safe' blocked: There is a forbidden word."
    assert (status, json.loads(text)["detail"]) == (400, blocked)
    scorer = judge("true", "Is {{ inputs }} fine?", "judge", "boolean")
    guard(world.chat, scorer, "BEFORE")
    for result, status in (("true", 200), ("false", 400)):
        world.aside.answer = saying(f'{{"result": {result}, "rationale": "so"}}')
        actual, _, text = post("chat/mlflow/invocations", {"messages": GOOD})
        assert actual == status
    assert json.loads(text)["detail"] == "Guardrail 'true' blocked: so"


def test_a_judge_that_is_guarded_itself_is_asked_once(world: World) -> None:
    """Its endpoint's own guardrails do not look at what a guardrail asks."""
    guard(world.judge, judge("itself", "Is {{ inputs }} fine?", "judge"), "BEFORE")
    world.guard("inputs", "BEFORE")
    assert post("chat/mlflow/invocations", {"messages": GOOD})[0] == 200
    assert len(world.judged()) == 1
    guarded_calls.complete_chat("default", "judge", {"messages": GOOD})
    assert len(world.judged()) == 3


@pytest.mark.parametrize(
    ("scorer", "stage", "status", "detail"),
    [
        (
            judge("g", "Is {{ outputs }} fine?", "judge"),
            "BEFORE",
            400,
            "Must specify 'outputs' - required by template variables in instructions.",
        ),
        (
            judge("g", "Is {{ conversation }} fine?", "judge"),
            "BEFORE",
            400,
            "Must specify 'session' - required by template variables in instructions.",
        ),
        (judge("g", "How good is {{ inputs }}?", "number", "number"), "BEFORE", 502, "yes or no"),
        (judge("g", "Is {{ inputs }} fine?", "away"), "BEFORE", 502, "the model is overloaded"),
        (
            rule("RegexMatch", pattern="(a|aa)+$"),
            "BEFORE",
            502,
            "took more than",
        ),
        ({"name": "g", "third_party_scorer_data": {}}, "BEFORE", 501, "other libraries"),
    ],
)
def test_nothing_leaves_where_a_guardrail_cannot_be_applied(
    world: World, scorer: Json, stage: str, status: int, detail: str
) -> None:
    with serving(failing(500)) as broken:
        endpoint("away", [model("away", "openai", broken.url)])
        with serving(saying('{"result": 3}')) as counting:
            endpoint("number", [model("number", "openai", counting.url)])
            guard(world.chat, scorer, stage)
            messages = [{"role": "user", "content": "a" * 9_000 + "!"}]
            actual, _, text = post("chat/mlflow/invocations", {"messages": messages})
    assert (actual, world.provider.asked) == (status, [])
    assert detail in str(json.loads(text)["detail"])


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (None, "Sanitization requires an action_llm_url but none was configured."),
        (failing(503, "away"), "Sanitization request failed: away"),
        (
            saying(None),
            "Sanitization LLM response is missing 'choices[0].message.content'.",
        ),
        (
            saying("no JSON"),
            "Sanitization LLM returned invalid JSON.",
        ),
        (
            saying('{"a": 1}'),
            "Sanitization LLM returned an unusable object: Invalid chat payload: messages: Input "
            "should be a list of at least one message",
        ),
    ],
)
def test_what_cannot_be_rewritten_is_refused(world: World, answer: Any, reason: str) -> None:
    with serving(answer or failing(500)) as broken:
        cleaner = endpoint("broken", [model("broken", "openai", broken.url)])
        more = {} if answer is None else {"action_endpoint_id": cleaner}
        world.guard("inputs", "BEFORE", "SANITIZATION", **more)
        status, _, text = post("chat/mlflow/invocations", {"messages": BAD})
    assert (status, json.loads(text)["detail"]) == (400, f"Guardrail 'no words' blocked: {reason}")
    assert world.provider.asked == []
