"""Anthropic's Messages API, and chats told in it."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Final

from mlcore.errors import GatewayCallFailed
from mlcore.providers import completions, transport
from mlcore.providers.data_urls import base64_parts
from mlcore.providers.openai import below, misunderstood
from mlcore.providers.provider import (
    ANTHROPIC_MESSAGES,
    Json,
    Provider,
    check_no_model,
    counted,
    foreign,
)

DEFAULT_MAX_TOKENS: Final = 8192
MAX_MAX_TOKENS: Final = 1_000_000

_BASE: Final = "https://api.anthropic.com/v1"
_VERSION: Final = "2023-06-01"
JSON_ONLY: Final = (
    "Answer with one valid JSON object and nothing else: no text before or after it, no markdown, "
    "no code fences."
)
_TOOL_CHOICES: Final = {"none": "none", "auto": "auto", "required": "any"}


class Anthropic(Provider):
    display_name = "Anthropic"
    passed_on: ClassVar[Mapping[str, str]] = {ANTHROPIC_MESSAGES: "messages"}

    def chat(self, payload: Json) -> Json:
        check_no_model(payload)
        answer = transport.ask(
            self._url("messages"),
            self._headers(),
            {"model": self.model.name, **message_request(payload)},
            configured=self.configured,
        )
        return completion_of(answer)

    def chat_stream(self, payload: Json) -> Iterator[Json]:
        check_no_model(payload)
        stream = transport.lines(
            self._url("messages"),
            self._headers(),
            {"model": self.model.name, **message_request(payload)},
            configured=self.configured,
        )
        return chunks_of(transport.events(stream))

    def pass_on(self, action: str, payload: Json, headers: Mapping[str, str]) -> Json:
        return transport.ask(
            self._url(self.path(action)),
            foreign(headers, self._headers()),
            {**payload, "model": self.model.name},
            configured=self.configured,
        )

    def pass_on_stream(
        self, action: str, payload: Json, headers: Mapping[str, str]
    ) -> Iterator[bytes]:
        return transport.lines(
            self._url(self.path(action)),
            foreign(headers, self._headers()),
            {**payload, "model": self.model.name},
            configured=self.configured,
        )

    def usage(self, answer: Json) -> dict[str, int]:
        if answer.get("type") == "message_start":
            message = answer.get("message")
            told = message.get("usage") if isinstance(message, dict) else None
            begun = _counted(told)
            # What is counted at the end is more than what is counted at the beginning.
            begun.pop("output_tokens", None)
            begun.pop("total_tokens", None)
            return begun
        if answer.get("type") == "message_delta":
            told = answer.get("usage")
            output = told.get("output_tokens") if isinstance(told, dict) else None
            return {"output_tokens": output} if isinstance(output, int) else {}
        return _counted(answer.get("usage"))

    def _url(self, path: str) -> str:
        return below(self.model.auth_config.get("api_base") or _BASE, path)

    def _headers(self) -> dict[str, str]:
        return {
            "x-api-key": self.model.secret.get("api_key", ""),
            "anthropic-version": self.model.auth_config.get("version") or _VERSION,
        }


def message_request(payload: Json) -> Json:
    """A chat as the Messages API takes it, without the model.

    Raises:
        GatewayCallFailed: it asks for what the API does not have.
    """
    made = dict(payload)
    if "stop" in made:
        made["stop_sequences"] = made.pop("stop")
    if "top_p" in made and "temperature" in made:
        raise GatewayCallFailed(422, "Cannot set both 'temperature' and 'top_p' parameters.")
    most = made.pop("max_completion_tokens", None)
    made["max_tokens"] = made.get("max_tokens") or most or DEFAULT_MAX_TOKENS
    if made["max_tokens"] > MAX_MAX_TOKENS:
        raise GatewayCallFailed(
            422, f"Invalid value for max_tokens: cannot exceed {MAX_MAX_TOKENS}."
        )
    if (count := made.pop("n", 1)) != 1:
        raise GatewayCallFailed(
            422, f"'n' must be '1' for the Anthropic provider. Received value: '{count}'."
        )
    made.pop("stream_options", None)  # The API always tells the usage, and refuses the field.
    messages = made["messages"]
    system = "\n".join(_text(one.get("content")) for one in messages if one["role"] == "system")
    made["messages"] = [found for one in messages if (found := _message(one)) is not None]
    if "temperature" in made:
        made["temperature"] *= 0.5  # of a range that is half as wide
    if tools := made.pop("tools", None):
        made["tools"] = [_tool(tool) for tool in tools]
    if wanted := made.pop("tool_choice", None):
        made["tool_choice"] = (
            {"type": _TOOL_CHOICES[wanted]}
            if isinstance(wanted, str)
            else {"type": "tool", "name": wanted["function"]["name"]}
        )
    system = _shaped(made, system)
    return made | ({"system": system} if system else {})


def completion_of(answer: Json) -> Json:
    """A message as a chat's completion."""
    try:
        blocks = answer["content"]
        if isinstance(blocks, str):
            blocks = [{"type": "text", "text": blocks}]
        texts = [one[one["type"]] for one in blocks if one["type"] in ("text", "thinking")]
        calls = [
            completions.tool_call(one["id"], one["name"], json.dumps(one["input"]))
            for one in blocks
            if one["type"] == "tool_use"
        ]
        made = completions.choice(
            0, "".join(texts) or None, calls, _finish_reason(answer["stop_reason"]), answer["role"]
        )
        return completions.completion(
            answer["id"], int(time.time()), answer["model"], [made], _usage(answer["usage"])
        )
    except (KeyError, TypeError) as error:
        raise misunderstood(error) from None


