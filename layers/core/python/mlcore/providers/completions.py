"""Builders for completions, chunks and embeddings in the form in which MLflow's gateway returns
them: OpenAI's, with all of its fields; ``usage`` may have further fields of the provider."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeGuard

CACHE_CREATION: Final = "cache_creation"
"""A field of Anthropic's token counts: tokens written to a cache, by how long it lives."""
AN_HOUR: Final = "ephemeral_1h_input_tokens"
FIVE_MINUTES: Final = "ephemeral_5m_input_tokens"

Json = dict[str, Any]

MAX_COUNT: Final = 2**24
"""Token counts from here on are ignored: the largest model reads 10 million tokens. The limit is
needed because a provider's address may be a user's own, and its counts are added to sums over many
users."""


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


def token_counts_of(answer: Mapping[str, Any]) -> dict[str, int]:
    """Returns the token counts in a completion, chunk or embeddings answer, by MLflow's names."""
    usage_ = answer.get("usage")
    if not isinstance(usage_, dict):
        return {}
    details = usage_.get("prompt_tokens_details")
    counts = {
        "input_tokens": usage_.get("prompt_tokens"),
        "output_tokens": usage_.get("completion_tokens"),
        "total_tokens": usage_.get("total_tokens"),
        "cache_read_input_tokens": (
            details.get("cached_tokens") if isinstance(details, dict) else None
        ),
        "cache_creation_input_tokens": usage_.get("cache_creation_input_tokens"),
    }
    known = {name: count for name, count in counts.items() if is_count(count)}
    return known | long_cached(usage_)


def long_cached(usage_: Any) -> dict[str, int]:
    """Returns the number of tokens written to the one-hour prompt cache (they have a higher price),
    under MLflow's name for it; empty if the provider does not report it.

    Args:
        usage_: the ``usage`` of an answer, with the field ``cache_creation`` of Anthropic's API.
    """
    by_lifetime = usage_.get(CACHE_CREATION) if isinstance(usage_, dict) else None
    count = by_lifetime.get(AN_HOUR) if isinstance(by_lifetime, dict) else None
    return {"cache_creation_input_tokens_above_1hr": count} if is_count(count) else {}


def is_count(value: Any) -> TypeGuard[int]:
    """Whether a value is a number of tokens: whole, not negative, and no more than a call can
    have."""
    return type(value) is int and 0 <= value < MAX_COUNT
