"""Models at Amazon Bedrock behind the gateway's endpoints: who signs, what Converse is asked, and
what comes back."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mlcore.errors import GatewayCallFailed
from mlcore.gateway import chats, guarded_calls
from mlcore.gateway.caller import Caller
from mlcore.gateway.chat_schemas import validated_chat
from mlcore.gateway.invocation import begin
from tests.contract.bedrock_world import (
    ACCESS_KEY,
    BY_KEYS,
    KEYS,
    MODEL,
    OWN,
    SECRET_KEY,
    TOKEN,
    bedrock_here,
    ready,
)
from tests.contract.conftest import Store
from tests.contract.gateway_requests import SAID, TOOL, events_of, post
from tests.contract.gateway_world import KEY
from tests.doubles.bedrock import frame, signer_of, stream
from tests.doubles.providers import Provider, Told, openai, serving

Json = dict[str, Any]

PATH = MODEL.replace(":", "%3A").replace("/", "%2F")


@pytest.fixture
def bedrock(store: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Provider]:
    with bedrock_here(monkeypatch, tmp_path) as provider:
        yield provider


def test_a_chat_by_the_role_of_the_function(bedrock: Provider) -> None:
    """No key is anywhere; tools, their results and pictures are told as Converse has them."""
    ready("chat")
    call = {"type": "function", "function": {"name": "weather", "arguments": '{"city": "Rome"}'}}
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}
    turns = [
        SAID[0],
        {"role": "user", "content": [{"type": "text", "text": "Where?"}, picture]},
        {"role": "assistant", "content": "", "tool_calls": [{"id": n, **call} for n in "ab"]},
        {"role": "tool", "tool_call_id": "a", "content": "sunny"},
        {"role": "tool", "tool_call_id": "b", "content": "rainy"},
    ]
    more = {"temperature": 1, "top_p": 0.5, "max_tokens": 9, "stop": ["END"]}
    answer = guarded_calls.complete_chat(
        "default", "chat", {"messages": turns, "tools": [TOOL], "tool_choice": "required", **more}
    )
    (request,) = bedrock.asked
    assert request.path == f"/model/{PATH}/converse"
    assert signer_of(request, SECRET_KEY, TOKEN) == ("ASIAROLE", "eu-west-3")
    used = {"name": "weather", "input": {"city": "Rome"}}
    results = [
        {"toolResult": {"toolUseId": name, "content": [{"text": weather}]}}
        for name, weather in (("a", "sunny"), ("b", "rainy"))
    ]
    function = TOOL["function"]
    assert isinstance(function, dict)
    spec = {
        "name": "weather",
        "description": "Of a city",
        "inputSchema": {"json": function["parameters"]},
    }
    assert request.body == {
        "system": [{"text": "Be brief."}],
        "messages": [
            {
                "role": "user",
                "content": [
                    {"text": "Where?"},
                    {"image": {"format": "png", "source": {"bytes": "aGk="}}},
                ],
            },
            {
                "role": "assistant",
                "content": [{"toolUse": {"toolUseId": name, **used}} for name in "ab"],
            },
            {"role": "user", "content": results},
        ],
        "inferenceConfig": {
            "temperature": 1,
            "topP": 0.5,
            "maxTokens": 9,
            "stopSequences": ["END"],
        },
        "toolConfig": {"tools": [{"toolSpec": spec}], "toolChoice": {"any": {}}},
    }
    assert (answer["provider"], answer["model"], answer["object"]) == (
        "bedrock",
        MODEL,
        "chat.completion",
    )
    (choice,) = answer["choices"]
    assert (choice["finish_reason"], choice["message"]["content"]) == ("tool_calls", None)
    (called,) = choice["message"]["tool_calls"]
    assert (called["id"], called["function"]["name"]) == ("tooluse_1", "weather")
    assert json.loads(called["function"]["arguments"]) == {"city": "rainy"}
    assert answer["usage"] == {
        "prompt_tokens": 14,
        "completion_tokens": 6,
        "total_tokens": 20,
        "prompt_tokens_details": {"cached_tokens": 4},
        "cache_creation_input_tokens": 0,
    }


def test_a_stream_is_that_of_converse(bedrock: Provider) -> None:
    ready("chat")
    body: Json = {"model": "chat", "messages": SAID, "stream": True}
    status, media_type, text = post("mlflow/v1/chat/completions", body)
    assert (status, media_type) == (200, "text/event-stream; charset=utf-8")
    chunks = events_of(text)
    contents = [chunk["choices"][0]["delta"]["content"] or "" for chunk in chunks]
    assert "".join(contents) == "echo: hellothere"
    assert [chunk["choices"][0]["finish_reason"] for chunk in chunks][-2:] == ["stop", None]
    assert chunks[-1]["usage"]["total_tokens"] == 20
    assert len({chunk["id"] for chunk in chunks}) == 1
    assert signer_of(bedrock.asked[0], SECRET_KEY, TOKEN)[0] == "ASIAROLE"
    assert bedrock.asked[0].path == f"/model/{PATH}/converse-stream"
    tools = events_of(post("mlflow/v1/chat/completions", {**body, "tools": [TOOL]})[2])
    calls = [tool["choices"][0]["delta"]["tool_calls"] or [] for tool in tools]
    (begun,), *rest = [call for call in calls if call]
    assert (begun["index"], begun["id"], begun["function"]["name"]) == (0, "tooluse_1", "weather")
    parts = [call["function"]["arguments"] for (call,) in rest]
    assert json.loads("".join(parts)) == {"city": "hello there"}


def test_keys_of_a_secret(bedrock: Provider, caplog: pytest.LogCaptureFixture) -> None:
    """Each way to log in sends its own, and no key is in a log or an answer; the server's own are
    not sent for a secret that has some."""
    ready("keys", MODEL, KEYS, BY_KEYS)
    ready("bearer", MODEL, {"api_key": KEY}, {"aws_region_name": "us-east-2"}, "amazon-bedrock")
    with caplog.at_level(logging.DEBUG):
        answers = [
            post(f"{name}/mlflow/invocations", {"messages": SAID}) for name in ("keys", "bearer")
        ]
    assert [status for status, _, _ in answers] == [200, 200]
    signed, borne = bedrock.asked
    assert signer_of(signed, SECRET_KEY) == (ACCESS_KEY, "us-east-2")
    assert borne.headers["authorization"] == f"Bearer {KEY}"
    for secret in (KEY, SECRET_KEY, ACCESS_KEY):
        assert secret not in caplog.text + str(answers)


@pytest.mark.parametrize(
    ("secret", "auth_config", "status", "detail"),
    [
        ({"api_key": KEY}, {}, 400, "aws_region_name is required for Bedrock API key"),
        ({"aws_access_key_id": ACCESS_KEY}, {"aws_region_name": "us-east-2"}, 400, "no api_key"),
        ({}, {"auth_mode": "access_keys"}, 400, "no aws_access_key_id"),
        ({}, {**OWN, "aws_region_name": "x.example.com/"}, 400, "not an AWS Region"),
        (
            {},
            {**OWN, "aws_role_name": "arn:aws:iam::1:role/r"},
            501,
            "does not assume another role",
        ),
        ({}, {"auth_mode": "iam_role"}, 501, "does not assume another role"),
        ({}, {"auth_mode": "ours"}, 400, "auth_mode does not exist"),
    ],
)
def test_a_secret_that_does_not_do(
    bedrock: Provider, secret: Json, auth_config: Json, status: int, detail: str
) -> None:
    """Nothing is sent, and the server's own credentials stand in for none that lack."""
    ready("chat", MODEL, secret, auth_config)
    with pytest.raises(GatewayCallFailed, match=detail) as failed:
        guarded_calls.complete_chat("default", "chat", {"messages": SAID})
    assert (failed.value.status, bedrock.asked) == (status, [])


