"""Amazon Bedrock's Converse API, one form for the models of all who sell there, and chats told in
it."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from typing import Any, Final
from uuid import uuid4

from mlcore.errors import GatewayCallFailed
from mlcore.providers import completions
from mlcore.providers.anthropic import JSON_ONLY
from mlcore.providers.data_urls import base64_parts
from mlcore.providers.openai import misunderstood

Json = dict[str, Any]

_INFERENCE: Final = {"temperature": "temperature", "top_p": "topP", "stop": "stopSequences"}
_PICTURES: Final = {
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
    """A chat as the Converse API takes it; what that does not have is left out.

    Raises:
        GatewayCallFailed: the chat asks for what no model there can be told.
    """
    if (count := payload.get("n", 1)) != 1:
        raise GatewayCallFailed(
            422, f"'n' must be '1' for the Amazon Bedrock provider. Received value: '{count}'."
        )
    system: list[Json] = []
    messages: list[Json] = []
    for message in payload["messages"]:
        if message["role"] in ("system", "developer"):
            if text := _text(message.get("content")):
                system.append({"text": text})
            continue
        role = "assistant" if message["role"] == "assistant" else "user"
        blocks = _blocks(message)
        # Roles take turns, and the results of tools that were called at once come together.
        if messages and messages[-1]["role"] == role:
            messages[-1]["content"] += blocks
        elif blocks:
            messages.append({"role": role, "content": blocks})
    if wanted := _wanted_form(payload.get("response_format") or {}):
        system.append({"text": wanted})
    made: Json = {"messages": messages}
    if system:
        made["system"] = system
    inference = {told: payload[name] for name, told in _INFERENCE.items() if name in payload}
    if most := payload.get("max_tokens") or payload.get("max_completion_tokens"):
        inference["maxTokens"] = most
    if inference:
        made["inferenceConfig"] = inference
    if tools := _tool_config(payload, messages):
        made["toolConfig"] = tools
    return made


def completion_of(answer: Json, model: str) -> Json:
    """An answer of Converse as a chat's completion.

    Args:
        model: its name, which the API does not repeat.
    """
    try:
        blocks = answer["output"]["message"]["content"]
        texts = [one["text"] for one in blocks if "text" in one]
        calls = [
            completions.tool_call(used["toolUseId"], used["name"], json.dumps(used["input"]))
            for used in (one["toolUse"] for one in blocks if "toolUse" in one)
        ]
        made = completions.choice(
            0, "\n".join(texts) or None, calls, _finish_reason(answer["stopReason"])
        )
        return completions.completion(
            _answer_id(), int(time.time()), model, [made], _usage(answer["usage"])
        )
    except (AttributeError, KeyError, TypeError) as error:
        raise misunderstood(error) from None


def chunks_of(events: Iterator[tuple[str, Json]], model: str) -> Iterator[Json]:
    """The events of ConverseStream, each with its type, as a stream of a chat's chunks."""
    answer_id, created = _answer_id(), int(time.time())
    calls: dict[Any, int] = {}
    for kind, event in events:
        try:
            if kind == "metadata":
                usage = _usage(event["usage"])
                yield completions.chunk(answer_id, created, model, [completions.delta(0)], usage)
            elif (made := _delta(kind, event, calls)) is not None:
                yield completions.chunk(answer_id, created, model, [made], None)
        except (AttributeError, KeyError, TypeError) as error:
            raise misunderstood(error) from None


def _delta(kind: str, event: Json, calls: dict[Any, int]) -> Json | None:
    """None for an event of which a chat tells nothing.

    Args:
        calls: the tool calls so far, by the block that each is.
    """
    if kind == "messageStop":
        return completions.delta(0, _finish_reason(event["stopReason"]))
    block = event.get("contentBlockIndex")
    if kind == "contentBlockStart" and "toolUse" in event["start"]:
        used = event["start"]["toolUse"]
        calls[block] = len(calls)
        begun = completions.call_delta(
            calls[block],
            call_id=used["toolUseId"],
            kind="function",
            name=used["name"],
            arguments="",
        )
        return completions.delta(0, tool_calls=[begun])
    if kind == "contentBlockDelta":
        said = event["delta"]
        if "text" in said:
            return completions.delta(0, content=said["text"])
        if "toolUse" in said:
            more = completions.call_delta(calls[block], arguments=said["toolUse"]["input"])
            return completions.delta(0, tool_calls=[more])
    return None


