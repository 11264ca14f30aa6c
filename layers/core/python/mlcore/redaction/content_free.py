"""Removes the content of traces, for a redaction rule with ``"content": "none"``. Ids, times,
names, types, states and numbers stay; texts that were sent to a model or returned by it do not.

This module lists what stays. Any other attribute, tag or entry of metadata is dropped. A listed one
is kept only if its value has the expected form, since clients may send any text under any name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from mlcore import reserved_tags
from mlcore.wire.json_text import load_json

_WORD: Final = re.compile(r"[\w.:/+-]{1,250}(?:@[0-9-]{1,20})?", re.ASCII)
"""The form of an id, a version, or the name of a type, model (``claude@20240620``), provider or
program. It matches no sentence and no e-mail address."""
_AMOUNTS: Final = frozenset(
    (
        *("input_tokens", "output_tokens", "total_tokens", "cache_read_input_tokens"),
        *("cache_creation_input_tokens", "cache_creation_input_tokens_above_1hr"),
        *("input_cost", "output_cost", "total_cost"),
        *("total_size_bytes", "num_spans", "max", "p25", "p50", "p75"),
    )
)
"""The names of numbers that stay in token usage, cost and size statistics."""
_VERDICTS: Final = frozenset(
    (
        *(
            "yes",
            "no",
            "true",
            "false",
            "pass",
            "fail",
            "passed",
            "failed",
            "good",
            "bad",
            "unknown",
        ),
        *("correct", "incorrect", "partial", "positive", "negative", "neutral", "high", "medium"),
        *("low", "excellent", "poor", "safe", "unsafe", "relevant", "irrelevant", "n/a"),
    )
)
"""The values of feedback that stay if they are strings, in lower case."""


def word(text: Any) -> Any:
    """Returns a value that may be stored without redaction: one that has the form of an id, a
    version or a name of a type, model or provider. None for any other value."""
    return text if isinstance(text, str) and _WORD.fullmatch(text) else None


def feedback_value(value: Any) -> Any:
    """Returns what is stored of a feedback's value when the content of its trace is removed: the
    value if it is a number, a boolean or a known word such as ``yes``; None otherwise."""
    if isinstance(value, str):
        return value if value.strip().lower() in _VERDICTS else None
    return value if isinstance(value, bool | int | float) else None


def _numbers(value: Any) -> dict[str, float] | None:
    """Returns the numbers of an object whose names may stay; None if there are none."""
    if not isinstance(value, Mapping):
        return None
    return {
        key: number for key, number in value.items() if key in _AMOUNTS and _is_number(number)
    } or None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _number(value: Any) -> Any:
    return value if _is_number(value) else None


_Form = Callable[[Any], Any]
_ATTRIBUTES: Final[Mapping[str, _Form]] = {
    reserved_tags.SPAN_TRACE_ID: word,
    reserved_tags.SPAN_TYPE: word,
    reserved_tags.SPAN_LOG_LEVEL: _number,
    "session.id": word,
    "gen_ai.conversation.id": word,
    reserved_tags.SPAN_MODEL: word,
    reserved_tags.SPAN_PROVIDER: word,
    reserved_tags.SPAN_TOKEN_USAGE: _numbers,
    reserved_tags.SPAN_COST: _numbers,
}
"""The attributes of spans that stay. Each has a function that returns the allowed part of the
value, or None."""
_WORDS: Final = (
    reserved_tags.TRACE_SESSION,
    reserved_tags.SOURCE_RUN,
    reserved_tags.MODEL_ID,
    reserved_tags.TRACE_SCHEMA,
    reserved_tags.TRACE_FINALIZED,
    "mlflow.trace.sizeBytes",
    reserved_tags.GATEWAY_ENDPOINT,
    reserved_tags.GATEWAY_REQUEST_TYPE,
    "mlflow.source.type",
    "mlflow.source.git.commit",
    reserved_tags.ASSESSMENT_RUN,
    "service.name",
    "service.version",
    "telemetry.sdk.language",
    "telemetry.sdk.name",
    "telemetry.sdk.version",
)
_AS_THEY_ARE: Final = (*reserved_tags.TRACE_LOCATIONS, reserved_tags.TRACE_NAME)
"""Tags that stay with any value: those that only the server sets, and the trace's name, which is
the name of its first span."""
_NUMBERS: Final = (
    reserved_tags.TRACE_TOKEN_USAGE,
    reserved_tags.TRACE_COST,
    reserved_tags.TRACE_SIZE_STATS,
)


def attributes(original: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the attributes of a span that stay when the content of its trace is removed.

    Args:
        original: all attributes. Values are JSON texts; in files of spans also other JSON values.
    """
    kept = {}
    for key, form in _ATTRIBUTES.items():
        value = original.get(key)
        parsed = _parsed(value)
        allowed = form(parsed)
        if allowed is not None:
            kept[key] = value if allowed == parsed else _like(value, allowed)
    return kept


def entries(original: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the entries of a trace's tags, of its metadata, or of a resource's attributes that
    stay when a redaction rule removes the trace's content."""
    kept = {}
    for key, value in original.items():
        if key in _AS_THEY_ARE or (key in _WORDS and word(value)):
            kept[key] = value
        elif key in _NUMBERS:
            parsed = _parsed(value)
            allowed = _numbers(parsed)
            if allowed is not None:
                kept[key] = value if allowed == parsed else _like(value, allowed)
    return kept


def _parsed(value: Any) -> Any:
    """Returns the value of a JSON text; any other string or value unchanged."""
    if not isinstance(value, str):
        return value
    try:
        return load_json(value)
    except ValueError:
        return value


def _like(original: Any, allowed: Any) -> Any:
    return json.dumps(allowed) if isinstance(original, str) else allowed
