"""Translates chats to and from Anthropic's Messages API, and calls it."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Final

from mlcore.errors import GatewayCallFailed
from mlcore.providers import completions, transport
from mlcore.providers.data_urls import base64_parts
from mlcore.providers.openai import join_path, proxied_url, unexpected_answer
from mlcore.providers.provider import (
    ANTHROPIC_COUNT_TOKENS,
    ANTHROPIC_MESSAGES,
    Json,
    Provider,
    check_no_model,
    forwarded_headers,
    token_counts,
)
from mlcore.wire.json_text import parse_json_text

DEFAULT_MAX_TOKENS: Final = 8192
MAX_MAX_TOKENS: Final = 1_000_000

_BASE: Final = "https://api.anthropic.com/v1"
_VERSION: Final = "2023-06-01"
JSON_ONLY: Final = (
    "Answer with one valid JSON object and nothing else: no text before or after it, no markdown, "
    "no code fences."
)
_SYSTEM_ROLES: Final = ("system", "developer")
_TOOL_CHOICES: Final = {"none": "none", "auto": "auto", "required": "any"}


class Anthropic(Provider):
    display_name = "Anthropic"
    passthrough_paths: ClassVar[Mapping[str, str]] = {
        ANTHROPIC_MESSAGES: "messages",
        ANTHROPIC_COUNT_TOKENS: "messages/count_tokens",
    }

    def chat(self, payload: Json) -> Json:
        check_no_model(payload)
        answer = transport.ask(
            self._url("messages"),
            self._headers(),
            {"model": self.model.name, **message_request(payload)},
            configured=self.configured,
            redactor=self.redactor,
        )
        return completion_of(answer)

    def chat_stream(self, payload: Json) -> Iterator[Json]:
        check_no_model(payload)
        stream = transport.lines(
            self._url("messages"),
            self._headers(),
            {"model": self.model.name, **message_request(payload)},
            configured=self.configured,
            redactor=self.redactor,
        )
        return chunks_of(transport.events(stream))

    def passthrough(self, action: str, payload: Json, headers: Mapping[str, str]) -> Json:
        return transport.ask(
            self._url(self.path(action)),
            forwarded_headers(headers, self._headers()),
            {**payload, "model": self.model.name},
            configured=self.configured,
            redactor=self.redactor,
        )

    def passthrough_stream(
        self, action: str, payload: Json, headers: Mapping[str, str]
    ) -> Iterator[bytes]:
        return transport.lines(
            self._url(self.path(action)),
            forwarded_headers(headers, self._headers()),
            {**payload, "model": self.model.name},
            configured=self.configured,
            redactor=self.redactor,
        )

    def proxy(self, path: str, payload: Json, headers: Mapping[str, str]) -> Iterator[Json | bytes]:
        return transport.answer_or_lines(
            proxied_url(self.model.auth_config.get("api_base") or _BASE, path),
            forwarded_headers(headers, self._headers()),
            payload,
            configured=True,
            redactor=self.redactor,
        )

    def usage(self, answer: Json) -> dict[str, int]:
        if answer.get("type") == "message_start":
            message = answer.get("message")
            usage_ = message.get("usage") if isinstance(message, dict) else None
            first_counts = _token_counts(usage_)
            # The counts at the end of the stream replace those at the beginning.
            first_counts.pop("output_tokens", None)
            first_counts.pop("total_tokens", None)
            return first_counts
        if answer.get("type") == "message_delta":
            usage_ = answer.get("usage")
            output_tokens = usage_.get("output_tokens") if isinstance(usage_, dict) else None
            return {"output_tokens": output_tokens} if completions.is_count(output_tokens) else {}
        return _token_counts(answer.get("usage"))

    def _url(self, path: str) -> str:
        return join_path(self.model.auth_config.get("api_base") or _BASE, path)

    def _headers(self) -> dict[str, str]:
        return {
            "x-api-key": self.model.secret.get("api_key", ""),
            "anthropic-version": self.model.auth_config.get("version") or _VERSION,
        }


def message_request(payload: Json) -> Json:
    """Converts a chat to a request of the Messages API, without the model. Raises GatewayCallFailed
    if the chat needs something that the API does not have."""
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
    system = "\n".join(
        _text(message.get("content")) for message in messages if message["role"] in _SYSTEM_ROLES
    )
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


def completion_of(answer: Json) -> Json:
    """Converts a message of the Messages API to a chat completion."""
    try:
        blocks = answer["content"]
        if isinstance(blocks, str):
            blocks = [{"type": "text", "text": blocks}]
        texts = [block[block["type"]] for block in blocks if block["type"] in ("text", "thinking")]
        calls = [
            completions.tool_call(block["id"], block["name"], json.dumps(block["input"]))
            for block in blocks
            if block["type"] == "tool_use"
        ]
        choice = completions.choice(
            0, "".join(texts) or None, calls, _finish_reason(answer["stop_reason"]), answer["role"]
        )
        return completions.completion(
            answer["id"], int(time.time()), answer["model"], [choice], _usage(answer["usage"])
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise unexpected_answer(error) from None


def chunks_of(events: Iterator[Json]) -> Iterator[Json]:
    """Converts the events of a streamed message to chunks of a chat completion, one by one. Raises
    GatewayCallFailed (502) if an event does not have the form of Anthropic's API."""
    try:
        yield from _chunks_of(events)
    except (KeyError, TypeError, AttributeError) as error:
        raise unexpected_answer(error) from None