def _blocks(message: Json) -> list[Json]:
    """What a message says; the API refuses empty texts."""
    content = message.get("content")
    if message["role"] == "tool":
        result = {
            "toolUseId": message.get("tool_call_id", ""),
            "content": [{"text": _text(content)}],
        }
        return [{"toolResult": result}]
    if isinstance(content, list):
        found = [_part(one) for one in content]
    else:
        found = [{"text": content or ""}]
    said = [one for one in found if one.get("text") != ""]
    return said + [{"toolUse": _tool_use(call)} for call in message.get("tool_calls") or ()]


def _part(part: Json) -> Json:
    kind = part["type"]
    if kind == "text":
        return {"text": part.get("text") or ""}
    if kind == "image_url":
        named = part.get("image_url")
        found = base64_parts(str(named.get("url", ""))) if isinstance(named, dict) else None
        if found is not None and found[0] in _PICTURES:
            return {"image": {"format": _PICTURES[found[0]], "source": {"bytes": found[1]}}}
        raise GatewayCallFailed(
            422,
            "Amazon Bedrock takes pictures as data URLs of image/png, image/jpeg, image/gif or "
            "image/webp alone.",
        )
    raise GatewayCallFailed(422, f"Amazon Bedrock cannot be sent parts of the type {kind!r}.")


def _tool_use(call: Json) -> Json:
    function = call["function"]
    given = function.get("arguments")
    try:
        told = {} if given is None else json.loads(given)
    except ValueError:
        raise GatewayCallFailed(
            422,
            "Invalid assistant tool call arguments: not valid JSON for "
            f"tool_call_id={call['id']}, tool_name={function['name']}.",
        ) from None
    return {"toolUseId": call["id"], "name": function["name"], "input": told}


def _tool_config(payload: Json, messages: list[Json]) -> Json | None:
    """None for no tools. The API has no word for tools that must not be used, and takes a message
    about one only beside its tools."""
    tools = [
        _tool(one["function"]) for one in payload.get("tools") or () if one["type"] == "function"
    ]
    choice = payload.get("tool_choice")
    told = any(
        "toolUse" in one or "toolResult" in one for said in messages for one in said["content"]
    )
    if not tools or (choice == "none" and not told):
        return None
    made: Json = {"tools": [{"toolSpec": one} for one in tools]}
    if choice == "required":
        made["toolChoice"] = {"any": {}}
    elif isinstance(choice, dict):
        made["toolChoice"] = {"tool": {"name": choice["function"]["name"]}}
    return made


def _tool(function: Json) -> Json:
    described = {"description": function["description"]} if function.get("description") else {}
    schema = function.get("parameters") or {"type": "object", "properties": {}}
    return {"name": function["name"], **described, "inputSchema": {"json": schema}}


def _wanted_form(form: Mapping[str, Any]) -> str:
    """The form of the answer in words, which models of all makers understand."""
    if form.get("type") == "json_schema" and "json_schema" in form:
        schema = json.dumps(form["json_schema"].get("schema", {}))
        return f"{JSON_ONLY} It follows this JSON schema: {schema}"
    return JSON_ONLY if form.get("type") == "json_object" else ""


def _text(content: Any) -> str:
    if isinstance(content, list):
        return "\n".join(part.get("text") or "" for part in content if part["type"] == "text")
    return content or ""


def _finish_reason(stop_reason: Any) -> str:
    return _FINISH_REASONS.get(stop_reason, "stop")


def _usage(told: Mapping[str, Any]) -> Json:
    """What a cache read or wrote is counted apart from the input; a chat counts it in."""
    read, written = told.get("cacheReadInputTokens"), told.get("cacheWriteInputTokens")
    prompt = told["inputTokens"] + (read or 0) + (written or 0)
    output = told["outputTokens"]
    more = {} if written is None else {"cache_creation_input_tokens": written}
    return completions.usage(prompt, output, prompt + output, read, more)


def _answer_id() -> str:
    """The API gives none, and clients of OpenAI's expect one."""
    return f"chatcmpl-{uuid4().hex}"
