"""Markers of prompt caching in a chat: the field ``cache_control`` of Anthropic's API, in a part of
a message, in a message, or in a tool. The provider caches the prompt up to a marker."""

from __future__ import annotations

from typing import Any, Final

Json = dict[str, Any]

MARKER: Final = "cache_control"


def marker_of(part: Any) -> Json:
    """Returns an object with the marker of prompt caching (the field ``cache_control``) that a part
    of a message, a message or a tool has; an empty object if it has no marker."""
    marker = part.get(MARKER) if isinstance(part, dict) else None
    return {} if marker is None else {MARKER: marker}


def tool_marker(tool: Json) -> Json:
    """Returns an object with the cache marker of a tool in a chat (the field ``cache_control``,
    which may be inside the tool's function); an empty object if there is no marker."""
    return marker_of(tool) or marker_of(tool.get("function"))


def lifetime(marked: Json) -> str | None:
    """Returns how long the prompt up to a cache marker is to be cached, such as ``1h``; None if the
    marker does not say it."""
    marker = marked.get(MARKER)
    ttl = marker.get("ttl") if isinstance(marker, dict) else None
    return ttl if isinstance(ttl, str) else None


def marked_last(parts: list[Json], message: Json) -> list[Json]:
    """Returns the parts of a chat message, with the cache marker (``cache_control``) of the message
    itself on the last part. A last part that has a marker of its own keeps it."""
    marker = marker_of(message)
    if not marker or not parts:
        return parts
    return [*parts[:-1], {**marker, **parts[-1]}]


def without_message_markers(chat: Json) -> Json:
    """Returns a chat without the cache markers of whole messages, which OpenAI's protocol does not
    have."""
    return {**chat, "messages": [_without(message) for message in chat["messages"]]}


def without_markers(chat: Json) -> Json:
    """Returns a chat without any cache marker, for a provider that caches prompts by itself and may
    refuse the field."""
    plain = {**chat, "messages": [_plain_message(message) for message in chat["messages"]]}
    if isinstance(tools := chat.get("tools"), list):
        plain["tools"] = [_plain_tool(tool) for tool in tools]
    return plain


def _plain_message(message: Json) -> Json:
    content = message.get("content")
    if isinstance(content, list):
        message = {**message, "content": [_without(part) for part in content]}
    plain: Json = _without(message)
    return plain


def _plain_tool(tool: Any) -> Any:
    plain = _without(tool)
    if isinstance(plain, dict) and isinstance(plain.get("function"), dict):
        return {**plain, "function": _without(plain["function"])}
    return plain


def _without(item: Any) -> Any:
    if not isinstance(item, dict) or MARKER not in item:
        return item
    return {name: value for name, value in item.items() if name != MARKER}
