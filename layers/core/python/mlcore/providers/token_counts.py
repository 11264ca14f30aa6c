"""Token counts in the answers of model providers: MLflow's names for them, and their limits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeGuard

CACHE_CREATION: Final = "cache_creation"
"""A field of Anthropic's token counts: tokens written to a cache, by how long it lives."""
AN_HOUR: Final = "ephemeral_1h_input_tokens"
FIVE_MINUTES: Final = "ephemeral_5m_input_tokens"
MAX_COUNT: Final = 2**24
"""Token counts from here on are ignored: the largest model reads 10 million tokens. The limit is
needed because a provider's address may be a user's own, and its counts are added to sums over many
users."""


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


def token_counts(
    usage: Any, input_key: str, output_key: str, total_key: str = "", cached: str = ""
) -> dict[str, int]:
    """Converts a provider's token counts to MLflow's names; counts that are missing or no numbers
    are left out.

    Args:
        usage: the provider's counts.
        cached: the key of tokens read from a cache; a dot separates a nested key.
    """
    if not isinstance(usage, dict):
        return {}
    outer, _, inner = cached.partition(".")
    cached_value = usage.get(outer)
    counts = {
        "input_tokens": usage.get(input_key),
        "output_tokens": usage.get(output_key),
        "total_tokens": usage.get(total_key),
        "cache_read_input_tokens": (
            (cached_value.get(inner) if isinstance(cached_value, dict) else None)
            if inner
            else cached_value
        ),
    }
    known_counts = {name: count for name, count in counts.items() if is_count(count)}
    return with_total(known_counts)


def with_total(usage: dict[str, int]) -> dict[str, int]:
    """Adds ``total_tokens`` to token counts if it is missing and input and output are known.
    Returns the same dict."""
    if "total_tokens" not in usage and {"input_tokens", "output_tokens"} <= usage.keys():
        usage["total_tokens"] = usage["input_tokens"] + usage["output_tokens"]
    return usage


def consistent(usage: Mapping[str, int]) -> dict[str, int]:
    """Returns the token counts of an ended call of a model, with the total and without
    contradictions.

    The input includes the tokens that were read from a cache or written to one, so both together
    are limited to the input. The total is at least the sum of input and output. Contradictory
    counts of a provider would lead to a wrong cost.
    """
    counts = dict(usage)
    rest = counts.get("input_tokens", 0)
    for name in ("cache_read_input_tokens", "cache_creation_input_tokens"):
        if name in counts:
            counts[name] = min(counts[name], rest)
            rest -= counts[name]
    parts = counts.get("input_tokens", 0) + counts.get("output_tokens", 0)
    if counts.get("total_tokens", parts) < parts:
        counts["total_tokens"] = parts
    return with_total(counts)