def chunks_of(events: Iterator[Json]) -> Iterator[Json]:
    """A stream of a message's events as a stream of a chat's chunks."""
    answer_id, model, told = None, "", dict[str, Any]()
    calls: dict[Any, int] = {}
    for event in events:
        kind = event.get("type")
        if kind == "message_start":
            message = event["message"]
            answer_id, model = message["id"], message["model"]
            told = {k: v for k, v in (message.get("usage") or {}).items() if k != "output_tokens"}
            continue
        if kind == "error":
            raise GatewayCallFailed(502, (event.get("error") or {}).get("message", "error"))
        if kind not in ("message_delta", "content_block_start", "content_block_delta"):
            continue
        said = event.get("delta") or event.get("content_block") or {}
        if said.get("type") == "tool_use":
            calls[event.get("index")] = len(calls)
        usage = None
        if kind == "message_delta":
            told |= {"output_tokens": (event.get("usage") or {}).get("output_tokens")}
            usage = _usage(told)
        made = _delta(said, calls.get(event.get("index"), 0))
        yield completions.chunk(answer_id, int(time.time()), model, [made], usage)


def _delta(said: Mapping[str, Any], call: int) -> Json:
    stop = said.get("stop_reason")
    finish = None if stop is None else _finish_reason(stop)
    if said.get("type") == "tool_use":
        begun = completions.call_delta(
            call, call_id=said.get("id"), kind="function", name=said.get("name")
        )
        return completions.delta(0, finish, tool_calls=[begun])
    if said.get("type") == "input_json_delta":
        more = completions.call_delta(call, arguments=said.get("partial_json"))
        return completions.delta(0, finish, tool_calls=[more])
    return completions.delta(0, finish, content=said.get("text"))