def test_an_address_in_a_secret_is_not_looked_at(
    bedrock: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or somebody who may write secrets would have the role's signature sent to a server of
    theirs."""
    monkeypatch.setenv("MLFLOW_GATEWAY_API_BASE_ALLOWED_SCHEMES", "http,https")
    monkeypatch.setenv("MLFLOW_GATEWAY_API_BASE_ALLOW_PRIVATE_IPS", "true")
    with serving(openai) as theirs:
        ready("chat", MODEL, {}, {**OWN, "api_base": theirs.url})
        guarded_calls.complete_chat("default", "chat", {"messages": SAID})
        assert (len(bedrock.asked), theirs.asked) == (1, [])


def test_what_bedrock_refuses_is_quoted(bedrock: Provider) -> None:
    ready("chat")
    refusal = {"message": "You don't have access to the model with the specified model ID."}
    bedrock.answer = lambda request: Told(403, refusal)
    status, _, text = post("chat/mlflow/invocations", {"messages": SAID})
    assert (status, json.loads(text)["detail"]) == (403, refusal)
    body = {"model": "chat", "messages": SAID, "stream": True}
    status, _, text = post("mlflow/v1/chat/completions", body)
    assert (status, json.loads(text)["detail"]) == (403, refusal["message"])


@pytest.mark.parametrize(
    ("last", "status", "detail"),
    [
        (frame("throttlingException", {"message": "slow"}, "exception"), 429, "throttling"),
        (frame("modelStreamErrorException", {"message": "x"}, "exception"), 502, "modelStream"),
        (frame("messageStop", {})[:-1] + b"x", 502, "stream cannot be decoded"),
        (frame("messageStop", {}), 502, "unexpected form"),
    ],
)
def test_a_stream_that_fails(bedrock: Provider, last: bytes, status: int, detail: str) -> None:
    """After what came before."""
    ready("chat")
    text = frame("contentBlockDelta", {"delta": {"text": "so"}, "contentBlockIndex": 0})
    bedrock.answer = lambda request: stream(text, last)
    chunks = chats.stream_completion(
        begin("default", "chat", Caller()), validated_chat({"messages": SAID})
    )
    assert next(chunks)["choices"][0]["delta"]["content"] == "so"
    with pytest.raises(GatewayCallFailed, match=detail) as failed:
        next(chunks)
    assert failed.value.status == status


@pytest.mark.parametrize(
    ("more", "detail"),
    [
        ({"n": 2}, "'n' must be '1'"),
        (
            {
                "messages": [
                    {
                        "role": "user",
                        "content": [{"type": "image_url", "image_url": {"url": "https://x/y.png"}}],
                    }
                ]
            },
            "images only as data URLs",
        ),
        (
            {"messages": [{"role": "user", "content": [{"type": "input_audio"}]}]},
            "content parts of type 'input_audio'",
        ),
        (
            {
                "messages": [
                    {
                        "role": "assistant",
                        "tool_calls": [{"id": "a", "function": {"name": "f", "arguments": "{"}}],
                    }
                ]
            },
            "not valid JSON for tool_call_id=a, tool_name=f",
        ),
    ],
)
def test_a_chat_that_cannot_be_told(bedrock: Provider, more: Json, detail: str) -> None:
    ready("chat")
    with pytest.raises(GatewayCallFailed, match=detail) as failed:
        guarded_calls.complete_chat("default", "chat", {"messages": SAID, **more})
    assert (failed.value.status, bedrock.asked) == (422, [])


def test_the_form_of_an_answer_is_told_in_words(bedrock: Provider) -> None:
    """Tools that shall not be used are not told, unless the chat speaks of one."""
    ready("chat")
    schema = {"type": "object", "properties": {"rating": {"type": "integer"}}}
    form = {"type": "json_schema", "json_schema": {"name": "s", "schema": schema}}
    chat = {"messages": SAID, "response_format": form, "tools": [TOOL], "tool_choice": "none"}
    answer = guarded_calls.complete_chat("default", "chat", chat)
    assert answer["choices"][0]["message"]["content"] == "echo: hello there"
    brief, instruction = bedrock.asked[0].body["system"]
    assert brief == {"text": "Be brief."}
    assert instruction["text"].endswith(f"It follows this JSON schema: {json.dumps(schema)}")
    assert "toolConfig" not in bedrock.asked[0].body


def test_what_bedrock_is_not_asked(bedrock: Provider) -> None:
    """A model that embeds no texts, one that is not Anthropic's, and OpenAI's own form."""
    ready("chat")
    said = {"model": "chat", "messages": SAID}
    for path, body, status, detail in (
        ("chat/mlflow/invocations", {"input": "a text"}, 501, "embeddings route is implemented"),
        ("anthropic/v1/messages", said, 501, "for Anthropic's models at Amazon Bedrock only"),
        ("anthropic/v1/messages/count_tokens", said, 501, "for Anthropic's models"),
        ("openai/v1/chat/completions", said, 400, "Unsupported passthrough endpoint"),
        ("openai/v1/embeddings", {"model": "chat", "input": "a"}, 400, "Unsupported passthrough"),
    ):
        told, _, text = post(path, body)
        assert (told, detail in json.loads(text)["detail"]) == (status, True), text
    assert bedrock.asked == []
