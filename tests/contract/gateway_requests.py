"""Requests to the endpoints of the AI gateway, and the events of streamed answers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import gateway_calls.app
from mlcore.http.handler import Handler

Json = dict[str, Any]


def post(path: str, body: Any, **headers: str) -> tuple[int, str, str]:
    """Status, media type and text."""
    return ask("POST", path, body, headers=headers)


def ask(
    method: str,
    path: str,
    body: Any = None,
    *,
    handler: Handler = gateway_calls.app.handler,
    caller: Json | None = None,
    headers: Mapping[str, str] = MappingProxyType({}),
) -> tuple[int, str, str]:
    """Args:
    caller: the authorizer's answer.
    """
    answer = respond(method, path, body, handler=handler, caller=caller, headers=headers)
    return answer["statusCode"], answer["headers"]["content-type"], answer["body"]


def respond(
    method: str,
    path: str,
    body: Any = None,
    *,
    handler: Handler = gateway_calls.app.handler,
    caller: Json | None = None,
    headers: Mapping[str, str] = MappingProxyType({}),
) -> Json:
    """The answer that the function returns; the arguments are those of :func:`ask`."""
    sent = {"content-type": "application/json", "host": "localhost"}
    event = {
        "version": "2.0",
        "rawPath": f"/gateway/{path}",
        "rawQueryString": "",
        "headers": sent | {name.replace("_", "-"): value for name, value in headers.items()},
        "requestContext": {
            "http": {"method": method},
            "requestId": "test",
            **({} if caller is None else {"authorizer": caller}),
        },
        "isBase64Encoded": False,
        "body": body if isinstance(body, str) else json.dumps(body),
    }
    return handler(event, None)


def events_of(text: str) -> list[Json]:
    return [
        json.loads(line[6:])
        for line in text.splitlines()
        if line.startswith("data: ") and line != "data: [DONE]"
    ]


TOOL = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "Of a city",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    },
}


SAID: list[dict[str, Any]] = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "hello there"},
]
