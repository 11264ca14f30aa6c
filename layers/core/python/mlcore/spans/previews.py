"""Previews of a trace's request and response, from the attributes of its root span."""

from __future__ import annotations

from typing import Any, Final

from mlcore.wire.json_text import load_json

MAX_LENGTH: Final = 1000


def preview(text: str, role: str) -> str | None:
    """Returns the preview of a trace's request or response: the beginning, of at most MAX_LENGTH
    characters, of its JSON text or, if that contains chat messages, of the last message with the
    role (without any, of the last message). None if the text looks like messages but cannot be read
    as such."""
    try:
        content = _content(text, role) or text
    except (AttributeError, IndexError, KeyError, TypeError):
        return None
    if not isinstance(content, str):
        return None
    return content if len(content) <= MAX_LENGTH else content[: MAX_LENGTH - 3] + "..."


def _content(text: str, role: str) -> Any:
    try:
        value = load_json(text)
    except ValueError:
        return None
    messages = _messages(value)
    if not messages:
        return None
    of_role = [message for message in messages if message.get("role") == role]
    content = (of_role or messages)[-1].get("content")
    if isinstance(content, list):
        for part in content:
            if isinstance(part, str):
                return part
            if isinstance(part, dict) and part.get("type") in ("text", "output_text"):
                return part.get("text")
        return None
    return content if isinstance(content, str) else None


def _messages(value: Any) -> list[dict[str, Any]]:
    """Returns the messages of a request or response in the forms of OpenAI's two APIs, possibly
    wrapped."""
    while isinstance(value, dict):
        messages = value.get("messages")
        if messages and isinstance(messages, list):
            return list(filter(_is_message, messages))
        choices = value.get("choices")
        if choices and isinstance(choices, list) and isinstance(choices[0], dict):
            message = choices[0].get("message")
            if message and _is_message(message):
                return [message]
        for key in ("input", "output"):
            items = value.get(key)
            if items and isinstance(items, list):
                return list(filter(_is_message, items))
        if "request" not in value:
            break
        value = value["request"]
    return []


def _is_message(value: Any) -> bool:
    return isinstance(value, dict) and "role" in value and "content" in value
