"""Whatever a caller sends and whatever a provider answers, a chat's translation works or says what
is wrong: 400 or 422 about the request, 502 about the answer."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mlcore.errors import GatewayCallFailed
from mlcore.gateway import answer_chunking, stream_assembly
from mlcore.gateway.chat_schemas import validated_chat
from mlcore.providers import (
    anthropic,
    anthropic_requests,
    bedrock_converse,
    openai,
    token_counts,
    transport,
)
from mlcore.providers.gemini import Gemini
from mlcore.providers.known_providers import provider_of
from mlcore.providers.model import Model
from mlcore.providers.openai import OpenAi

Json = dict[str, Any]

_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 10**20) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=4,
)
_FUNCTION = {"name": "f", "description": "d", "parameters": {"type": "object", "properties": {}}}
_CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}
CHAT: Json = {
    "messages": [
        {"role": "system", "content": [{"type": "text", "text": "be kind"}]},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "hello"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
            ],
        },
        {"role": "assistant", "content": "x", "tool_calls": [_CALL]},
        {"role": "tool", "tool_call_id": "c", "content": "3"},
    ],
    "n": 1,
    "max_tokens": 5,
    "max_completion_tokens": 5,
    "temperature": 0.5,
    "stop": ["a"],
    "stream_options": {"include_usage": True},
    "tools": [{"type": "function", "function": _FUNCTION}],
    "tool_choice": {"type": "function", "function": {"name": "f"}},
    "response_format": {
        "type": "json_schema",
        "json_schema": {"name": "s", "schema": {"type": "object", "properties": {"a": {}}}},
    },
}
_ANTHROPIC_USAGE = {
    "input_tokens": 3,
    "output_tokens": 2,
    "cache_read_input_tokens": 1,
    "cache_creation_input_tokens": 1,
    "cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 1},
}
ANTHROPIC_MESSAGE: Json = {
    "id": "m",
    "type": "message",
    "role": "assistant",
    "model": "claude",
    "content": [
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        {"type": "text", "text": "hi"},
        {"type": "tool_use", "id": "c", "name": "f", "input": {"a": 1}},
    ],
    "stop_reason": "end_turn",
    "usage": _ANTHROPIC_USAGE,
}
ANTHROPIC_EVENTS: list[Json] = [
    {"type": "message_start", "message": {**ANTHROPIC_MESSAGE, "content": []}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "h"}},
    {
        "type": "content_block_start",
        "index": 1,
        "content_block": {"type": "tool_use", "id": "c", "name": "f", "input": {}},
    },
    {
        "type": "content_block_delta",
        "index": 1,
        "delta": {"type": "input_json_delta", "partial_json": "{}"},
    },
    {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}},
    {"type": "message_stop"},
]
_OPENAI_USAGE = {
    "prompt_tokens": 3,
    "completion_tokens": 2,
    "total_tokens": 5,
    "prompt_tokens_details": {"cached_tokens": 1},
}
COMPLETION: Json = {
    "id": "x",
    "created": 1,
    "model": "gpt",
    "choices": [
        {
            "index": 0,
            "message": {"role": "assistant", "content": "hi", "tool_calls": [_CALL]},
            "finish_reason": "stop",
        }
    ],
    "usage": _OPENAI_USAGE,
}
_CHUNK = {"id": "x", "created": 1, "model": "gpt"}
CHUNKS: list[Json] = [
    {
        **_CHUNK,
        "choices": [
            {
                "index": 0,
                "delta": {
                    "role": "assistant",
                    "content": "h",
                    "tool_calls": [{"index": 0, **_CALL}],
                },
                "finish_reason": None,
            }
        ],
    },
    {**_CHUNK, "choices": [], "usage": _OPENAI_USAGE},
    {"error": {"message": "busy"}},
]
CONVERSE_ANSWER: Json = {
    "output": {
        "message": {
            "role": "assistant",
            "content": [
                {"text": "hi"},
                {"toolUse": {"toolUseId": "c", "name": "f", "input": {}}},
            ],
        }
    },
    "stopReason": "end_turn",
    "usage": {
        "inputTokens": 1,
        "outputTokens": 2,
        "cacheReadInputTokens": 1,
        "cacheDetails": [{"ttl": "1h", "inputTokens": 1}],
    },
}
CONVERSE_EVENTS: list[Any] = [
    {
        "type": "contentBlockStart",
        "event": {
            "contentBlockIndex": 1,
            "start": {"toolUse": {"toolUseId": "c", "name": "f"}},
        },
    },
    {
        "type": "contentBlockDelta",
        "event": {"contentBlockIndex": 1, "delta": {"toolUse": {"input": "{}"}}},
    },
    {"type": "contentBlockDelta", "event": {"contentBlockIndex": 0, "delta": {"text": "h"}}},
    {"type": "messageStop", "event": {"stopReason": "end_turn"}},
    {"type": "metadata", "event": {"usage": {"inputTokens": 1, "outputTokens": 2}}},
]
GEMINI_ANSWER: Json = {
    "candidates": [{"content": {"parts": [{"text": "hi"}], "role": "model"}, "index": 0}],
    "usageMetadata": {
        "promptTokenCount": 3,
        "candidatesTokenCount": 2,
        "totalTokenCount": 9,
        "thoughtsTokenCount": 4,
    },
}


def _paths(value: Any) -> Iterator[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in items:
        yield (key,)
        if isinstance(item, dict | list):
            yield from ((key, *rest) for rest in _paths(item))


@st.composite
def changed(draw: st.DrawFn, value: Any) -> Any:
    """A value of which some parts are missing or replaced by any others."""
    value = copy.deepcopy(value)
    for _ in range(draw(st.integers(0, 3))):
        paths = list(_paths(value))
        if not paths:
            break
        *outer, last = draw(st.sampled_from(paths))
        container = value
        for key in outer:
            container = container[key]
        if draw(st.booleans()):
            del container[last]
        else:
            container[last] = draw(_VALUES)
    return value


def _model(provider: str) -> Model:
    return Model(provider, "m", {"api_key": "k"}, {})


def _failure(work: Callable[[], object]) -> int | None:
    """Does the work. Returns the status that the caller would see, None if it succeeds."""
    try:
        work()
    except GatewayCallFailed as error:
        return error.status if isinstance(error.message, str) else 500
    return None


@given(changed(CHAT))
@example({**CHAT, "response_format": {"type": "json_schema", "json_schema": None}})
@example({"messages": [{"role": "system", "content": [{"type": "text", "text": None}]}]})
def test_requests(chat: Json) -> None:
    if (status := _failure(lambda: validated_chat(chat))) is not None:
        assert status == 400
        return
    request = validated_chat(chat)
    for translate in (anthropic_requests.message_request, bedrock_converse.request_of):
        status = _failure(partial(_encoded, translate, request))
        assert status in (None, 400, 422)


def _encoded(translate: Callable[[Json], Json], request: Json) -> bytes:
    return transport.encode_body(translate(dict(request)))


@given(changed(ANTHROPIC_MESSAGE), changed(COMPLETION), changed(CONVERSE_ANSWER))
@example({**ANTHROPIC_MESSAGE, "usage": None}, COMPLETION, CONVERSE_ANSWER)
def test_answers(message: Json, completion: Json, answer: Json) -> None:
    for translated in (
        lambda: anthropic.completion_of(message),
        lambda: openai._completion(completion),
        lambda: bedrock_converse.completion_of(answer, "m"),
        lambda: answer_chunking.completion_chunks(completion),
        lambda: list(answer_chunking.lines("openai_chat", completion)),
        lambda: list(answer_chunking.lines("anthropic_messages", message)),
    ):
        assert _failure(translated) in (None, 502)


@given(changed(ANTHROPIC_EVENTS), changed(CHUNKS), changed(CONVERSE_EVENTS))
def test_streams(events: list[Any], chunks: list[Any], converse_events: list[Any]) -> None:
    objects = [event for event in events if isinstance(event, dict)]
    typed = [
        (event["type"], event["event"])
        for event in converse_events
        if isinstance(event, dict)
        and isinstance(event.get("type"), str)
        and isinstance(event.get("event"), dict)
    ]
    for stream in (
        anthropic.chunks_of(iter(objects)),
        map(openai._chunk, [chunk for chunk in chunks if isinstance(chunk, dict)]),
        bedrock_converse.chunks_of(iter(typed), "m"),
    ):
        sent: list[Json] = []
        assert _failure(partial(sent.extend, stream)) in (None, 502)
        assert all(map(_counts_are_valid, map(token_counts.token_counts_of, sent)))
        stream_assembly.assemble_completion(sent)


@given(
    changed(ANTHROPIC_MESSAGE),
    changed(ANTHROPIC_EVENTS),
    changed(COMPLETION),
    changed(GEMINI_ANSWER),
)
def test_token_counts(message: Json, events: list[Any], completion: Json, answer: Json) -> None:
    """They are whole numbers that are not negative, or are left out."""
    answers = [message, completion, answer, *events]
    for name in ("anthropic", "openai", "gemini"):
        provider = provider_of(_model(name))
        for item in answers:
            if isinstance(item, dict):
                assert _counts_are_valid(provider.usage(item))
    for item in answers:
        if isinstance(item, dict):
            assert _counts_are_valid(token_counts.token_counts_of(item))


def _counts_are_valid(counts: dict[str, int]) -> bool:
    return all(type(count) is int and count >= 0 for count in counts.values())


@pytest.mark.parametrize(
    ("usage", "output"),
    [
        ({"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 40}, 30),
        ({"prompt_tokens": 10, "completion_tokens": 30, "total_tokens": 40}, 30),
        ({"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}, 5),
        ({"prompt_tokens": 10, "completion_tokens": 5}, 5),
        ({"prompt_tokens": 0, "total_tokens": 0}, None),
    ],
)
def test_thoughts_of_gemini_are_output(usage: Json, output: int | None) -> None:
    """Google's OpenAI-compatible API counts them in the total alone, and charges them."""
    gemini = Gemini(_model("gemini"))
    assert gemini.chat_usage({"usage": usage}).get("output_tokens") == output
    assert gemini.usage({"usage": usage}).get("output_tokens") == output
    # Others' totals are what they are.
    openai_ = OpenAi(_model("openai"))
    assert openai_.chat_usage({"usage": usage}).get("output_tokens") == usage.get(
        "completion_tokens"
    )


def test_thoughts_of_geminis_own_answers_are_output() -> None:
    counts = Gemini(_model("gemini")).usage(GEMINI_ANSWER)
    assert counts == {"input_tokens": 3, "output_tokens": 6, "total_tokens": 9}
