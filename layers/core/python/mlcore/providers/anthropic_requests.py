"""Translates chats to requests of Anthropic's Messages API."""

from __future__ import annotations

import json
from typing import Any, Final

from mlcore.errors import GatewayCallFailed
from mlcore.providers.cache_markers import MARKER, marked_last, marker_of, tool_marker
from mlcore.providers.data_urls import base64_parts
from mlcore.wire.json_text import parse_json_text

Json = dict[str, Any]

DEFAULT_MAX_TOKENS: Final = 8192
MAX_MAX_TOKENS: Final = 1_000_000

CALL_TYPES: Final = ("mcp_tool_use", "server_tool_use", "tool_use")
"""The types of the parts of messages that call a tool. A tuple and not a set, since the ``type`` in
a request may be any JSON value, also one that cannot be hashed."""

JSON_ONLY: Final = (
    "Answer with one valid JSON object and nothing else: no text before or after it, no markdown, "
    "no code fences."
)
_SYSTEM_ROLES: Final = ("system", "developer")
_TOOL_CHOICES: Final = {"none": "none", "auto": "auto", "required": "any"}


def message_request(payload: Json) -> Json:
    """Converts a chat to a request of Anthropic's Messages API, without the model. Raises
    GatewayCallFailed if the chat needs something that the API does not have."""
    request = dict(payload)
    if "stop" in request:
        request["stop_sequences"] = request.pop("stop")
    if "top_p" in request and "temperature" in request:
        raise GatewayCallFailed(422, "Cannot set both 'temperature' and 'top_p' parameters.")
    max_completion_tokens = request.pop("max_completion_tokens", None)
    request["max_tokens"] = request.get("max_tokens") or max_completion_tokens or DEFAULT_MAX_TOKENS
    if request["max_tokens"] > MAX_MAX_TOKENS:
        raise GatewayCallFailed(
            422, f"Invalid value for max_tokens: cannot exceed {MAX_MAX_TOKENS}."
        )
    if (count := request.pop("n", 1)) != 1:
        raise GatewayCallFailed(
            422, f"'n' must be '1' for the Anthropic provider. Received value: '{count}'."
        )
    request.pop("stream_options", None)  # The API always reports usage, and refuses the field.
    messages = request["messages"]
    system = _system([message for message in messages if message["role"] in _SYSTEM_ROLES])
    request["messages"] = [
        translated for message in messages if (translated := _message(message)) is not None
    ]
    if "temperature" in request:
        request["temperature"] *= 0.5  # Anthropic's range is 0 to 1, OpenAI's 0 to 2
    if tools := request.pop("tools", None):
        request["tools"] = [_tool(tool) for tool in tools]
    if tool_choice := request.pop("tool_choice", None):
        request["tool_choice"] = (
            {"type": _TOOL_CHOICES[tool_choice]}
            if isinstance(tool_choice, str)
            else {"type": "tool", "name": tool_choice["function"]["name"]}
        )
    system = _move_response_format(request, system)
    return request | ({"system": system} if system else {})


def _message(message: Json) -> Json | None:
    """Converts a chat message to Anthropic's form. Returns None for instructions of the system or
    the developer, which Anthropic takes in another field, and for unknown roles."""
    role, content = message["role"], message.get("content")
    if role == "user":
        if isinstance(content, list):
            return _with_blocks(message, _parts(content))
        return _with_blocks(message, _text_blocks(content)) if marker_of(message) else message
    if role == "assistant":
        calls = message.get("tool_calls")
        if calls is None and not marker_of(message):
            return message
        blocks = content if isinstance(content, list) else _text_blocks(content)
        return _with_blocks(
            {"role": role, **marker_of(message)}, [*blocks, *map(_tool_use, calls or ())]
        )
    if role == "tool":
        result = {
            "type": "tool_result",
            "tool_use_id": message.get("tool_call_id"),
            **_tool_content(content),
            **marker_of(message),
        }
        return {"role": "user", "content": [result]}
    return None


def _with_blocks(message: Json, blocks: list[Json]) -> Json:
    """Returns a message with these content blocks; the last one gets the message's marker of a
    cached prompt."""
    plain = {name: value for name, value in message.items() if name != MARKER}
    return {**plain, "content": marked_last(blocks, message)}


