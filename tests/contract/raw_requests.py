"""Requests to the gateway, mostly to its proxy, whose bodies and answers are bytes."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import gateway_calls.app

Json = dict[str, Any]

NO_HEADERS: Mapping[str, str] = MappingProxyType({})


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def send(
    method: str,
    path: str,
    body: bytes | None = None,
    *,
    headers: Mapping[str, str] = NO_HEADERS,
    query: str = "",
    handler: Any = gateway_calls.app.handler,
    caller: Json | None = None,
    root: str = "proxy/",
) -> Answer:
    sent = {"host": "localhost", **headers}
    if body is not None:
        sent.setdefault("content-length", str(len(body)))
    event = {
        "version": "2.0",
        "rawPath": f"/gateway/{root}{path}",
        "rawQueryString": query,
        "headers": sent,
        "requestContext": {
            "http": {"method": method},
            "requestId": "test",
            **({} if caller is None else {"authorizer": caller}),
        },
        "isBase64Encoded": body is not None,
        **({} if body is None else {"body": base64.b64encode(body).decode()}),
    }
    answer = handler(event, None)
    content = answer["body"]
    is_packed = answer["isBase64Encoded"]
    return Answer(
        answer["statusCode"],
        answer["headers"],
        base64.b64decode(content) if is_packed else content.encode(),
    )
