"""Streamed answers of the gateway: the parts of tool calls, and streams that fail or break off."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from gateway_calls import replies
from mlcore import errors
from tests.contract.conftest import Store
from tests.contract.gateway_requests import SAID, TOOL, events_of, post
from tests.contract.gateway_world import allow_local, endpoint, model
from tests.contract.sealing import seal_here
from tests.doubles.providers import Asked, Told, anthropic, events, failing, gemini, openai, serving

USER = [{"role": "user", "content": "hello there"}]


@pytest.fixture(autouse=True)
def local_providers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    seal_here(monkeypatch, tmp_path)
    allow_local(monkeypatch)


def openai_tool_stream(_asked: Asked) -> Told:
    """The parts of a tool call as OpenAI sends them: only the first has an id, a type, a name."""
    head = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "x"}
    parts: list[dict[str, Any]] = [
        {"index": 0, "id": "call_1", "type": "function", "function": {"name": "weather"}},
        {"index": 0, "function": {"arguments": '{"city": '}},
        {"index": 0, "function": {"arguments": '"Rome"}'}},
    ]
    return events(
        *(
            {
                **head,
                "choices": [{"index": 0, "delta": {"tool_calls": [part]}, "finish_reason": None}],
            }
            for part in parts
        )
    )


def anthropic_tool_stream(_asked: Asked) -> Told:
    block = {"type": "tool_use", "id": "call_1", "name": "weather", "input": {}}
    return events(
        {
            "type": "message_start",
            "message": {"id": "m", "model": "x", "usage": {"input_tokens": 3, "output_tokens": 1}},
        },
        {"type": "content_block_start", "index": 0, "content_block": block},
        *(
            {
                "type": "content_block_delta",
                "index": 0,
                "delta": {"type": "input_json_delta", "partial_json": part},
            }
            for part in ('{"city": ', '"Rome"}')
        ),
        {
            "type": "message_delta",
            "delta": {"stop_reason": "tool_use"},
            "usage": {"output_tokens": 5},
        },
        {"type": "message_stop"},
        named=True,
        done=False,
    )


@pytest.mark.parametrize(
    ("name", "answer"), [("openai", openai_tool_stream), ("anthropic", anthropic_tool_stream)]
)
def test_parts_of_a_tool_call(store: Store, name: str, answer: Any) -> None:
    """No part has a null id, type or name, which some clients take for a new call."""
    with serving(answer) as provider:
        endpoint("chat", [model("m", name, f"{provider.url}/v1")])
        body = {"model": "chat", "messages": USER, "tools": [TOOL], "stream": True}
        chunks = events_of(post("mlflow/v1/chat/completions", body)[2])
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks if chunk["choices"]]
    calls = [call for delta in deltas for call in delta["tool_calls"] or ()]
    assert (calls[0]["id"], calls[0]["type"]) == ("call_1", "function")
    assert calls[0]["function"]["name"] == "weather"
    assert calls[1:] == [
        {"index": 0, "function": {"arguments": '{"city": '}},
        {"index": 0, "function": {"arguments": '"Rome"}'}},
    ]


def test_instructions_of_the_developer_reach_anthropic(store: Store) -> None:
    with serving(anthropic) as provider:
        endpoint("chat", [model("m", "anthropic", f"{provider.url}/v1")])
        messages = [*SAID[:1], {"role": "developer", "content": "In French."}, *USER]
        assert post("mlflow/v1/chat/completions", {"model": "chat", "messages": messages})[0] == 200
    assert provider.asked[0].body["system"] == "Be brief.\nIn French."
    assert [message["role"] for message in provider.asked[0].body["messages"]] == ["user"]


def broken_off(request: Asked) -> Told:
    """A stream that ends after its first half, without an error."""
    response = anthropic(request)
    return response._replace(parts=response.parts[:4])


def test_a_broken_stream_ends_with_an_error(store: Store) -> None:
    """In the form that Anthropic's client reads: an event named ``error``."""
    with serving(broken_off) as provider:
        endpoint("claude", [model("m", "anthropic", f"{provider.url}/v1")])
        body = {"model": "claude", "max_tokens": 9, "messages": USER, "stream": True}
        status, _, text = post("anthropic/v1/messages", body)
        assert status == 200
        *_, last = text.rstrip("\n").split("\n\n")
        name, _, data = last.partition("\n")
        assert name == "event: error"
        assert json.loads(data.removeprefix("data: ")) == {
            "type": "error",
            "error": {
                "type": "api_error",
                "message": "The provider's stream ended before its message did.",
            },
        }
        provider.answer = anthropic
        assert "event: error" not in post("anthropic/v1/messages", body)[2]


