"""The gateway's routes: chats, streams, embeddings, what is passed on, and errors in the form of
MLflow's gateway."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import gateway_calls.app
from gateway_calls.replies import RESPONSE_STYLE
from mlcore.environment import AUTHENTICATION
from mlcore.http import lambda_handler
from mlcore.repos.users import users
from tests.contract.conftest import Store
from tests.contract.gateway_requests import Json, ask, events_of, post
from tests.contract.gateway_world import KEY, allow_local, endpoint, model
from tests.contract.logins import named
from tests.contract.sealing import seal_here
from tests.doubles.providers import anthropic, failing, gemini, openai, serving

SAID: list[Json] = [{"role": "user", "content": "hello there"}]


@pytest.fixture(autouse=True)
def local_providers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    seal_here(monkeypatch, tmp_path)
    allow_local(monkeypatch)


@pytest.fixture
def chat(store: Store) -> Iterator[Any]:
    """A provider behind the endpoint ``chat``, which speaks OpenAI's protocol."""
    with serving(openai) as provider:
        endpoint("chat", [model("m", "openai", f"{provider.url}/v1", model_name="gpt-x")])
        yield provider


def test_both_ways_to_chat(chat: Any) -> None:
    body = {"messages": SAID}
    by_model = post("mlflow/v1/chat/completions", {"model": "chat", **body})
    by_path = post("chat/mlflow/invocations", body)
    assert by_model == by_path
    assert by_model[:2] == (200, "application/json")
    answer = json.loads(by_model[2])
    assert (answer["provider"], answer["model"]) == ("openai", "gpt-x")
    assert answer["choices"][0]["message"]["content"] == "echo: hello there"


def test_a_stream_of_chunks(chat: Any) -> None:
    status, media_type, text = post(
        "mlflow/v1/chat/completions", {"model": "chat", "messages": SAID, "stream": True}
    )
    assert (status, media_type) == (200, "text/event-stream; charset=utf-8")
    chunks = events_of(text)
    contents = [chunk["choices"][0]["delta"]["content"] for chunk in chunks if chunk["choices"]]
    assert "".join(part for part in contents if part) == "echo: hellothere"
    assert chunks[-1]["usage"]["total_tokens"] == 18
    assert {chunk["provider"] for chunk in chunks} == {"openai"}


def test_a_stream_that_falls_back_and_one_that_fails(store: Store) -> None:
    with serving(failing(500)) as broken, serving(anthropic) as other:
        ids = [model("a", "openai", broken.url), model("b", "anthropic", other.url)]
        endpoint("chat", ids[:1], ids[1:])
        body = {"model": "chat", "messages": SAID, "stream": True}
        chunks = events_of(post("mlflow/v1/chat/completions", body)[2])
        contents = [chunk["choices"][0]["delta"]["content"] or "" for chunk in chunks]
        assert "".join(contents) == "echo: hellothere"
        assert chunks[-1]["usage"] == {
            "prompt_tokens": 14,
            "completion_tokens": 6,
            "total_tokens": 20,
            "prompt_tokens_details": {"cached_tokens": 4},
        }
        other.answer = failing(529, "overloaded")
        status, _, text = post("mlflow/v1/chat/completions", body)
    detail = "All 2 fallback attempts failed. Last error: 529: overloaded"
    assert (status, json.loads(text)["detail"]) == (529, detail)


def test_embeddings(chat: Any) -> None:
    answer = json.loads(post("chat/mlflow/invocations", {"input": ["a", "bcd"]})[2])
    assert [item["embedding"] for item in answer["data"]] == [[0.5, 1.0], [0.5, 3.0]]
    assert answer["usage"] == {"prompt_tokens": 3, "total_tokens": 3}
    passed = json.loads(post("openai/v1/embeddings", {"model": "chat", "input": "ab"})[2])
    assert passed["data"][0]["embedding"] == [0.5, 2.0]


def test_what_is_passed_on(chat: Any) -> None:
    """As it is, but for the model and the credentials: the caller's do not leave."""
    own = {"authorization": "Bearer caller's", "x_mlflow_authorization": "Basic caller's"}
    body = {"model": "chat", "messages": SAID, "seed": 7}
    status, _, text = post("openai/v1/chat/completions", body, **own, x_stainless_lang="python")
    assert (status, json.loads(text)["system_fingerprint"]) == (200, "fp_1")
    request = chat.asked[-1]
    assert request.body == {"model": "gpt-x", "messages": SAID, "seed": 7}
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.headers["x-stainless-lang"] == "python"
    assert "caller's" not in str(request.headers)
    streamed = post("openai/v1/chat/completions", {**body, "stream": True})[2]
    assert streamed.endswith("data: [DONE]\n\n")
    assert chat.asked[-1].body["stream_options"] == {"include_usage": True}
    assert all(event["choices"] and "usage" not in event for event in events_of(streamed))
    asking = {**body, "stream": True, "stream_options": {"include_usage": True}}
    told = post("openai/v1/chat/completions", asking)[2]
    assert events_of(told)[-1]["usage"]["total_tokens"] == 18
    assert told.startswith(streamed.removesuffix("data: [DONE]\n\n"))
    answer = json.loads(post("openai/v1/responses", {"model": "chat", "input": "hi"})[2])
    assert answer["output"][0]["content"][0]["text"] == "echo: hi"
    status, _, text = post("anthropic/v1/messages", body)
    assert status == 400
    assert json.loads(text)["detail"].startswith(
        "Unsupported passthrough endpoint '/anthropic/v1/messages' for OpenAI provider. "
        "Supported endpoints: /gateway/openai/v1/chat/completions (provider_path: "
        "chat/completions), "
    )


