"""Checks that chat requests and completions have the form of OpenAI's API."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from mlcore.errors import GatewayCallFailed
from mlcore.providers import cache_markers

Json = dict[str, Any]

_MESSAGE_FIELDS: Final = (
    *("role", "content", "tool_calls", "refusal", "tool_call_id"),
    cache_markers.MARKER,
)
_RESPONSE_FORMATS: Final = ("text", "json_object", "json_schema")


class Shape(NamedTuple):
    """The form that a gateway request or answer must still have after a guardrail has rewritten it:
    a JSON schema, and a function that checks and returns the JSON object."""

    schema: Mapping[str, Any]
    """A JSON Schema that the rewriting model is asked to answer in."""
    validated: Callable[[Json], Json]
    """Returns the object; raises GatewayCallFailed if it does not have the shape."""


def validated_chat(chat: Mapping[str, Any]) -> Json:
    """Checks a chat request as MLflow's gateway does. Returns it without null fields and unknown
    message fields, with ``n`` set to 1 if it was missing.

    Raises:
        GatewayCallFailed: a field does not have the type or range that OpenAI's API requires;
            status 400.
    """
    for name, is_valid, expectation in _FIELDS:
        value = chat.get(name)
        if value is not None and not is_valid(value):
            raise _invalid(f"{name}: Input should be {expectation}")
    messages = chat.get("messages")
    if not isinstance(messages, list) or not messages:
        raise _invalid("messages: Input should be a list of at least one message")
    return {
        "n": 1,
        **{name: value for name, value in chat.items() if value is not None},
        "messages": [_validated_message(message, index) for index, message in enumerate(messages)],
    }


def _validated_message(message: Any, index: int) -> Json:
    path = f"messages.{index}"
    if not isinstance(message, dict):
        raise _invalid(f"{path}: Input should be an object")
    role, content, calls = (message.get(name) for name in ("role", "content", "tool_calls"))
    if not isinstance(role, str):
        raise _invalid(f"{path}.role: Input should be a valid string")
    parts = content if isinstance(content, list) else []
    if not isinstance(content, str | list | None) or not all(
        isinstance(part, dict) and isinstance(part.get("type"), str) for part in parts
    ):
        raise _invalid(f"{path}.content: Input should be a string or a list of parts")
    if not isinstance(calls, list | None) or not all(map(_is_tool_call, calls or ())):
        raise _invalid(f"{path}.tool_calls: Input should be a list of tool calls")
    return {name: message[name] for name in _MESSAGE_FIELDS if message.get(name) is not None}


def _is_tool_call(call: Any) -> bool:
    return (
        isinstance(call, dict)
        and isinstance(call.get("id"), str)
        and isinstance(call.get("function"), dict)
        and isinstance(call["function"].get("name"), str)
        and isinstance(call["function"].get("arguments", ""), str)
    )


def _is_tool(tool: Any) -> bool:
    if not isinstance(tool, dict) or tool.get("type") not in ("function", "uc_function"):
        return False
    function = tool.get("function")
    return tool["type"] != "function" or (
        isinstance(function, dict) and isinstance(function.get("name"), str)
    )


def _is_tool_choice(value: Any) -> bool:
    if isinstance(value, str):
        return value in ("none", "auto", "required")
    function = value.get("function") if isinstance(value, dict) else None
    return (
        isinstance(function, dict)
        and value.get("type") == "function"
        and isinstance(function.get("name"), str)
    )


def _is_response_format(value: Any) -> bool:
    if not isinstance(value, dict) or value.get("type") not in _RESPONSE_FORMATS:
        return False
    schema = value.get("json_schema")
    return schema is None or (
        isinstance(schema, dict)
        and isinstance(schema.get("name"), str)
        and isinstance(schema.get("schema"), dict)
    )


def _is_positive_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _between(low: float, high: float) -> Callable[[Any], bool]:
    def is_valid(value: Any) -> bool:
        number = isinstance(value, int | float) and not isinstance(value, bool)
        return number and low <= value <= high

    return is_valid


def _list_of(is_valid: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, list) and all(map(is_valid, value))


_FIELDS: Final[tuple[tuple[str, Callable[[Any], bool], str], ...]] = (
    ("n", _is_positive_integer, "greater than or equal to 1"),
    ("max_tokens", _is_positive_integer, "greater than or equal to 1"),
    ("max_completion_tokens", _is_positive_integer, "greater than or equal to 1"),
    ("top_k", _is_positive_integer, "greater than or equal to 1"),
    ("temperature", _between(0, 2), "a number from 0 to 2"),
    ("top_p", _between(0, 1), "a number from 0 to 1"),
    ("presence_penalty", _between(-2, 2), "a number from -2 to 2"),
    ("frequency_penalty", _between(-2, 2), "a number from -2 to 2"),
    (
        "stop",
        lambda value: _list_of(lambda item: isinstance(item, str))(value) and bool(value),
        "a list of at least one string",
    ),
    ("stream", lambda value: isinstance(value, bool), "a valid boolean"),
    ("stream_options", lambda value: isinstance(value, dict), "an object"),
    ("tools", _list_of(_is_tool), "a list of tools"),
    ("tool_choice", _is_tool_choice, "'none', 'auto', 'required' or a function"),
    (
        "response_format",
        _is_response_format,
        "an OpenAI response format: text, json_object or json_schema",
    ),
)
"""Name, check and expectation of each optional field, as MLflow's gateway checks them."""


def _invalid(reason: str) -> GatewayCallFailed:
    return GatewayCallFailed(400, f"Invalid chat payload: {reason}")


def _validated_completion(answer: Json) -> Json:
    choices = answer.get("choices")
    if (
        not isinstance(choices, list)
        or not choices
        or not all(
            isinstance(choice, dict) and isinstance(choice.get("message"), dict)
            for choice in choices
        )
    ):
        raise GatewayCallFailed(400, "it is not a chat completion")
    return answer


def _object_with_list(name: str, item: Mapping[str, Any]) -> Mapping[str, Any]:
    array = {"type": "array", "items": item}
    return {"type": "object", "properties": {name: array}, "required": [name]}


def _validated_list(name: str) -> Callable[[Json], Json]:
    def validated(answer: Json) -> Json:
        items = answer.get(name)
        if not isinstance(items, list) or not items or not all(isinstance(i, dict) for i in items):
            raise GatewayCallFailed(400, f"{name}: it should be a list of at least one object")
        return answer

    return validated


CHAT: Final = Shape(_object_with_list("messages", {"type": "object"}), validated_chat)
COMPLETION: Final = Shape(_object_with_list("choices", {"type": "object"}), _validated_completion)
ANTHROPIC_MESSAGE: Final = Shape(
    _object_with_list("content", {"type": "object"}), _validated_list("content")
)
GEMINI_ANSWER: Final = Shape(
    _object_with_list("candidates", {"type": "object"}), _validated_list("candidates")
)
OPENAI_RESPONSE: Final = Shape(
    _object_with_list("output", {"type": "object"}), _validated_list("output")
)
