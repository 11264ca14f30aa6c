"""OpenAI's API in detail: answers with all fields that the API reference shows, for comparing what
SDKs make of them."""

from __future__ import annotations

import base64
import json
import struct
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from tests.doubles.providers import Asked, Json, Told, events

FAILURES: Final[Mapping[int, Json]] = {
    400: {
        "message": "This model's maximum context length is 8192 tokens.",
        "type": "invalid_request_error",
        "param": "messages",
        "code": "context_length_exceeded",
    },
    401: {
        "message": "Incorrect API key provided.",
        "type": "invalid_request_error",
        "param": None,
        "code": "invalid_api_key",
    },
    403: {
        "message": "Project does not have access to the model.",
        "type": "invalid_request_error",
        "param": None,
        "code": "model_not_found",
    },
    404: {
        "message": "The model does not exist.",
        "type": "invalid_request_error",
        "param": None,
        "code": "model_not_found",
    },
    422: {
        "message": "The request cannot be processed.",
        "type": "invalid_request_error",
        "param": None,
        "code": None,
    },
    429: {
        "message": "Rate limit reached for the model.",
        "type": "requests",
        "param": None,
        "code": "rate_limit_exceeded",
    },
    500: {
        "message": "The server had an error while processing your request.",
        "type": "server_error",
        "param": None,
        "code": None,
    },
}
WAIT: Final = 3.0
"""Seconds until the answer to the text ``wait``."""
JSON_TEXT: Final = '{"city": "Zürich", "population": 447082}'


def asked_failure(text: str) -> int | None:
    """The status that a text ``status NNN`` asks for. The text ``wait`` is answered late."""
    if text == "wait":
        time.sleep(WAIT)
    return int(text[7:10]) if text.startswith("status ") else None


def answer(request: Asked) -> Told:
    """A model at OpenAI. It calls the tools that it is given, unless it has their results."""
    path, body = request.path.partition("?")[0], request.body
    text = _text(body.get("messages") or body.get("input"))
    status = asked_failure(text)
    if status is not None:
        return Told(status, {"error": FAILURES[status]}, headers={"x-should-retry": "false"})
    for end, told in _ROUTES.items():
        if path.endswith(end):
            return told(body, text)
    return Told(404, {"error": FAILURES[404]})


def _text(messages: Any) -> str:
    """The text of the last message, or the input itself."""
    if not isinstance(messages, list):
        return str(messages)
    last = messages[-1]
    if not isinstance(last, dict):
        return str(last)
    content = last.get("content") or last.get("output") or ""
    if isinstance(content, list):
        texts = [part["text"] for part in content if "text" in part]
        others = [part["type"] for part in content if "text" not in part]
        return " ".join([*texts, *others])
    return str(content)


def _has_results(messages: Any) -> bool:
    return isinstance(messages, list) and any(
        isinstance(message, dict)
        and (message.get("role") == "tool" or message.get("type") == "function_call_output")
        for message in messages
    )


def _calls(body: Json) -> list[Json]:
    """The calls of the first two functions that the body declares."""
    if _has_results(body.get("messages")):
        return []
    functions = [tool["function"] for tool in body.get("tools") or () if "function" in tool][:2]
    return [
        {
            "id": f"call_{number}a1B2",
            "type": "function",
            "function": {"name": function["name"], "arguments": arguments(function["parameters"])},
        }
        for number, function in enumerate(functions)
    ]


def arguments(schema: Json) -> str:
    """Arguments as a schema wants them."""
    return json.dumps(
        {name: _value(field) for name, field in schema.get("properties", {}).items()},
        ensure_ascii=False,
    )


def _value(field: Json) -> Any:
    kinds: dict[str, Any] = {
        **{"string": "Zürich", "integer": 447082, "number": 1.5, "boolean": True},
        "array": ["a", "ü"],
    }
    return kinds.get(field.get("type", "string"), "Zürich")


