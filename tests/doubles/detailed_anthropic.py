"""Anthropic's Messages API in detail: answers with all fields that the API reference shows, for
comparing what SDKs make of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from tests.doubles.detailed_openai import JSON_TEXT, arguments, asked_failure
from tests.doubles.providers import Asked, Json, Told, events

FAILURES: Final[Mapping[int, Json]] = {
    400: {"type": "invalid_request_error", "message": "prompt is too long: 250000 tokens"},
    401: {"type": "authentication_error", "message": "invalid x-api-key"},
    403: {"type": "permission_error", "message": "Your API key may not use the model."},
    404: {"type": "not_found_error", "message": "model: claude-none"},
    422: {"type": "invalid_request_error", "message": "The request cannot be processed."},
    429: {"type": "rate_limit_error", "message": "This request would exceed your rate limit."},
    500: {"type": "api_error", "message": "Internal server error"},
    529: {"type": "overloaded_error", "message": "Overloaded"},
}
_USAGE: Final[Json] = {
    "input_tokens": 2095,
    "cache_creation_input_tokens": 20,
    "cache_read_input_tokens": 30,
    "cache_creation": {"ephemeral_5m_input_tokens": 20, "ephemeral_1h_input_tokens": 0},
    "output_tokens": 503,
    "server_tool_use": None,
    "service_tier": "standard",
}


def answer(request: Asked) -> Told:
    """A model at Anthropic. It uses the tools that it is given, unless it has their results."""
    body = request.body
    text = _text(body["messages"][-1]["content"])
    status = asked_failure(text)
    if status is not None:
        error = {
            "type": "error",
            "error": FAILURES[status],
            "request_id": "req_011CSHoEeqs5C35K2UU",
        }
        return Told(status, error, headers={"x-should-retry": "false"})
    path = request.path.partition("?")[0]
    if path.endswith("/count_tokens"):
        return Told(body={"input_tokens": 2095})
    if not path.endswith("/messages"):
        return Told(404, {"type": "error", "error": FAILURES[404]})
    blocks, stop = _blocks(body, text)
    message: Json = {
        "id": "msg_013Zva2CMHLNnXjNJJKqJ2EF",
        "type": "message",
        "role": "assistant",
        "model": f"{body['model']}-20250929",
        "content": blocks,
        "stop_reason": stop,
        "stop_sequence": None,
        "usage": _USAGE,
    }
    return _stream(message) if body.get("stream") else Told(body=message)


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    texts = [part["text"] for part in content if part["type"] == "text"]
    others = [part["type"] for part in content if part["type"] != "text"]
    return " ".join([*texts, *others])


def _blocks(body: Json, text: str) -> tuple[list[Json], str]:
    """The content of the answer, and why it stops."""
    thinking: Json = {
        "type": "thinking",
        "thinking": "Let me see.",
        "signature": "EqQBCgIYAhIM1g==",
    }
    first = [thinking] if (body.get("thinking") or {}).get("type") == "enabled" else []
    if "output_format" in body or "format" in (body.get("output_config") or {}):
        return [*first, {"type": "text", "text": JSON_TEXT}], "end_turn"
    if body.get("tools") and "tool_result" not in text:
        uses = [
            {
                "type": "tool_use",
                "id": f"toolu_01T1x1fJ34qAmk2tNTrN7Up{number}",
                "name": tool["name"],
                "input": json.loads(arguments(tool["input_schema"])),
            }
            for number, tool in enumerate(body["tools"][:2])
        ]
        return [*first, {"type": "text", "text": "I look it up."}, *uses], "tool_use"
    return [*first, {"type": "text", "text": f"echo: {text}"}], "end_turn"


def _stream(message: Json) -> Told:
    begun = {
        **message,
        "content": [],
        "stop_reason": None,
        "usage": {**_USAGE, "output_tokens": 1},
    }
    told: list[Json] = [{"type": "message_start", "message": begun}]
    for index, block in enumerate(message["content"]):
        empty, deltas = _pieces(block)
        told.append({"type": "content_block_start", "index": index, "content_block": empty})
        told += [{"type": "content_block_delta", "index": index, "delta": d} for d in deltas]
        told.append({"type": "content_block_stop", "index": index})
        if index == 0:
            told.append({"type": "ping"})
    end = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    told.append({"type": "message_delta", "delta": end, "usage": {"output_tokens": 503}})
    told.append({"type": "message_stop"})
    return events(*told, named=True, done=False)


def _pieces(block: Json) -> tuple[Json, list[Json]]:
    """A block as it starts, and its deltas."""
    if block["type"] == "tool_use":
        text = json.dumps(block["input"], ensure_ascii=False)
        pieces = ["", *(text[at : at + 7] for at in range(0, len(text), 7))]
        deltas: list[Json] = [{"type": "input_json_delta", "partial_json": p} for p in pieces]
        return {**block, "input": {}}, deltas
    name = block["type"]
    text = block[name]
    deltas = [{"type": f"{name}_delta", name: text[at : at + 5]} for at in range(0, len(text), 5)]
    empty = {**block, name: ""}
    if "signature" in block:
        deltas.append({"type": "signature_delta", "signature": block["signature"]})
        empty["signature"] = ""
    return empty, deltas