def _text_blocks(content: Any) -> list[Json]:
    return [{"type": "text", "text": content}] if isinstance(content, str) and content else []


def _tool_content(content: Any) -> Json:
    """Returns the content of a tool's result, and the marker of its last part, which the API takes
    from the whole result."""
    if not isinstance(content, list) or not content or not marker_of(content[-1]):
        return {"content": content}
    last = {name: value for name, value in content[-1].items() if name != MARKER}
    return {"content": [*content[:-1], last], **marker_of(content[-1])}


def _system(messages: list[Json]) -> str | list[Json]:
    """Returns the instructions of the system and the developer: one text, or content blocks if some
    of them are to be cached."""
    if not any(marker_of(item) for message in messages for item in _marked_items(message)):
        return "\n".join(_text(message.get("content")) for message in messages)
    blocks: list[Json] = []
    for message in messages:
        content = message.get("content")
        parts = content if isinstance(content, list) else _text_blocks(content)
        texts = [
            {"type": "text", "text": part["text"], **marker_of(part)}
            for part in parts
            if isinstance(part, dict) and isinstance(part.get("text"), str) and part["text"]
        ]
        blocks += marked_last(texts, message)
    return blocks


def _marked_items(message: Json) -> list[Any]:
    content = message.get("content")
    return [message, *(content if isinstance(content, list) else ())]


def _tool_use(call: Json) -> Json:
    function = call["function"]
    try:
        arguments = parse_json_text(function.get("arguments") or "{}")
    except ValueError:
        raise GatewayCallFailed(
            422, f"The arguments of the tool call {call['id']!r} are not JSON."
        ) from None
    return {"type": "tool_use", "id": call["id"], "name": function["name"], "input": arguments}


def _parts(content: list[Any]) -> list[Any]:
    parts = []
    for part in content:
        if isinstance(part, dict) and part.get("type") == "image_url":
            image = part.get("image_url")
            url = str(image.get("url", "")) if isinstance(image, dict) else ""
            media = base64_parts(url)
            if media is None:
                source = {"type": "url", "url": url}
            else:
                source = {"type": "base64", "media_type": media[0], "data": media[1]}
            parts.append({"type": "image", "source": source, **marker_of(part)})
        else:
            parts.append(part)
    return parts


def _tool(tool: Json) -> Json:
    if tool.get("type") != "function":
        raise GatewayCallFailed(
            422,
            f"Only function calling tool is supported, but received tool type {tool.get('type')}",
        )
    function = tool["function"]
    description_field = (
        {"description": function["description"]} if function.get("description") else {}
    )
    schema = function.get("parameters") or {"type": "object", "properties": {}}
    return {
        "name": function["name"],
        **description_field,
        "input_schema": schema,
        **tool_marker(tool),
    }


def _move_response_format(request: Json, system: str | list[Json]) -> str | list[Json]:
    """Moves the response format in the request to the field where the API expects it. Returns the
    content of the field ``system``."""
    response_format = request.pop("response_format", None) or {}
    if response_format.get("type") == "json_schema" and response_format.get("json_schema"):
        schema = json.loads(json.dumps(response_format["json_schema"].get("schema", {})))
        if _close_objects(schema):
            request["output_config"] = {"format": {"type": "json_schema", "schema": schema}}
    elif response_format.get("type") == "json_object":
        if isinstance(system, list):
            return [*system, {"type": "text", "text": JSON_ONLY}]
        return f"{system}\n{JSON_ONLY}" if system else JSON_ONLY
    return system


def _close_objects(schema: Any) -> bool:
    """Sets ``additionalProperties`` to false in every object of a JSON schema, as the API requires.
    Returns False if an object does not list its properties, which the API refuses."""
    if isinstance(schema, list):
        return all(_close_objects(item) for item in schema)
    if not isinstance(schema, dict):
        return True
    if schema.get("type") == "object":
        if "properties" not in schema:
            return False
        schema["additionalProperties"] = False
    return all(_close_objects(value) for value in schema.values())


def _text(content: Any) -> str:
    if isinstance(content, list):
        texts = (part.get("text") for part in content if isinstance(part, dict))
        return "".join(text for text in texts if isinstance(text, str))
    return content or ""
