"""Chats, chunks and embeddings in the shape that MLflow's gateway answers with: OpenAI's, all of
its fields there and nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Json = dict[str, Any]


def completion(
    answer_id: Any, created: Any, model: Any, choices: Sequence[Json], usage: Json
) -> Json:
    return {
        "id": answer_id,
        "object": "chat.completion",
        "created": created,
        "model": model,
        "choices": list(choices),
        "usage": usage,
    }


def choice(
    index: int,
    content: Any,
    tool_calls: Sequence[Json] | None,
    finish_reason: Any,
    role: str = "assistant",
) -> Json:
    message = {
        "role": role,
        "content": content,
        "tool_calls": tool_calls or None,
        "refusal": None,
    }
    return {"index": index, "message": message, "finish_reason": finish_reason}


def tool_call(call_id: Any, name: Any, arguments: Any, **more: Any) -> Json:
    made = {
        "id": call_id,
        "type": "function",
        "function": {"name": name, "arguments": arguments},
    }
    return made | {key: value for key, value in more.items() if value is not None}


def chunk(
    answer_id: Any, created: Any, model: Any, choices: Sequence[Json], usage: Json | None
) -> Json:
    return {
        "id": answer_id,
        "object": "chat.completion.chunk",
        "created": created,
        "model": model,
        "choices": list(choices),
        "usage": usage,
    }


def delta(
    index: int,
    finish_reason: Any = None,
    *,
    role: Any = None,
    content: Any = None,
    tool_calls: Sequence[Json] | None = None,
) -> Json:
    said = {"role": role, "content": content, "tool_calls": tool_calls or None}
    return {"index": index, "finish_reason": finish_reason, "delta": said}


def call_delta(
    index: int,
    *,
    call_id: Any = None,
    kind: Any = None,
    name: Any = None,
    arguments: Any = None,
    **more: Any,
) -> Json:
    made = {
        "index": index,
        "id": call_id,
        "type": kind,
        "function": {"name": name, "arguments": arguments},
    }
    return made | {key: value for key, value in more.items() if value is not None}


def usage(
    prompt: int | None,
    completion: int | None,
    total: int | None,
    cached: Any = None,
    more: Mapping[str, Any] | None = None,
) -> Json:
    """Args:
    cached: tokens of the prompt that were read from a cache; None for nothing said.
    more: what else the provider tells.
    """
    made: Json = {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": total,
    }
    if cached is not None:
        made["prompt_tokens_details"] = {"cached_tokens": cached}
    return {**made, **(more or {})}


def embedded(vectors: Sequence[Any], model: Any, prompt: Any, total: Any) -> Json:
    return {
        "object": "list",
        "data": [
            {"object": "embedding", "embedding": vector, "index": index}
            for index, vector in enumerate(vectors)
        ],
        "model": model,
        "usage": {"prompt_tokens": prompt, "total_tokens": total},
    }


def used(answer: Mapping[str, Any]) -> dict[str, int]:
    """What a completion, a chunk or embeddings tell of tokens, by MLflow's names."""
    told = answer.get("usage")
    if not isinstance(told, dict):
        return {}
    details = told.get("prompt_tokens_details") or {}
    found = {
        "input_tokens": told.get("prompt_tokens"),
        "output_tokens": told.get("completion_tokens"),
        "total_tokens": told.get("total_tokens"),
        "cache_read_input_tokens": details.get("cached_tokens"),
        "cache_creation_input_tokens": told.get("cache_creation_input_tokens"),
    }
    return {name: count for name, count in found.items() if isinstance(count, int)}
