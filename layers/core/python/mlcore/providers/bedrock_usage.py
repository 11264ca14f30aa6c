"""Reads the token counts in answers of Amazon Bedrock. Each operation, and each vendor's models,
report them in another form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from mlcore.providers import anthropic
from mlcore.providers.token_counts import is_count, token_counts_of, with_total

Json = dict[str, Any]
_Names = tuple[str, str, str, str]

_CONVERSE: Final[_Names] = (
    *("inputTokens", "outputTokens"),
    *("cacheReadInputTokens", "cacheWriteInputTokens"),
)
"""The names of four counts: input, output, tokens read from a cache, and tokens written to one."""
_NOVA: Final[_Names] = (
    *("inputTokens", "outputTokens"),
    *("cacheReadInputTokenCount", "cacheWriteInputTokenCount"),
)
"""The same in answers of Amazon's own models to InvokeModel."""
_METRICS: Final[_Names] = (
    *("inputTokenCount", "outputTokenCount"),
    *("cacheReadInputTokenCount", "cacheWriteInputTokenCount"),
)
_HEADERS: Final[_Names] = (
    *("x-amzn-bedrock-input-token-count", "x-amzn-bedrock-output-token-count"),
    "x-amzn-bedrock-cache-read-input-token-count",
    "x-amzn-bedrock-cache-write-input-token-count",
)
_LAST_CHUNK: Final = "amazon-bedrock-invocationMetrics"
"""The field with token counts in the last chunk of InvokeModelWithResponseStream, of all models."""
_MAX_DIGITS: Final = 9


def counts_of(answer: Json) -> dict[str, int]:
    """Returns the token counts in an answer of Bedrock (of Converse, or of a model in its own
    form), or in one event of its streams, by MLflow's names; empty if there are none."""
    metrics = answer.get(_LAST_CHUNK)
    if isinstance(metrics, dict):
        return _counts(metrics, _METRICS)
    usage = answer.get("usage")
    if isinstance(usage, dict) and ("inputTokens" in usage or "outputTokens" in usage):
        is_nova = any(name in usage for name in _NOVA[2:])
        counts = _counts(usage, _NOVA if is_nova else _CONVERSE)
        return counts | _for_an_hour(usage.get("cacheDetails"))
    if isinstance(usage, dict) and "prompt_tokens" in usage:
        return with_total(token_counts_of(answer))
    return anthropic.usage_of(answer)


def headers_with_counts(headers: Mapping[str, str]) -> dict[str, str]:
    """Returns those headers of an answer in which Bedrock reports token counts, by name in lower
    case."""
    return {name: value for name in _HEADERS if (value := headers.get(name, ""))}


def counts_in_headers(headers: Mapping[str, str]) -> dict[str, int]:
    """Returns the token counts in headers from :func:`headers_with_counts`, by MLflow's names."""
    numbers = {
        name: int(value)
        for name, value in headers.items()
        if value.isascii() and value.isdigit() and len(value) <= _MAX_DIGITS
    }
    return _counts(numbers, _HEADERS)


def _counts(reported: Mapping[str, Any], names: _Names) -> dict[str, int]:
    """Converts counts to MLflow's names. MLflow's input includes tokens that were read from a cache
    or written to one; Bedrock counts these separately."""
    plain, output, read, written = (
        value if is_count(value := reported.get(name)) else None for name in names
    )
    counts: dict[str, int] = {}
    if plain is not None:
        counts["input_tokens"] = plain + (read or 0) + (written or 0)
    if output is not None:
        counts["output_tokens"] = output
    if read is not None:
        counts["cache_read_input_tokens"] = read
    if written is not None:
        counts["cache_creation_input_tokens"] = written
    return with_total(counts)


def _for_an_hour(details: Any) -> dict[str, int]:
    """Returns the number of tokens that were written to the one-hour prompt cache, which have a
    higher price, under MLflow's name for it."""
    tokens = [
        detail.get("inputTokens")
        for detail in (details if isinstance(details, list) else ())
        if isinstance(detail, dict) and detail.get("ttl") == "1h"
    ]
    counted = sum(filter(is_count, tokens))
    return {"cache_creation_input_tokens_above_1hr": counted} if counted else {}
