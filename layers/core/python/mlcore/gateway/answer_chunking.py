"""Converts a model provider's complete answer into the events of a stream of the provider's API.

Guardrails that check answers need the complete answer. So the provider is asked without streaming
even if the caller asked for a stream.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from mlcore.providers import openai_answers
from mlcore.providers.openai import unexpected_answer
from mlcore.providers.provider import (
    ANTHROPIC_MESSAGES,
    GEMINI_GENERATE_CONTENT,
    GEMINI_STREAM_GENERATE_CONTENT,
    OPENAI_CHAT,
)

Json = dict[str, Any]

WHOLE_ACTIONS: Final[Mapping[str, str]] = {
    OPENAI_CHAT: OPENAI_CHAT,
    ANTHROPIC_MESSAGES: ANTHROPIC_MESSAGES,
    GEMINI_STREAM_GENERATE_CONTENT: GEMINI_GENERATE_CONTENT,
}
"""For each action whose stream :func:`lines` can encode, the action that returns the answer
whole."""

_DELTAS: Final = {
    "text": ("text", "text_delta", "text"),
    "thinking": ("thinking", "thinking_delta", "thinking"),
}
"""For each type of Anthropic's content blocks that grows: the field that grows, the type of its
deltas, and the field of a delta. https://docs.claude.com/en/docs/build-with-claude/streaming"""


def completion_chunks(completion: Json) -> list[Json]:
    """Returns an OpenAI chat completion as the chunks of a streamed answer: one with the messages,
    and one with the usage. Raises GatewayCallFailed (502) if the completion does not have the form
    of OpenAI's API."""
    head = {
        **{name: value for name, value in completion.items() if name not in ("choices", "usage")},
        "object": "chat.completion.chunk",
    }
    try:
        choices = [
            {
                **{name: value for name, value in choice.items() if name != "message"},
                "index": choice.get("index", position),
                "delta": _message_delta(choice["message"]),
            }
            for position, choice in enumerate(completion["choices"])
        ]
    except (KeyError, TypeError, AttributeError) as error:
        raise unexpected_answer(error) from None
    usage = completion.get("usage") or None
    return [
        {**head, "choices": choices, "usage": None},
        {**head, "choices": [], "usage": usage},
    ]


def lines(action: str, answer: Json) -> Iterator[bytes]:
    """Returns a model provider's complete answer as lines of an event stream of the same API.

    Args:
        action: a key of :data:`WHOLE_ACTIONS`.

    Raises:
        GatewayCallFailed: the answer does not have the form of the API; status 502.
    """
    try:
        events = list(_ENCODERS[action](answer))
    except (KeyError, TypeError, AttributeError) as error:
        raise unexpected_answer(error) from None
    return (line for event in events for line in event.splitlines(keepends=True))


def _message_delta(message: Json) -> Json:
    delta = {name: value for name, value in message.items() if value is not None}
    calls = message.get("tool_calls")
    if calls:
        delta["tool_calls"] = [{**call, "index": index} for index, call in enumerate(calls)]
    return {**openai_answers.delta(0)["delta"], **delta}


def _openai_events(completion: Json) -> Iterator[bytes]:
    for chunk in completion_chunks(completion):
        yield _event(chunk)
    yield b"data: [DONE]\n\n"


def _gemini_events(answer: Json) -> Iterator[bytes]:
    """Yields Gemini's answer as the only event, since each event of its streams has the form of an
    answer."""
    yield _event(answer)


def _anthropic_events(message: Json) -> Iterator[bytes]:
    usage = message.get("usage") or {}
    start = {**message, "content": [], "stop_reason": None, "stop_sequence": None}
    yield _named_event("message_start", message={**start, "usage": {**usage, "output_tokens": 0}})
    for index, block in enumerate(message["content"]):
        start_block, deltas = _block_parts(block)
        yield _named_event("content_block_start", index=index, content_block=start_block)
        for delta in deltas:
            yield _named_event("content_block_delta", index=index, delta=delta)
        yield _named_event("content_block_stop", index=index)
    end = {name: message.get(name) for name in ("stop_reason", "stop_sequence")}
    output = {"output_tokens": usage.get("output_tokens", 0)}
    yield _named_event("message_delta", delta=end, usage=output)
    yield _named_event("message_stop")


def _block_parts(block: Json) -> tuple[Json, list[Json]]:
    """Returns a content block of Anthropic's as it starts, and the deltas that complete it. Blocks
    of types without deltas are complete at the start, as in Anthropic's streams."""
    kind = block["type"]
    if kind == "tool_use":
        delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        return {**block, "input": {}}, [delta]
    if kind not in _DELTAS:
        return block, []
    field, delta_type, delta_field = _DELTAS[kind]
    deltas = [{"type": delta_type, delta_field: block[field]}]
    start = {**block, field: ""}
    if "signature" in block:
        deltas.append({"type": "signature_delta", "signature": block["signature"]})
        start["signature"] = ""
    return start, deltas


def _named_event(name: str, **fields: Any) -> bytes:
    return f"event: {name}\n".encode() + _event({"type": name, **fields})


def _event(data: Json) -> bytes:
    # Escaped, so that no character of a text is read as the end of a line.
    return f"data: {json.dumps(data)}\n\n".encode()


_ENCODERS: Final[Mapping[str, Callable[[Json], Iterator[bytes]]]] = {
    OPENAI_CHAT: _openai_events,
    ANTHROPIC_MESSAGES: _anthropic_events,
    GEMINI_STREAM_GENERATE_CONTENT: _gemini_events,
}
