"""Assembles the parts of a streamed answer into the answer that the same API would have returned at
once, for the trace."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from mlcore.providers import openai_answers, transport
from mlcore.providers.provider import (
    ANTHROPIC_MESSAGES,
    GEMINI_STREAM_GENERATE_CONTENT,
    OPENAI_CHAT,
    OPENAI_RESPONSES,
)
from mlcore.wire.json_text import parse_json_text

Json = dict[str, Any]


def assemble_passthrough(action: str, lines: Sequence[bytes]) -> Json | None:
    """Joins the event lines of a passthrough stream to the complete answer; None if they hold no
    answer, or if the form of the action's stream is not known."""
    assemble = _ASSEMBLERS.get(action)
    if assemble is None:
        return None
    return _assembled(assemble, list(transport.events(iter(lines))))


def assemble_completion(chunks: Sequence[Json]) -> Json | None:
    """Joins the chunks of a streamed chat to the completion that they describe; None without
    chunks, or if a provider sent chunks that do not have the form of OpenAI's."""
    return _assembled(_assemble_openai, chunks)


def assemble_message(events: Sequence[Json]) -> Json | None:
    """Joins the stream events of Anthropic's API to the message that they describe; None if they
    describe no message."""
    return _assembled(_assemble_anthropic, events)


def _assembled(
    assemble: Callable[[Sequence[Json]], Json | None], events: Sequence[Json]
) -> Json | None:
    try:
        return assemble(events)
    except (AttributeError, KeyError, TypeError, ValueError):
        return None  # the events may be anything; the caller has received them anyway


def _assemble_openai(chunks: Sequence[Json]) -> Json | None:
    choices: dict[int, Json] = {}
    usage: Json | None = None
    for chunk in chunks:
        usage = chunk.get("usage") or usage
        for choice in chunk.get("choices") or ():
            index = choice.get("index") or 0
            assembled = choices.setdefault(index, openai_answers.choice(index, "", None, None))
            _add_delta(assembled, choice)
    if not chunks:
        return None
    last = chunks[-1]
    for assembled in choices.values():
        message = assembled["message"]
        message["content"] = message["content"] or None
        message["tool_calls"] = list((message["tool_calls"] or {}).values()) or None
        assembled["finish_reason"] = assembled["finish_reason"] or "stop"
    return openai_answers.completion(
        last.get("id"),
        last.get("created"),
        last.get("model"),
        [choices[index] for index in sorted(choices)],
        usage or {},
    )


def _add_delta(assembled: Json, choice: Json) -> None:
    delta, message = choice.get("delta") or {}, assembled["message"]
    message["content"] += delta.get("content") or ""
    assembled["finish_reason"] = choice.get("finish_reason") or assembled["finish_reason"]
    for part in delta.get("tool_calls") or ():
        calls = message["tool_calls"] = message["tool_calls"] or {}
        call = calls.setdefault(part.get("index") or 0, openai_answers.tool_call(None, "", ""))
        call["id"] = part.get("id") or call["id"]
        function = part.get("function") or {}
        for name in ("name", "arguments"):
            call["function"][name] += function.get(name) or ""


def _assemble_anthropic(events: Sequence[Json]) -> Json | None:
    """Joins Anthropic's stream events to the message that they describe; None without the message's
    first event."""
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
            block["input"] = parse_json_text(text, lone_surrogates=True) if text else {}
    return {**message, "content": [blocks[index] for index in sorted(blocks)]} if message else None


def _assemble_gemini(events: Sequence[Json]) -> Json | None:
    """Joins the candidates and the usage in Gemini's events (each has the form of an answer); None
    without a candidate."""
    candidates: dict[int, Json] = {}
    usage: Json | None = None
    for event in events:
        usage = event.get("usageMetadata") or usage
        for position, candidate in enumerate(event.get("candidates") or ()):
            index = candidate.get("index", position)
            assembled = candidates.setdefault(
                index,
                {"content": {"parts": [], "role": "model"}, "finishReason": None, "index": index},
            )
            parts = assembled["content"]["parts"]
            for part in (candidate.get("content") or {}).get("parts") or ():
                if set(part) == {"text"} and parts and set(parts[-1]) == {"text"}:
                    parts[-1] = {"text": parts[-1]["text"] + part["text"]}
                else:
                    parts.append(part)
            assembled["finishReason"] = candidate.get("finishReason") or assembled["finishReason"]
    if not candidates:
        return None
    usage_field = {"usageMetadata": usage} if usage else {}
    return {"candidates": [candidates[index] for index in sorted(candidates)], **usage_field}


def _assemble_openai_response(events: Sequence[Json]) -> Json | None:
    """Returns the response of OpenAI's Responses API, which the last event of its stream contains;
    None without that event."""
    responses = [event["response"] for event in events if event.get("type") == "response.completed"]
    return responses[-1] if responses else None


_ASSEMBLERS: Final[Mapping[str, Callable[[Sequence[Json]], Json | None]]] = {
    OPENAI_CHAT: _assemble_openai,
    OPENAI_RESPONSES: _assemble_openai_response,
    ANTHROPIC_MESSAGES: _assemble_anthropic,
    GEMINI_STREAM_GENERATE_CONTENT: _assemble_gemini,
}