_USAGE: Final[Json] = {
    "prompt_tokens": 19,
    "completion_tokens": 10,
    "total_tokens": 29,
    "prompt_tokens_details": {"cached_tokens": 4, "audio_tokens": 0},
    "completion_tokens_details": {
        "reasoning_tokens": 3,
        "audio_tokens": 0,
        "accepted_prediction_tokens": 0,
        "rejected_prediction_tokens": 0,
    },
}


def _chat(body: Json, text: str) -> Told:
    calls = _calls(body)
    shape = (body.get("response_format") or {}).get("type")
    content = JSON_TEXT if shape in ("json_schema", "json_object") else f"echo: {text}"
    head: Json = {
        "id": "chatcmpl-B9MBs8CjcvOU2jLn4n570S5qMJKcT",
        "created": 1741569952,
        "model": f"{body['model']}-2024-08-06",
        "service_tier": "default",
        "system_fingerprint": "fp_44709d6fcb",
    }
    if body.get("stream"):
        return _chat_stream(body, head, content, calls)
    message = {
        "role": "assistant",
        "content": None if calls else content,
        **({"tool_calls": calls} if calls else {}),
        "refusal": None,
        "annotations": [],
    }
    choices = [
        {
            "index": index,
            "message": message,
            "logprobs": _logprobs() if body.get("logprobs") else None,
            "finish_reason": "tool_calls" if calls else "stop",
        }
        for index in range(body.get("n") or 1)
    ]
    return Told(body={**head, "object": "chat.completion", "choices": choices, "usage": _USAGE})


def _logprobs() -> Json:
    token = {"token": "ü", "logprob": -0.25, "bytes": [195, 188]}
    return {"content": [{**token, "top_logprobs": [token]}], "refusal": None}


def _chat_stream(body: Json, head: Json, content: str, calls: list[Json]) -> Told:
    head = {**head, "object": "chat.completion.chunk"}
    wants_usage = bool((body.get("stream_options") or {}).get("include_usage"))
    deltas: list[Json] = [{"role": "assistant", "content": "" if not calls else None}]
    if calls:
        for index, call in enumerate(calls):
            function = call["function"]
            start = {**call, "index": index, "function": {**function, "arguments": ""}}
            deltas.append({"tool_calls": [start]})
            pieces = [function["arguments"][at : at + 7] for at in range(0, 70, 7)]
            deltas += [
                {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}
                for piece in pieces
                if piece
            ]
    else:
        deltas += [{"content": content[at : at + 6]} for at in range(0, len(content), 6)]
    usage: Json = {"usage": None} if wants_usage else {}
    chunks = [
        {
            **head,
            "choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": None}],
            **usage,
            "obfuscation": "x7Yk",
        }
        for delta in deltas
    ]
    end = {
        "index": 0,
        "delta": {},
        "logprobs": None,
        "finish_reason": "tool_calls" if calls else "stop",
    }
    chunks.append({**head, "choices": [end], **usage})
    if wants_usage:
        chunks.append({**head, "choices": [], "usage": _USAGE})
    return events(*chunks)


def _embeddings(body: Json, _: str) -> Told:
    texts = body["input"] if isinstance(body["input"], list) else [body["input"]]
    vectors = [[0.5, -0.25, float(len(text))] for text in texts]
    is_packed = body.get("encoding_format") == "base64"
    data = [
        {
            "object": "embedding",
            "index": index,
            "embedding": base64.b64encode(struct.pack("<3f", *vector)).decode()
            if is_packed
            else vector,
        }
        for index, vector in enumerate(vectors)
    ]
    usage = {"prompt_tokens": 8, "total_tokens": 8}
    return Told(body={"object": "list", "data": data, "model": body["model"], "usage": usage})


