"""Builders for completions, chunks and embeddings in the form in which MLflow's gateway returns
them: OpenAI's, with all of its fields; ``usage`` may have further fields of the provider."""

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
    call = {
        "id": call_id,
        "type": "function",
        "function": {"name": name, "arguments": arguments},
    }
    return call | {key: value for key, value in more.items() if value is not None}


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
    message_delta = {"role": role, "content": content, "tool_calls": tool_calls or None}
    return {"index": index, "finish_reason": finish_reason, "delta": message_delta}


def call_delta(
    index: int,
    *,
    call_id: Any = None,
    call_type: Any = None,
    name: Any = None,
    arguments: Any = None,
    **more: Any,
) -> Json:
    """Returns a part of a streamed tool call. Fields that are None are left out, as in OpenAI's
    streams: only the first part of a call has an id, a type and a name."""
    function = {"name": name, "arguments": arguments}
    call = {"id": call_id, "type": call_type, **more}
    return {
        "index": index,
        **{key: value for key, value in call.items() if value is not None},
        "function": {key: value for key, value in function.items() if value is not None},
    }


def usage(
    prompt: int | None,
    completion: int | None,
    total: int | None,
    cached: Any = None,
    more: Mapping[str, Any] | None = None,
) -> Json:
    """Returns the object ``usage`` of an answer in OpenAI's form, from token counts, of which
    unknown ones are None.

    Args:
        cached: prompt tokens that were read from a cache; None if not reported.
        more: further fields that the provider reports.
    """
    fields: Json = {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": total,
    }
    if cached is not None:
        fields["prompt_tokens_details"] = {"cached_tokens": cached}
    return {**fields, **(more or {})}


def embeddings(vectors: Sequence[Any], model: Any, prompt: Any, total: Any) -> Json:
    return {
        "object": "list",
        "data": [
            {"object": "embedding", "embedding": vector, "index": index}
            for index, vector in enumerate(vectors)
        ],
        "model": model,
        "usage": {"prompt_tokens": prompt, "total_tokens": total},
    }
