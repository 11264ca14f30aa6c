"""Adds MLflow's attributes to a span that has only those of another instrumentation."""

from __future__ import annotations

import json
from typing import Any, Final

from mlcore import reserved_tags
from mlcore.spans.attribute_values import Attributes
from mlcore.spans.names import SPAN_MESSAGE_FORMAT, SPAN_TOOLS, TOKEN_KEYS
from traces.conventions.conventions import (
    Convention,
    Events,
    GenAi,
    GoogleAdk,
    Laminar,
    Langfuse,
    OpenInference,
    SpringAi,
    Traceloop,
    parse_json,
)
from traces.conventions.frameworks import ClaudeCode, GeminiCli, LiveKit, VercelAi, VoltAgent

CONVENTIONS: Final[tuple[Convention, ...]] = (
    OpenInference(),
    GeminiCli(),
    ClaudeCode(),
    GenAi(),
    SpringAi(),
    Traceloop(),
    GoogleAdk(),
    VercelAi(),
    VoltAgent(),
    LiveKit(),
    Laminar(),
    Langfuse(),
)
"""In order of precedence: the first that has a value counts."""

_WITH_EVENTS: Final[tuple[Convention, ...]] = (SpringAi(), LiveKit(), ClaudeCode())
_OWN: Final = ("mlflow.",)


def translate(attributes: Attributes, events: Events) -> None:
    """Adds MLflow's attributes to a span's ``attributes``, in place, translated from those of the
    instrumentation that made the span. Existing ones stay unchanged, except a span type that is
    empty or ``UNKNOWN``, and the message format of chats of Vercel AI."""
    if not events and all(key.startswith(_OWN) for key in attributes):
        _complete_model(attributes)
        return
    kind = _first("span_type", attributes)
    if kind and parse_json(attributes.get(reserved_tags.SPAN_TYPE)) in (None, "", "UNKNOWN"):
        attributes[reserved_tags.SPAN_TYPE] = _text(kind)
    if reserved_tags.SPAN_INPUTS not in attributes:
        _set(attributes, reserved_tags.SPAN_INPUTS, _content("inputs", attributes, events))
    if reserved_tags.SPAN_OUTPUTS not in attributes:
        _set(attributes, reserved_tags.SPAN_OUTPUTS, _content("outputs", attributes, events))
    if reserved_tags.SPAN_TOKEN_USAGE not in attributes:
        usage = _usage(attributes)
        _set(attributes, reserved_tags.SPAN_TOKEN_USAGE, _text(usage) if usage else None)
    if SPAN_MESSAGE_FORMAT not in attributes:
        message_format = _first("message_format", attributes)
        _set(attributes, SPAN_MESSAGE_FORMAT, _text(message_format) if message_format else None)
    if SPAN_TOOLS not in attributes:
        _set(attributes, SPAN_TOOLS, _first("tools", attributes))
    _complete_model(attributes)
    if reserved_tags.SPAN_PROVIDER not in attributes:
        provider = _first("provider", attributes)
        _set(attributes, reserved_tags.SPAN_PROVIDER, _text(provider) if provider else None)


def _complete_model(attributes: Attributes) -> None:
    """Adds the model's name if it is missing, if necessary from the span's inputs or outputs."""
    if reserved_tags.SPAN_MODEL in attributes:
        return
    model = _first("model", attributes)
    for key in (reserved_tags.SPAN_INPUTS, reserved_tags.SPAN_OUTPUTS):
        if model or not attributes.get(key):
            continue
        content = parse_json(attributes[key])
        if isinstance(content, dict) and content.get("model"):
            name = content["model"]
            _set(
                attributes, reserved_tags.SPAN_MODEL, _text(name) if isinstance(name, str) else None
            )
            return
    _set(attributes, reserved_tags.SPAN_MODEL, _text(model) if model else None)


def _set(attributes: Attributes, key: str, value: Any) -> None:
    if value:
        attributes[key] = value


def _first(method: str, attributes: Attributes) -> Any:
    """Calls the method ``method`` of each convention and returns the first result that is not
    empty; None if all are empty."""
    for convention in CONVENTIONS:
        value = getattr(convention, method)(attributes)
        if value:
            return value
    return None


def _content(method: str, attributes: Attributes, events: Events) -> Any:
    """Returns the span's inputs or outputs, from its attributes or else from its events.

    Args:
        method: ``inputs`` or ``outputs``, the method of the conventions that reads them.
    """
    value = _first(method, attributes)
    if value or not events:
        return value
    for convention in _WITH_EVENTS:
        value = getattr(convention, f"{method}_of_events")(events, attributes)
        if value:
            return value
    return None


def _usage(attributes: Attributes) -> dict[str, int] | None:
    """Returns the token counts of the first convention that has any, by MLflow's names; None if
    none has."""
    for convention in CONVENTIONS:
        input_tokens, output_tokens, total_tokens = map(_count, convention.token_counts(attributes))
        if total_tokens is None and input_tokens is not None and output_tokens is not None:
            total_tokens = input_tokens + output_tokens
        if (input_tokens, output_tokens, total_tokens) != (None, None, None):
            counts = (
                input_tokens,
                output_tokens,
                total_tokens,
                *map(_count, convention.cache_counts(attributes)),
            )
            items = zip(TOKEN_KEYS, counts, strict=False)
            return {key: count for key, count in items if count is not None}
    return None


def _count(value: Any) -> int | None:
    """Returns a count of tokens. The value may be a number or its text, which may be JSON text
    within JSON text. Booleans are returned unchanged; anything else gives None."""
    if isinstance(value, str):
        value = parse_json(value)
    if isinstance(value, int):
        return value
    try:
        return int(value) if isinstance(value, str) else None
    except ValueError:
        return None


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