CHATS: list[tuple[str, dict[str, str]]] = [
    ("mlflow/v1/chat/completions", {"model": "chat"}),
    ("chat/mlflow/invocations", {}),
]


@pytest.mark.parametrize(("path", "named"), CHATS)
def test_only_a_whole_chat_ends_with_done(store: Store, path: str, named: dict[str, str]) -> None:
    """Some clients of OpenAI's API wait for ``[DONE]`` to know that the answer is whole."""
    done = "data: [DONE]\n\n"
    with serving(anthropic) as provider:
        endpoint("chat", [model("m", "anthropic", f"{provider.url}/v1")])
        body = {**named, "messages": USER, "stream": True}
        whole = post(path, body)[2]
        provider.answer = broken_off
        broken = post(path, body)[2]
    assert whole.endswith(done)
    assert whole.count(done) == 1
    assert events_of(broken)
    assert done not in broken


@pytest.mark.parametrize(
    ("name", "answer"), [("openai", openai), ("gemini", gemini), ("anthropic", anthropic)]
)
def test_every_providers_chat_ends_with_done(store: Store, name: str, answer: Any) -> None:
    with serving(answer) as provider:
        endpoint("chat", [model("m", name, f"{provider.url}/v1")])
        body = {"model": "chat", "messages": USER, "stream": True}
        assert post("mlflow/v1/chat/completions", body)[2].endswith("data: [DONE]\n\n")


def test_the_type_of_an_error_follows_its_status() -> None:
    """In the form of Anthropic's API, whose clients raise by the type."""
    kinds = {
        429: "rate_limit_error",
        404: "not_found_error",
        422: "invalid_request_error",
        504: "api_error",
    }
    for status, kind in kinds.items():
        event = replies.anthropic_error_event(errors.GatewayCallFailed(status, "no")).decode()
        assert json.loads(event.partition("data: ")[2])["error"] == {"type": kind, "message": "no"}


def test_a_broken_stream_of_gemini_ends_with_its_error(store: Store) -> None:
    """Its client raises by the number of the code."""
    with serving(gemini) as provider:
        endpoint("gem", [model("m", "gemini", f"{provider.url}/v1beta")])
        long = "data: " + "x" * (17 * 1024 * 1024)
        provider.answer = lambda asked: Told(
            parts=(*gemini(asked).parts, long), content_type="text/event-stream"
        )
        body = {"contents": [{"role": "user", "parts": [{"text": "hello"}]}]}
        for path in (
            "gemini/v1beta/models/gem:streamGenerateContent",
            "proxy/gem/v1beta/models/gemini-x:streamGenerateContent",
        ):
            status, _, text = post(path, body)
            *parts, last = events_of(text)
            assert (status, len(parts)) == (200, 1)
            error = last["error"]
            assert (error["code"], error["status"]) == (502, "UNKNOWN")
            assert "exceeds" in error["message"]


ROUTES = [
    ("mlflow/v1/chat/completions", "openai"),
    ("openai/v1/chat/completions", "openai"),
    ("anthropic/v1/messages", "anthropic"),
]


@pytest.mark.parametrize(("path", "name"), ROUTES)
@pytest.mark.parametrize("streams", [False, True])
def test_a_refusal_has_the_providers_status(
    store: Store, path: str, name: str, streams: bool
) -> None:
    with serving(failing(429, "slow down")) as provider:
        endpoint("chat", [model("m", name, f"{provider.url}/v1")])
        body = {"model": "chat", "messages": USER, "max_tokens": 5, "stream": streams}
        status, _, text = post(path, body)
    assert (status, json.loads(text)["detail"]) == (429, "slow down")


@pytest.mark.parametrize("streams", [False, True])
def test_a_redirect_is_a_failure(store: Store, streams: bool) -> None:
    with serving(lambda _: Told(307, {})) as provider:
        endpoint("chat", [model("m", "openai", f"{provider.url}/v1")])
        body = {"model": "chat", "messages": USER, "stream": streams}
        assert post("mlflow/v1/chat/completions", body)[0] == 502
        assert post("openai/v1/chat/completions", body)[0] == 502


def test_a_refused_connection_is_not_a_timeout(store: Store) -> None:
    with serving(anthropic) as provider:
        url = provider.url
    endpoint("chat", [model("m", "openai", url)])
    started = time.monotonic()
    status, _, text = post("chat/mlflow/invocations", {"messages": USER})
    assert (status, time.monotonic() - started < 10) == (502, True)
    assert "could not be reached" in json.loads(text)["detail"]
