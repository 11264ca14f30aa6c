"""Answers that came in parts, put together for whoever keeps them: what the same API would have
answered at once."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from mlcore.providers import completions, transport
from mlcore.providers.provider import (
    ANTHROPIC_MESSAGES,
    GEMINI_STREAM_GENERATE_CONTENT,
    OPENAI_CHAT,
    OPENAI_RESPONSES,
)

Json = dict[str, Any]


def passed_on(action: str, lines: Sequence[bytes]) -> Json | None:
    """Of the lines of a provider's events; None if they hold no answer."""
    reduce = _REDUCERS.get(action)
    try:
        return None if reduce is None else reduce(list(transport.events(iter(lines))))
    except (AttributeError, KeyError, TypeError, ValueError):
        return None  # a provider may send anything, and its caller has got it


def completion(chunks: Sequence[Json]) -> Json | None:
    """Of the chunks of a chat."""
    found: dict[int, Json] = {}
    usage: Json | None = None
    for chunk in chunks:
        usage = chunk.get("usage") or usage
        for choice in chunk.get("choices") or ():
            index = choice.get("index") or 0
            whole = found.setdefault(index, completions.choice(index, "", None, None))
            _add(whole, choice)
    if not chunks:
        return None
    last = chunks[-1]
    for whole in found.values():
        message = whole["message"]
        message["content"] = message["content"] or None
        message["tool_calls"] = list((message["tool_calls"] or {}).values()) or None
        whole["finish_reason"] = whole["finish_reason"] or "stop"
    return completions.completion(
        last.get("id"),
        last.get("created"),
        last.get("model"),
        [found[index] for index in sorted(found)],
        usage or {},
    )


def _add(whole: Json, choice: Json) -> None:
    delta, message = choice.get("delta") or {}, whole["message"]
    message["content"] += delta.get("content") or ""
    whole["finish_reason"] = choice.get("finish_reason") or whole["finish_reason"]
    for part in delta.get("tool_calls") or ():
        calls = message["tool_calls"] = message["tool_calls"] or {}
        call = calls.setdefault(part.get("index") or 0, completions.tool_call(None, "", ""))
        call["id"] = part.get("id") or call["id"]
        function = part.get("function") or {}
        for name in ("name", "arguments"):
            call["function"][name] += function.get(name) or ""


def _message(events: Sequence[Json]) -> Json | None:
    """Of Anthropic's events."""
    message: Json = {}
    blocks: dict[int, Json] = {}
    for event in events:
        kind, index = event.get("type"), event.get("index")
        if kind == "message_start":
            message = dict(event["message"])
        elif kind == "content_block_start" and isinstance(index, int):
            blocks[index] = {**event["content_block"], "_json": ""}
        elif kind == "content_block_delta" and index in blocks:
            delta, block = event["delta"], blocks[index]
            for name in ("text", "thinking"):
                if name in delta:
                    block[name] = block.get(name, "") + delta[name]
            block["_json"] += delta.get("partial_json", "")
        elif kind == "message_delta":
            message |= event["delta"]
            message["usage"] = {**(message.get("usage") or {}), **(event.get("usage") or {})}
    for block in blocks.values():
        text = block.pop("_json")
        if block.get("type") == "tool_use":
            block["input"] = json.loads(text) if text else {}
    return {**message, "content": [blocks[at] for at in sorted(blocks)]} if message else None


def _contents(events: Sequence[Json]) -> Json | None:
    """Of Gemini's events, each of which is an answer of its own."""
    found: dict[int, Json] = {}
    usage: Json | None = None
    for event in events:
        usage = event.get("usageMetadata") or usage
        for place, one in enumerate(event.get("candidates") or ()):
            index = one.get("index", place)
            whole = found.setdefault(
                index,
                {"content": {"parts": [], "role": "model"}, "finishReason": None, "index": index},
            )
            parts = whole["content"]["parts"]
            for part in (one.get("content") or {}).get("parts") or ():
                if set(part) == {"text"} and parts and set(parts[-1]) == {"text"}:
                    parts[-1] = {"text": parts[-1]["text"] + part["text"]}
                else:
                    parts.append(part)
            whole["finishReason"] = one.get("finishReason") or whole["finishReason"]
    if not found:
        return None
    told = {"usageMetadata": usage} if usage else {}
    return {"candidates": [found[index] for index in sorted(found)], **told}


def _response(events: Sequence[Json]) -> Json | None:
    """Of OpenAI's Responses API, whose last event has all of it."""
    ended = [one["response"] for one in events if one.get("type") == "response.completed"]
    return ended[-1] if ended else None


_REDUCERS: Final[Mapping[str, Callable[[Sequence[Json]], Json | None]]] = {
    OPENAI_CHAT: completion,
    OPENAI_RESPONSES: _response,
    ANTHROPIC_MESSAGES: _message,
    GEMINI_STREAM_GENERATE_CONTENT: _contents,
}
