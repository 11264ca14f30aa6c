"""Adds to the attributes of a span what other instrumentations say under names of their own."""

from __future__ import annotations

import json
from typing import Any, Final

from mlcore.spans.attributes import Attributes
from mlcore.spans.names import (
    SPAN_INPUTS,
    SPAN_MESSAGE_FORMAT,
    SPAN_MODEL,
    SPAN_OUTPUTS,
    SPAN_PROVIDER,
    SPAN_TOOLS,
    SPAN_TYPE,
    SPAN_USAGE,
    TOKEN_KEYS,
)
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
    parsed,
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
"""In the order in which they are asked; the first that knows something counts."""

_OF_EVENTS: Final[tuple[Convention, ...]] = (SpringAi(), LiveKit(), ClaudeCode())
_OWN: Final = ("mlflow.",)


def translate(attributes: Attributes, events: Events) -> None:
    """Completes attributes in place; what MLflow's own names say is left as it is."""
    if not events and all(key.startswith(_OWN) for key in attributes):
        _complete_model(attributes)
        return
    kind = _first("span_type", attributes)
    if kind and parsed(attributes.get(SPAN_TYPE)) in (None, "", "UNKNOWN"):
        attributes[SPAN_TYPE] = _text(kind)
    if SPAN_INPUTS not in attributes:
        _set(attributes, SPAN_INPUTS, _content("inputs", attributes, events))
    if SPAN_OUTPUTS not in attributes:
        _set(attributes, SPAN_OUTPUTS, _content("outputs", attributes, events))
    if SPAN_USAGE not in attributes:
        usage = _usage(attributes)
        _set(attributes, SPAN_USAGE, _text(usage) if usage else None)
    if SPAN_MESSAGE_FORMAT not in attributes:
        form = _first("message_format", attributes)
        _set(attributes, SPAN_MESSAGE_FORMAT, _text(form) if form else None)
    if SPAN_TOOLS not in attributes:
        _set(attributes, SPAN_TOOLS, _first("tools", attributes))
    _complete_model(attributes)
    if SPAN_PROVIDER not in attributes:
        provider = _first("provider", attributes)
        _set(attributes, SPAN_PROVIDER, _text(provider) if provider else None)


def _complete_model(attributes: Attributes) -> None:
    if SPAN_MODEL in attributes:
        return
    model = _first("model", attributes)
    for key in (SPAN_INPUTS, SPAN_OUTPUTS):
        if model or not attributes.get(key):
            continue
        content = parsed(attributes[key])
        if isinstance(content, dict) and content.get("model"):
            named = content["model"]
            _set(attributes, SPAN_MODEL, _text(named) if isinstance(named, str) else None)
            return
    _set(attributes, SPAN_MODEL, _text(model) if model else None)


def _set(attributes: Attributes, key: str, value: Any) -> None:
    if value:
        attributes[key] = value


def _first(question: str, attributes: Attributes) -> Any:
    for convention in CONVENTIONS:
        found = getattr(convention, question)(attributes)
        if found:
            return found
    return None


def _content(which: str, attributes: Attributes, events: Events) -> Any:
    found = _first(which, attributes)
    if found or not events:
        return found
    for convention in _OF_EVENTS:
        found = getattr(convention, f"{which}_of_events")(events, attributes)
        if found:
            return found
    return None


def _usage(attributes: Attributes) -> dict[str, int] | None:
    for convention in CONVENTIONS:
        first, second, both = map(_count, convention.token_counts(attributes))
        if both is None and first is not None and second is not None:
            both = first + second
        if (first, second, both) != (None, None, None):
            counts = (first, second, both, *map(_count, convention.cache_counts(attributes)))
            named = zip(TOKEN_KEYS, counts, strict=False)
            return {key: count for key, count in named if count is not None}
    return None


def _count(value: Any) -> int | None:
    """A count, from a number or from its text, which may be JSON within JSON. Booleans stay what
    they are."""
    if isinstance(value, str):
        value = parsed(value)
    if isinstance(value, int):
        return value
    try:
        return int(value) if isinstance(value, str) else None
    except ValueError:
        return None


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
