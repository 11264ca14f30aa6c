"""Markers of prompt caching reach the providers that take them; cached tokens are priced."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mlcore import aws_clients
from mlcore.db.signature import Credentials
from mlcore.gateway import guarded_calls
from mlcore.repos.gateway import configuration
from tests.contract.conftest import Store
from tests.contract.gateway_requests import TOOL, events_of, post
from tests.contract.gateway_world import allow_local, endpoint, model
from tests.contract.sealing import seal_here
from tests.contract.trace_calls import infos
from tests.doubles import bedrock
from tests.doubles.providers import Asked, Told, anthropic, events, gemini, openai, serving

Json = dict[str, Any]

SHORT: Json = {"cache_control": {"type": "ephemeral"}}
LONG: Json = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}
CALL: Json = {"id": "a", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
PICTURE: Json = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}


def text(words: str, **more: Any) -> Json:
    return {"type": "text", "text": words, **more}


MARKED: Json = {
    "messages": [
        {"role": "system", "content": [text("Rules."), text("A book.", **LONG)]},
        {"role": "developer", "content": "Be brief.", **SHORT},
        {"role": "user", "content": [text("Look"), {**PICTURE, **SHORT}]},
        {"role": "assistant", "content": "I look.", "tool_calls": [CALL], **SHORT},
        {"role": "tool", "tool_call_id": "a", "content": [text("sunny", **SHORT)]},
        {"role": "user", "content": "And now?", **LONG},
    ],
    "tools": [{**TOOL, **SHORT}],
}


@pytest.fixture(autouse=True)
def local_providers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    seal_here(monkeypatch, tmp_path)
    allow_local(monkeypatch)
    monkeypatch.setenv("ARTIFACT_FOLDER", str(tmp_path / "files"))


def test_anthropic_gets_every_marker(store: Store) -> None:
    with serving(anthropic) as provider:
        endpoint("chat", [model("m", "anthropic", f"{provider.url}/v1")])
        guarded_calls.complete_chat("default", "chat", MARKED)
        body = provider.asked[0].body
    assert body["system"] == [
        text("Rules."),
        text("A book.", **LONG),
        text("Be brief.", **SHORT),
    ]
    picture, (used, result, last) = (
        body["messages"][0]["content"][1],
        [message["content"] for message in body["messages"][1:]],
    )
    assert (picture["type"], picture["cache_control"]) == ("image", SHORT["cache_control"])
    assert used == [
        text("I look."),
        {"type": "tool_use", "id": "a", "name": "weather", "input": {}, **SHORT},
    ]
    assert result == [
        {"type": "tool_result", "tool_use_id": "a", "content": [text("sunny")], **SHORT}
    ]
    assert last == [text("And now?", **LONG)]
    assert body["tools"][0]["cache_control"] == SHORT["cache_control"]
    assert json.dumps(body).count("cache_control") == json.dumps(MARKED).count("cache_control")


def test_instructions_without_markers_stay_one_text(store: Store) -> None:
    turns: list[Json] = [
        {"role": "system", "content": [text("Rules."), text(" More.")]},
        {"role": "developer", "content": "Be brief."},
        {"role": "user", "content": "hello"},
    ]
    with serving(anthropic) as provider:
        endpoint("chat", [model("m", "anthropic", f"{provider.url}/v1")])
        chat = {"messages": turns, "response_format": {"type": "json_object"}}
        guarded_calls.complete_chat("default", "chat", chat)
        marked = {**chat, "messages": [{**turns[0], **SHORT}, *turns[1:]]}
        guarded_calls.complete_chat("default", "chat", marked)
        plain, cached = [asked.body["system"] for asked in provider.asked]
    assert plain.startswith("Rules. More.\nBe brief.\nAnswer with one valid JSON object")
    assert [part.get("cache_control") for part in cached] == [
        *(None, SHORT["cache_control"], None, None),
    ]


@pytest.fixture
def converse(monkeypatch: pytest.MonkeyPatch, store: Store) -> Iterator[list[Asked]]:
    """What a model at Bedrock is asked behind the endpoint ``chat``."""
    monkeypatch.setattr(aws_clients, "process_credentials", lambda: Credentials("A", "B", "C"))
    monkeypatch.setenv("AWS_REGION", "eu-west-3")
    counts = {"inputTokens": 100, "outputTokens": 6, "totalTokens": 106}
    cached = {
        "cacheReadInputTokens": 1000,
        "cacheWriteInputTokens": 3000,
        "cacheDetails": [{"ttl": "1h", "inputTokens": 2000}, {"ttl": "5m", "inputTokens": 1000}],
    }

    def answer(request: Asked) -> Told:
        told = bedrock.converse(request)
        return told._replace(body={**told.body, "usage": {**counts, **cached}})

    with serving(answer) as provider:
        monkeypatch.setenv("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", provider.url)
        made = model(
            "m",
            "bedrock",
            model_name="anthropic.claude-sonnet-4-5-20250929-v1:0",
            secret={},
            auth_config={"auth_mode": "default_chain"},
        )
        endpoint("chat", [made], usage_tracking=True)
        yield provider.asked


SHORT_POINT: Json = {"cachePoint": {"type": "default"}}
LONG_POINT: Json = {"cachePoint": {"type": "default", "ttl": "1h"}}


def test_bedrock_gets_cache_points(converse: list[Asked]) -> None:
    guarded_calls.complete_chat("default", "chat", MARKED)
    (request,) = converse
    body = request.body
    assert body["system"] == [
        {"text": "Rules."},
        {"text": "A book."},
        LONG_POINT,
        {"text": "Be brief."},
        SHORT_POINT,
    ]
    first, used, last = [message["content"] for message in body["messages"]]
    assert [next(iter(block)) for block in first] == ["text", "image", "cachePoint"]
    assert [next(iter(block)) for block in used] == ["text", "toolUse", "cachePoint"]
    assert last[1:] == [SHORT_POINT, {"text": "And now?"}, LONG_POINT]
    assert body["toolConfig"]["tools"][1:] == [SHORT_POINT]
    assert "cache_control" not in json.dumps(body)


@pytest.mark.parametrize(("provider_name", "answer"), [("gemini", gemini), ("groq", openai)])
def test_who_has_no_markers_is_not_sent_them(store: Store, provider_name: str, answer: Any) -> None:
    """A provider with OpenAI's protocol may know those of parts and tools, as OpenRouter does."""
    with serving(answer) as provider:
        endpoint("chat", [model("m", provider_name, f"{provider.url}/v1")])
        guarded_calls.complete_chat("default", "chat", MARKED)
        body = provider.asked[0].body
    assert all("cache_control" not in message for message in body["messages"])
    kept = json.dumps(body).count("cache_control")
    assert kept == (0 if provider_name == "gemini" else 4)


