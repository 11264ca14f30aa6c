"""Gemini's API in detail: answers with all fields that the API reference shows, for comparing what
SDKs make of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from tests.doubles.detailed_openai import JSON_TEXT, arguments, asked_failure
from tests.doubles.providers import Asked, Json, Told, events

_STATUS_NAMES: Final[Mapping[int, str]] = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    422: "FAILED_PRECONDITION",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
}
_USAGE: Final[Json] = {
    "promptTokenCount": 11,
    "candidatesTokenCount": 7,
    "thoughtsTokenCount": 5,
    "cachedContentTokenCount": 2,
    "totalTokenCount": 23,
    "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 11}],
    "candidatesTokensDetails": [{"modality": "TEXT", "tokenCount": 7}],
}


def answer(request: Asked) -> Told:
    """A model of Gemini's. It calls the functions that it is given, unless it has their results."""
    path, body = request.path.partition("?")[0], request.body
    text = _text(body)
    status = asked_failure(text)
    if status is not None:
        error = {"code": status, "message": "refused", "status": _STATUS_NAMES[status]}
        return Told(status, {"error": error}, headers={"x-should-retry": "false"})
    model, _, method = path.rpartition("/")[2].partition(":")
    if method == "countTokens":
        return Told(body={"totalTokens": 31, "promptTokensDetails": _USAGE["promptTokensDetails"]})
    if method == "embedContent":
        return Told(body={"embedding": {"values": [0.5, -0.25, 3.0]}})
    if method == "batchEmbedContents":
        vectors = [{"values": [0.5, float(at)]} for at in range(len(body["requests"]))]
        return Told(body={"embeddings": vectors})
    if method not in ("generateContent", "streamGenerateContent"):
        return Told(404, {"error": {"code": 404, "message": path, "status": "NOT_FOUND"}})
    parts = _parts(body, text)
    if method == "generateContent":
        return Told(body=_told(model, parts, _USAGE, "STOP"))
    pieces = [piece for part in parts for piece in _pieces(part)]
    chunks = [_told(model, [piece], {"promptTokenCount": 11}, None) for piece in pieces[:-1]]
    return events(*chunks, _told(model, pieces[-1:], _USAGE, "STOP"), done=False)


def _text(body: Json) -> str:
    if "requests" in body:
        return "many"
    contents = body.get("contents") or [body["content"]]
    parts = contents[-1]["parts"]
    texts = [part["text"] for part in parts if "text" in part]
    others = [key for part in parts for key in part if key != "text"]
    return " ".join([*texts, *others])


def _parts(body: Json, text: str) -> list[Json]:
    functions = [
        function
        for tool in body.get("tools") or ()
        for function in tool.get("functionDeclarations") or tool.get("function_declarations") or ()
    ]
    if functions and "functionResponse" not in text and "function_response" not in text:
        return [
            {
                "functionCall": {
                    "name": function["name"],
                    "args": json.loads(_arguments(function)),
                },
                "thoughtSignature": "CiQB0e2Kb2FzZGY=",
            }
            for function in functions[:2]
        ]
    settings = body.get("generationConfig") or {}
    if settings.get("responseMimeType") == "application/json":
        return [{"text": JSON_TEXT}]
    return [{"text": "Let me see.", "thought": True}, {"text": f"echo: {text}"}]


def _arguments(function: Json) -> str:
    names = ("parametersJsonSchema", "parameters_json_schema", "parameters")
    schema: Json = next(filter(None, map(function.get, names)), {})
    fields: dict[str, Any] = {
        name: {**field, "type": str(field.get("type", "string")).lower()}
        for name, field in schema.get("properties", {}).items()
    }
    return arguments({"properties": fields})


def _pieces(part: Json) -> list[Json]:
    if "text" not in part:
        return [part]
    text = part["text"]
    return [{**part, "text": text[at : at + 6]} for at in range(0, len(text), 6)]


def _told(model: str, parts: list[Json], usage: Json, finish: str | None) -> Json:
    candidate: Json = {"content": {"parts": parts, "role": "model"}, "index": 0}
    if finish is not None:
        rating = {"category": "HARM_CATEGORY_HARASSMENT", "probability": "NEGLIGIBLE"}
        candidate |= {"finishReason": finish, "avgLogprobs": -0.0123, "safetyRatings": [rating]}
    return {
        "candidates": [candidate],
        "usageMetadata": usage,
        "modelVersion": f"{model}-001",
        "responseId": "mAitaLmkHPPlz7IPvtfUqQ4",
    }