def _response(body: Json, text: str) -> Told:
    tools = [tool for tool in body.get("tools") or () if tool["type"] == "function"]
    shape = ((body.get("text") or {}).get("format") or {"type": "text"})["type"]
    if tools and not _has_results(body["input"]):
        call = {
            "type": "function_call",
            "id": "fc_67ca09c6bedc8190a7abfec07b1a1332",
            "call_id": "call_unLAR8MvFNptuiZK6K6HCy5k",
            "name": tools[0]["name"],
            "arguments": arguments(tools[0]["parameters"]),
            "status": "completed",
        }
        output = [call]
    else:
        content = {
            "type": "output_text",
            "text": JSON_TEXT if shape == "json_schema" else f"echo: {text}",
            "annotations": [],
            "logprobs": [],
        }
        output = [
            {"type": "reasoning", "id": "rs_1", "summary": []},
            {
                "type": "message",
                "id": "msg_67ccd2bf17f0819081ff3bb2cf6508e6",
                "status": "completed",
                "role": "assistant",
                "content": [content],
            },
        ]
    response: Json = {
        "id": "resp_67ccd2bed1ec8190b14f964abc0542670bb6a6b452d3795b",
        "object": "response",
        "created_at": 1741476542,
        "status": "completed",
        "background": False,
        "error": None,
        "incomplete_details": None,
        "instructions": body.get("instructions"),
        "max_output_tokens": None,
        "model": f"{body['model']}-2025-04-14",
        "output": output,
        "parallel_tool_calls": True,
        "previous_response_id": None,
        "reasoning": {"effort": None, "summary": None},
        "service_tier": "default",
        "store": True,
        "temperature": 1.0,
        "text": {"format": (body.get("text") or {}).get("format") or {"type": "text"}},
        "tool_choice": "auto",
        "tools": tools,
        "top_p": 1.0,
        "truncation": "disabled",
        "usage": {
            "input_tokens": 36,
            "input_tokens_details": {"cached_tokens": 4},
            "output_tokens": 87,
            "output_tokens_details": {"reasoning_tokens": 30},
            "total_tokens": 123,
        },
        "user": None,
        "metadata": {},
    }
    return _response_stream(response) if body.get("stream") else Told(body=response)


def _response_stream(response: Json) -> Told:
    begun = {**response, "status": "in_progress", "output": [], "usage": None}
    told: list[Json] = [
        {"type": "response.created", "response": begun},
        {"type": "response.in_progress", "response": begun},
    ]
    for index, item in enumerate(response["output"]):
        at = {"item_id": item["id"], "output_index": index}
        empty: Json = {"content": []} if "content" in item else {}
        if "arguments" in item:
            empty = {"arguments": ""}
        told.append(
            {"type": "response.output_item.added", "output_index": index, "item": {**item, **empty}}
        )
        if item["type"] == "message":
            told += _text_events(item["content"][0], {**at, "content_index": 0})
        elif "arguments" in item:
            text, name = item["arguments"], "response.function_call_arguments"
            told += [
                {"type": f"{name}.delta", **at, "delta": text[start : start + 9]}
                for start in range(0, len(text), 9)
            ]
            told.append({"type": f"{name}.done", **at, "arguments": text, "name": item["name"]})
        told.append({"type": "response.output_item.done", "output_index": index, "item": item})
    told.append({"type": "response.completed", "response": response})
    numbered = [{**event, "sequence_number": number} for number, event in enumerate(told)]
    return events(*numbered, named=True, done=False)


def _text_events(part: Json, at: Json) -> list[Json]:
    text = part["text"]
    deltas = [
        {"type": "response.output_text.delta", **at, "delta": text[start : start + 8]}
        for start in range(0, len(text), 8)
    ]
    return [
        {"type": "response.content_part.added", **at, "part": {**part, "text": ""}},
        *({**delta, "logprobs": []} for delta in deltas),
        {"type": "response.output_text.done", **at, "text": text, "logprobs": []},
        {"type": "response.content_part.done", **at, "part": part},
    ]


_ROUTES: Final[Mapping[str, Callable[[Json, str], Told]]] = {
    "/chat/completions": _chat,
    "/embeddings": _embeddings,
    "/responses": _response,
}