def test_azure_is_not_sent_them(store: Store) -> None:
    def azure(request: Asked) -> Told:
        return openai(request._replace(body={**request.body, "model": "m"}))

    with serving(azure) as provider:
        version = {"api_version": "2024-10-21"}
        endpoint("chat", [model("m", "azure", provider.url, auth_config=version)])
        guarded_calls.complete_chat("default", "chat", MARKED)
        body = provider.asked[0].body
    assert "cache_control" not in json.dumps(body)
    assert len(body["messages"]) == len(MARKED["messages"])


USED: Json = {
    "input_tokens": 100,
    "output_tokens": 6,
    "cache_read_input_tokens": 1000,
    "cache_creation_input_tokens": 3000,
    "cache_creation": {"ephemeral_5m_input_tokens": 1000, "ephemeral_1h_input_tokens": 2000},
}
COST = (100 * 3 + 1000 * 0.3 + 1000 * 3.75 + 2000 * 6 + 6 * 15) / 1e6
"""Of Claude Sonnet 4.5: writing to the cache costs 3.75 dollars a million tokens, for an hour 6."""


def long_cached(request: Asked) -> Told:
    """A model at Anthropic that wrote the prompt to a cache."""
    told = anthropic(request)
    if not request.body.get("stream"):
        return told._replace(body={**told.body, "usage": USED})
    payloads = [json.loads(part.partition("data: ")[2]) for part in map(str, told.parts)]
    payloads[0]["message"]["usage"] = {**USED, "output_tokens": 1}
    return events(*payloads, named=True, done=False)


def final_counts(request: Asked) -> Told:
    """One that counts the input in the last event of a stream, after it used a tool of its own."""
    payloads = [
        json.loads(part.partition("data: ")[2]) for part in map(str, anthropic(request).parts)
    ]
    payloads[0]["message"]["usage"] = {"input_tokens": 5, "output_tokens": 1}
    payloads[-2]["usage"] = USED
    return events(*payloads, named=True, done=False)


@pytest.mark.parametrize(
    ("path", "body", "answer"),
    [
        ("mlflow/v1/chat/completions", {}, long_cached),
        ("mlflow/v1/chat/completions", {"stream": True}, long_cached),
        ("mlflow/v1/chat/completions", {"stream": True}, final_counts),
        ("anthropic/v1/messages", {"max_tokens": 9}, long_cached),
        ("anthropic/v1/messages", {"max_tokens": 9, "stream": True}, long_cached),
        ("anthropic/v1/messages", {"max_tokens": 9, "stream": True}, final_counts),
    ],
)
def test_tokens_that_are_cached_for_an_hour_are_priced(
    store: Store, path: str, body: Json, answer: Any
) -> None:
    with serving(answer) as provider:
        made = model("m", "anthropic", f"{provider.url}/v1", model_name="claude-sonnet-4-5")
        tracked = endpoint("chat", [made], usage_tracking=True)
        said = [{"role": "user", "content": "hello"}]
        status, _, sent = post(path, {"model": "chat", "messages": said, **body})
    assert status == 200
    if path.startswith("mlflow"):
        told = events_of(sent)[-1] if body else json.loads(sent)
        assert told["usage"]["prompt_tokens"] == 4100
        assert told["usage"]["prompt_tokens_details"] == {"cached_tokens": 1000}
        assert told["usage"]["cache_creation_input_tokens"] == 3000
        assert told["usage"]["cache_creation"] == USED["cache_creation"]
    assert_traced(tracked)


def test_tokens_that_bedrock_caches_for_an_hour_are_priced(converse: list[Asked]) -> None:
    answer = guarded_calls.complete_chat("default", "chat", MARKED)
    assert answer["usage"]["cache_creation"] == USED["cache_creation"]
    (tracked,) = configuration.read("default").endpoints
    assert_traced(tracked)


def assert_traced(endpoint_id: str) -> None:
    """The trace of the only call of an endpoint has all counts and the price of each."""
    experiment = configuration.read("default").endpoints[endpoint_id].experiment_id
    (info,) = infos(str(experiment))
    metadata = info["trace_metadata"]
    assert json.loads(metadata["mlflow.trace.tokenUsage"]) == {
        "input_tokens": 4100,
        "output_tokens": 6,
        "total_tokens": 4106,
        "cache_read_input_tokens": 1000,
        "cache_creation_input_tokens": 3000,
        "cache_creation_input_tokens_above_1hr": 2000,
    }
    assert json.loads(metadata["mlflow.trace.cost"])["total_cost"] == pytest.approx(COST)
