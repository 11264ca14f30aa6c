"""Translates chats to and from Amazon Bedrock's Converse API, which is the same for all models."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from typing import Any, Final
from uuid import uuid4

from mlcore.errors import GatewayCallFailed
from mlcore.providers import openai_answers, token_counts
from mlcore.providers.anthropic_requests import JSON_ONLY
from mlcore.providers.cache_markers import lifetime, marker_of, tool_marker
from mlcore.providers.data_urls import base64_parts
from mlcore.providers.openai import unexpected_answer
from mlcore.wire.json_text import parse_json_text

Json = dict[str, Any]

_INFERENCE_FIELDS: Final = {"temperature": "temperature", "top_p": "topP", "stop": "stopSequences"}
_IMAGE_FORMATS: Final = {
    "image/png": "png",
    "image/jpeg": "jpeg",
    "image/jpg": "jpeg",
    "image/gif": "gif",
    "image/webp": "webp",
}
_FINISH_REASONS: Final = {
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "content_filtered": "content_filter",
}


def request_of(payload: Json) -> Json:
    """Converts a chat to a request of Amazon Bedrock's Converse API; fields that the API does not
    have are left out. Raises GatewayCallFailed if the chat needs something that the API cannot
    express."""
    if (count := payload.get("n", 1)) != 1:
        raise GatewayCallFailed(
            422, f"'n' must be '1' for the Amazon Bedrock provider. Received value: '{count}'."
        )
    system: list[Json] = []
    messages: list[Json] = []
    for message in payload["messages"]:
        if message["role"] in ("system", "developer"):
            system += _system_blocks(message)
            continue
        role = "assistant" if message["role"] == "assistant" else "user"
        blocks = _blocks(message)
        # Roles must alternate, and the results of parallel tool calls go into one message.
        if messages and messages[-1]["role"] == role:
            messages[-1]["content"] += blocks
        elif blocks:
            messages.append({"role": role, "content": blocks})
    if format_text := _format_instruction(payload.get("response_format") or {}):
        system.append({"text": format_text})
    request: Json = {"messages": messages}
    if system:
        request["system"] = system
    inference = {
        converse_name: payload[name]
        for name, converse_name in _INFERENCE_FIELDS.items()
        if name in payload
    }
    if max_tokens := payload.get("max_tokens") or payload.get("max_completion_tokens"):
        inference["maxTokens"] = max_tokens
    if inference:
        request["inferenceConfig"] = inference
    if tools := _tool_config(payload, messages):
        request["toolConfig"] = tools
    return request


def completion_of(answer: Json, model: str) -> Json:
    """Converts an answer of Converse to a chat completion. Raises GatewayCallFailed (502) if the
    answer does not have the form of that API.

    Args:
        model: the model's name, which the API does not return.
    """
    try:
        blocks = answer["output"]["message"]["content"]
        texts = [block["text"] for block in blocks if "text" in block]
        calls = [
            openai_answers.tool_call(
                tool_use["toolUseId"], tool_use["name"], json.dumps(tool_use["input"])
            )
            for tool_use in (block["toolUse"] for block in blocks if "toolUse" in block)
        ]
        choice = openai_answers.choice(
            0, "\n".join(texts) or None, calls, _finish_reason(answer["stopReason"])
        )
        return openai_answers.completion(
            _answer_id(), int(time.time()), model, [choice], _usage(answer["usage"])
        )
    except (AttributeError, KeyError, TypeError) as error:
        raise unexpected_answer(error) from None


def chunks_of(events: Iterator[tuple[str, Json]], model: str) -> Iterator[Json]:
    """Converts (type, event) pairs of a ConverseStream to chunks of a chat completion, one by one.
    Raises GatewayCallFailed (502) if an event does not have the form of that API."""
    answer_id, created = _answer_id(), int(time.time())
    calls: dict[Any, int] = {}
    for event_type, event in events:
        try:
            if event_type == "metadata":
                usage = _usage(event["usage"])
                yield openai_answers.chunk(
                    answer_id, created, model, [openai_answers.delta(0)], usage
                )
            elif (chunk_delta := _delta(event_type, event, calls)) is not None:
                yield openai_answers.chunk(answer_id, created, model, [chunk_delta], None)
        except (AttributeError, KeyError, TypeError) as error:
            raise unexpected_answer(error) from None


def _delta(event_type: str, event: Json, calls: dict[Any, int]) -> Json | None:
    """Converts a stream event to the delta of a chunk; None for an event without a counterpart.

    Args:
        calls: the index of each tool call so far, by its content block; this function adds to it.
    """
    if event_type == "messageStop":
        return openai_answers.delta(0, _finish_reason(event["stopReason"]))
    block = event.get("contentBlockIndex")
    if event_type == "contentBlockStart" and "toolUse" in event["start"]:
        tool_use = event["start"]["toolUse"]
        calls[block] = len(calls)
        call_start = openai_answers.call_delta(
            calls[block],
            call_id=tool_use["toolUseId"],
            call_type="function",
            name=tool_use["name"],
            arguments="",
        )
        return openai_answers.delta(0, tool_calls=[call_start])
    if event_type == "contentBlockDelta":
        block_delta = event["delta"]
        if "text" in block_delta:
            return openai_answers.delta(0, content=block_delta["text"])
        if "toolUse" in block_delta:
            call_part = openai_answers.call_delta(
                calls[block], arguments=block_delta["toolUse"]["input"]
            )
            return openai_answers.delta(0, tool_calls=[call_part])
    return None


def _system_blocks(message: Json) -> list[Json]:
    """Converts instructions to blocks of the field ``system``: one text, or several if parts of it
    are to be cached."""
    content = message.get("content")
    if not isinstance(content, list) or not any(map(marker_of, content)):
        text = _text(content)
        return [{"text": text}, *_cache_point(message)] if text else []
    blocks: list[Json] = []
    for part in content:
        if part["type"] == "text" and part.get("text"):
            blocks += [{"text": part["text"]}, *_cache_point(part)]
    return blocks + _cache_point(message)


def _blocks(message: Json) -> list[Json]:
    """Converts the content of a chat message to Converse's content blocks, without empty texts,
    which the API refuses."""
    content = message.get("content")
    if message["role"] == "tool":
        result = {
            "toolUseId": message.get("tool_call_id", ""),
            "content": [{"text": _text(content)}],
        }
        last = content[-1] if isinstance(content, list) and content else {}
        return [{"toolResult": result}, *(_cache_point(message) or _cache_point(last))]
    blocks: list[Json] = []
    for part in content if isinstance(content, list) else [{"type": "text", "text": content}]:
        block = _part(part)
        if block.get("text") != "":
            blocks += [block, *_cache_point(part)]
    blocks += [{"toolUse": _tool_use(call)} for call in message.get("tool_calls") or ()]
    return blocks + (_cache_point(message) if blocks else [])


def _cache_point(marked: Json) -> list[Json]:
    """Returns a list with the ``cachePoint`` block to put after a part, message or tool that is
    marked to be cached; empty without a marker."""
    if not marker_of(marked):
        return []
    seconds = lifetime(marked)
    return [{"cachePoint": {"type": "default", **({"ttl": seconds} if seconds else {})}}]


def _part(part: Json) -> Json:
    part_type = part["type"]
    if part_type == "text":
        return {"text": part.get("text") or ""}
    if part_type == "image_url":
        image = part.get("image_url")
        media = base64_parts(str(image.get("url", ""))) if isinstance(image, dict) else None
        if media is not None and media[0] in _IMAGE_FORMATS:
            return {"image": {"format": _IMAGE_FORMATS[media[0]], "source": {"bytes": media[1]}}}
        raise GatewayCallFailed(
            422,
            "Amazon Bedrock accepts images only as data URLs of image/png, image/jpeg, image/gif "
            "or image/webp.",
        )
    raise GatewayCallFailed(
        422, f"Amazon Bedrock does not accept content parts of type {part_type!r}."
    )


def _tool_use(call: Json) -> Json:
    function = call["function"]
    arguments = function.get("arguments")
    try:
        tool_input = {} if arguments is None else parse_json_text(arguments)
    except ValueError:
        raise GatewayCallFailed(
            422,
            "Invalid assistant tool call arguments: not valid JSON for "
            f"tool_call_id={call['id']}, tool_name={function['name']}.",
        ) from None
    return {"toolUseId": call["id"], "name": function["name"], "input": tool_input}


def _tool_config(payload: Json, messages: list[Json]) -> Json | None:
    """Converts the tools of a chat to ``toolConfig``; None without tools.

    The API cannot forbid tools (``none``), and accepts messages with tool calls only together with
    their tools. So with ``none`` the tools are left out unless a message has tool calls.
    """
    tools: list[Json] = []
    for item in payload.get("tools") or ():
        if item["type"] == "function":
            tools += [{"toolSpec": _tool(item["function"])}, *_cache_point(tool_marker(item))]
    choice = payload.get("tool_choice")
    mentions_tools = any(
        "toolUse" in item or "toolResult" in item
        for message in messages
        for item in message["content"]
    )
    if not tools or (choice == "none" and not mentions_tools):
        return None
    config: Json = {"tools": tools}
    if choice == "required":
        config["toolChoice"] = {"any": {}}
    elif isinstance(choice, dict):
        config["toolChoice"] = {"tool": {"name": choice["function"]["name"]}}
    return config


def _tool(function: Json) -> Json:
    description_field = (
        {"description": function["description"]} if function.get("description") else {}
    )
    schema = function.get("parameters") or {"type": "object", "properties": {}}
    return {"name": function["name"], **description_field, "inputSchema": {"json": schema}}


def _format_instruction(response_format: Mapping[str, Any]) -> str:
    """Returns an instruction in words for the requested response format, which works with all
    models; an empty text if none is requested."""
    if response_format.get("type") == "json_schema" and response_format.get("json_schema"):
        schema = json.dumps(response_format["json_schema"].get("schema", {}))
        return f"{JSON_ONLY} It follows this JSON schema: {schema}"
    return JSON_ONLY if response_format.get("type") == "json_object" else ""


def _text(content: Any) -> str:
    if isinstance(content, list):
        texts = (part.get("text") for part in content if part["type"] == "text")
        return "\n".join(text for text in texts if isinstance(text, str))
    return content or ""


def _finish_reason(stop_reason: Any) -> str:
    return _FINISH_REASONS.get(stop_reason, "stop")


def _usage(counts: Mapping[str, Any]) -> Json:
    """Converts the API's token counts to OpenAI's form. The API counts tokens read from or written
    to a cache apart from the input; OpenAI's form includes them."""
    read, written = counts.get("cacheReadInputTokens"), counts.get("cacheWriteInputTokens")
    prompt = counts["inputTokens"] + (read or 0) + (written or 0)
    output = counts["outputTokens"]
    more = {} if written is None else {"cache_creation_input_tokens": written}
    more |= _cache_creation(counts.get("cacheDetails"))
    return openai_answers.usage(prompt, output, prompt + output, read, more)


def _cache_creation(details: Any) -> Json:
    """Returns the tokens that were written to a cache by how long it lives, in the form of
    Anthropic's API; empty if they are not reported."""
    if not isinstance(details, list):
        return {}
    names = {"5m": token_counts.FIVE_MINUTES, "1h": token_counts.AN_HOUR}
    tokens = dict.fromkeys(names.values(), 0)
    for detail in details:
        if (name := names.get(detail["ttl"])) is not None:
            tokens[name] += detail["inputTokens"]
    return {token_counts.CACHE_CREATION: tokens}


def _answer_id() -> str:
    """Returns a new random id for a completion: Bedrock returns none, and clients of OpenAI's API
    expect one."""
    return f"chatcmpl-{uuid4().hex}"