def test_messages_are_passed_on(store: Store) -> None:
    with serving(anthropic) as provider:
        endpoint("claude", [model("m", "anthropic", f"{provider.url}/v1", model_name="claude-x")])
        body = {"model": "claude", "max_tokens": 9, "messages": SAID}
        answer = json.loads(post("anthropic/v1/messages", body)[2])
        assert answer["content"] == [{"type": "text", "text": "echo: hello there"}]
        streamed = post("anthropic/v1/messages", {**body, "stream": True})[2]
        assert "event: message_stop\n" in streamed
        assert provider.asked[0].body == {**body, "model": "claude-x"}


def test_gemini(store: Store) -> None:
    """By its own protocol, and by OpenAI's."""
    with serving(gemini) as provider:
        endpoint("g", [model("m", "gemini", f"{provider.url}/v1beta", model_name="gemini-x")])
        own = {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}
        key = {"x_goog_api_key": "caller's"}
        answer = json.loads(post("gemini/v1beta/models/g:generateContent", own, **key)[2])
        assert answer["candidates"][0]["content"]["parts"] == [{"text": "echo: hi"}]
        _, media_type, text = post("gemini/v1beta/models/g:streamGenerateContent", own)
        assert media_type == "text/event-stream; charset=utf-8"
        assert events_of(text)[0]["usageMetadata"]["totalTokenCount"] == 13
        chat = json.loads(post("g/mlflow/invocations", {"messages": SAID})[2])
        assert (chat["provider"], chat["usage"]["total_tokens"]) == ("gemini", 18)
    assert [request.path for request in provider.asked] == [
        "/v1beta/models/gemini-x:generateContent",
        "/v1beta/models/gemini-x:streamGenerateContent?alt=sse",
        "/v1beta/openai/chat/completions",
    ]
    assert {request.headers.get("x-goog-api-key") for request in provider.asked} == {KEY, None}


@pytest.mark.parametrize(
    ("path", "body", "status", "detail"),
    [
        (
            "mlflow/v1/chat/completions",
            {"messages": SAID},
            400,
            "Missing required 'model' parameter in request body",
        ),
        (
            "mlflow/v1/chat/completions",
            {"model": "none", "messages": SAID},
            404,
            {
                "error_code": "RESOURCE_DOES_NOT_EXIST",
                "message": "GatewayEndpoint not found (name='none')",
            },
        ),
        (
            "chat/mlflow/invocations",
            {"prompt": "x"},
            400,
            "Invalid request: payload format must be either chat or embeddings",
        ),
        (
            "chat/mlflow/invocations",
            {"messages": SAID, "model": "x"},
            422,
            "The parameter 'model' is not permitted to be passed. The route being queried already "
            "defines a model instance.",
        ),
        ("openai/v1/chat/completions", [1], 400, "Invalid JSON payload: it must be an object"),
        (
            "openai/v1/chat/completions",
            "{",
            400,
            "Invalid JSON payload: Expecting property name enclosed in double quotes: line 1 "
            "column 2 (char 1)",
        ),
    ],
)
def test_refusals(chat: Any, path: str, body: Any, status: int, detail: Any) -> None:
    actual, _, text = post(path, body)
    assert (actual, json.loads(text)["detail"]) == (status, detail)


def test_models_are_endpoints(chat: Any) -> None:
    endpoint("another", [model("n", "openai", chat.url)])
    status, _, text = ask("GET", "mlflow/v1/models")
    assert status == 200
    listed = json.loads(text)
    assert [item["id"] for item in listed["data"]] == ["another", "chat"]
    assert {item["owned_by"] for item in listed["data"]} == {"mlflow"}


def test_who_may_call(chat: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever may use the endpoint; one that is not there looks like one that nobody may use."""
    monkeypatch.setenv(AUTHENTICATION, "basic")
    handler = lambda_handler((), gateway_calls.app.PLAIN_ROUTES, RESPONSE_STYLE)
    users.create("ann", "", is_admin=False)

    def status(path: str, body: Any) -> int:
        return ask("POST", path, body, handler=handler, caller=named("ann"))[0]

    def listed() -> list[str]:
        _, _, text = ask("GET", "mlflow/v1/models", handler=handler, caller=named("ann"))
        return [item["id"] for item in json.loads(text)["data"]]

    here, none = ({"model": name, "messages": SAID} for name in ("chat", "none"))
    for permission, expected in (("READ", 403), ("USE", 200)):
        monkeypatch.setenv("DEFAULT_PERMISSION", permission)
        assert listed() == (["chat"] if expected == 200 else [])
        assert status("mlflow/v1/chat/completions", here) == expected
        assert status("openai/v1/chat/completions", here) == expected
        assert status("chat/mlflow/invocations", {"messages": SAID}) == expected
        assert status("mlflow/v1/chat/completions", none) == 403
        assert status("none/mlflow/invocations", {"messages": SAID}) == 403
        assert status("mlflow/v1/chat/completions", {"messages": SAID}) == 400
    monkeypatch.setenv("DEFAULT_PERMISSION", "NO_PERMISSIONS")
    assert listed() == []
    assert ask("GET", "mlflow/v1/models", handler=handler, caller={"lambda": {}})[0] == 401