def _message(message: Json) -> Json | None:
    """None for one that is told elsewhere, or by nobody whom the API knows."""
    role, content = message["role"], message.get("content")
    if role == "user":
        return {**message, "content": _parts(content)} if isinstance(content, list) else message
    if role == "assistant":
        calls = message.get("tool_calls")
        if calls is None:
            return message
        said = [{"type": "text", "text": content}] if isinstance(content, str) and content else []
        return {"role": role, "content": [*said, *map(_tool_use, calls)]}
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
        given = json.loads(function.get("arguments") or "{}")
    except ValueError:
        raise GatewayCallFailed(
            422, f"The arguments of the tool call {call['id']!r} are no JSON."
        ) from None
    return {"type": "tool_use", "id": call["id"], "name": function["name"], "input": given}


def _parts(content: list[Any]) -> list[Any]:
    made = []
    for part in content:
        if isinstance(part, dict) and part.get("type") == "image_url":
            url = (part.get("image_url") or {}).get("url", "")
            found = base64_parts(url)
            if found is None:
                source = {"type": "url", "url": url}
            else:
                source = {"type": "base64", "media_type": found[0], "data": found[1]}
            made.append({"type": "image", "source": source})
        else:
            made.append(part)
    return made


def _tool(tool: Json) -> Json:
    if tool.get("type") != "function":
        raise GatewayCallFailed(
            422,
            f"Only function calling tool is supported, but received tool type {tool.get('type')}",
        )
    function = tool["function"]
    described = {"description": function["description"]} if function.get("description") else {}
    schema = function.get("parameters") or {"type": "object", "properties": {}}
    return {"name": function["name"], **described, "input_schema": schema}


def _shaped(made: Json, system: str) -> str:
    """Takes the form of the answer out of a request and puts it where the API has it; gives what
    the system says then."""
    wanted = made.pop("response_format", None) or {}
    if wanted.get("type") == "json_schema" and "json_schema" in wanted:
        schema = json.loads(json.dumps(wanted["json_schema"].get("schema", {})))
        if _closed(schema):
            made["output_config"] = {"format": {"type": "json_schema", "schema": schema}}
    elif wanted.get("type") == "json_object":
        return f"{system}\n{JSON_ONLY}" if system else JSON_ONLY
    return system


def _closed(schema: Any) -> bool:
    """Whether every object of a schema names its properties, and then says that it has no others:
    the API takes no other schemas."""
    if isinstance(schema, list):
        return all(_closed(one) for one in schema)
    if not isinstance(schema, dict):
        return True
    if schema.get("type") == "object":
        if "properties" not in schema:
            return False
        schema["additionalProperties"] = False
    return all(_closed(value) for value in schema.values())


def _text(content: Any) -> str:
    if isinstance(content, list):
        return "".join(part.get("text", "") for part in content if isinstance(part, dict))
    return content or ""


def _finish_reason(stop_reason: Any) -> str:
    return {"max_tokens": "length", "tool_use": "tool_calls"}.get(stop_reason, "stop")


def _usage(told: Mapping[str, Any]) -> Json:
    """Anthropic counts what a cache read or wrote apart from the input; a chat counts it in."""
    read, written = told.get("cache_read_input_tokens"), told.get("cache_creation_input_tokens")
    prompt, output = told.get("input_tokens"), told.get("output_tokens")
    if prompt is not None:
        prompt += (read or 0) + (written or 0)
    total = None if prompt is None or output is None else prompt + output
    known = (
        "input_tokens",
        "output_tokens",
        "cache_read_input_tokens",
        "cache_creation_input_tokens",
    )
    more = {name: value for name, value in told.items() if name not in known}
    if written is not None:
        more["cache_creation_input_tokens"] = written
    return completions.usage(prompt, output, total, read, more)


def _counted(told: Any) -> dict[str, int]:
    found = counted(told, "input_tokens", "output_tokens", cached="cache_read_input_tokens")
    written = told.get("cache_creation_input_tokens") if isinstance(told, dict) else None
    if isinstance(written, int):
        found["cache_creation_input_tokens"] = written
    beside = found.get("cache_read_input_tokens", 0) + found.get("cache_creation_input_tokens", 0)
    for name in {"input_tokens", "total_tokens"} & found.keys():
        found[name] += beside
    return found