def _chunks_of(events: Iterator[Json]) -> Iterator[Json]:
    answer_id, model, counts = None, "", dict[str, Any]()
    calls: dict[Any, int] = {}
    for event in events:
        event_type = event.get("type")
        if event_type == "message_start":
            message = event["message"]
            answer_id, model = message["id"], message["model"]
            counts = {k: v for k, v in (message.get("usage") or {}).items() if k != "output_tokens"}
            continue
        if event_type == "error":
            raise GatewayCallFailed(502, (event.get("error") or {}).get("message", "error"))
        if event_type not in ("message_delta", "content_block_start", "content_block_delta"):
            continue
        content = event.get("delta") or event.get("content_block") or {}
        if content.get("type") == "tool_use":
            calls[event.get("index")] = len(calls)
        usage = None
        if event_type == "message_delta":
            counts |= {"output_tokens": (event.get("usage") or {}).get("output_tokens")}
            usage = _usage(counts)
        chunk_delta = _delta(content, calls.get(event.get("index"), 0))
        yield completions.chunk(answer_id, int(time.time()), model, [chunk_delta], usage)


def _delta(content: Mapping[str, Any], call: int) -> Json:
    stop = content.get("stop_reason")
    finish_reason = None if stop is None else _finish_reason(stop)
    if content.get("type") == "tool_use":
        call_start = completions.call_delta(
            call, call_id=content.get("id"), call_type="function", name=content.get("name")
        )
        return completions.delta(0, finish_reason, tool_calls=[call_start])
    if content.get("type") == "input_json_delta":
        call_part = completions.call_delta(call, arguments=content.get("partial_json"))
        return completions.delta(0, finish_reason, tool_calls=[call_part])
    return completions.delta(0, finish_reason, content=content.get("text"))


def _message(message: Json) -> Json | None:
    """Converts a chat message to Anthropic's form. Returns None for instructions of the system or
    the developer, which Anthropic takes in another field, and for unknown roles."""
    role, content = message["role"], message.get("content")
    if role == "user":
        return {**message, "content": _parts(content)} if isinstance(content, list) else message
    if role == "assistant":
        calls = message.get("tool_calls")
        if calls is None:
            return message
        text_blocks = (
            [{"type": "text", "text": content}] if isinstance(content, str) and content else []
        )
        return {"role": role, "content": [*text_blocks, *map(_tool_use, calls)]}
    if role == "tool":
        result = {
            "type": "tool_result",
            "tool_use_id": message.get("tool_call_id"),
            "content": content,
        }
        return {"role": "user", "content": [result]}
    return None


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
            parts.append({"type": "image", "source": source})
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
    return {"name": function["name"], **description_field, "input_schema": schema}


def _move_response_format(request: Json, system: str) -> str:
    """Moves the response format in the request to the field where the API expects it. Returns the
    text for the field ``system``."""
    response_format = request.pop("response_format", None) or {}
    if response_format.get("type") == "json_schema" and response_format.get("json_schema"):
        schema = json.loads(json.dumps(response_format["json_schema"].get("schema", {})))
        if _close_objects(schema):
            request["output_config"] = {"format": {"type": "json_schema", "schema": schema}}
    elif response_format.get("type") == "json_object":
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


def _finish_reason(stop_reason: Any) -> str:
    return {"max_tokens": "length", "tool_use": "tool_calls"}.get(stop_reason, "stop")


def _usage(counts: Mapping[str, Any]) -> Json:
    """Converts Anthropic's token counts to OpenAI's form, which includes tokens read from or
    written to a cache in the prompt's; Anthropic counts them apart."""
    read, written = counts.get("cache_read_input_tokens"), counts.get("cache_creation_input_tokens")
    prompt, output = counts.get("input_tokens"), counts.get("output_tokens")
    if prompt is not None:
        prompt += (read or 0) + (written or 0)
    total = None if prompt is None or output is None else prompt + output
    known = (
        "input_tokens",
        "output_tokens",
        "cache_read_input_tokens",
        "cache_creation_input_tokens",
    )
    more = {name: value for name, value in counts.items() if name not in known}
    if written is not None:
        more["cache_creation_input_tokens"] = written
    return completions.usage(prompt, output, total, read, more)


def _token_counts(usage: Any) -> dict[str, int]:
    counts = token_counts(usage, "input_tokens", "output_tokens", cached="cache_read_input_tokens")
    written = usage.get("cache_creation_input_tokens") if isinstance(usage, dict) else None
    if completions.is_count(written):
        counts["cache_creation_input_tokens"] = written
    cache_tokens = counts.get("cache_read_input_tokens", 0) + counts.get(
        "cache_creation_input_tokens", 0
    )
    for name in {"input_tokens", "total_tokens"} & counts.keys():
        counts[name] += cache_tokens
    return counts
