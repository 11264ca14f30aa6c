"""Uploads of files through the artifact proxy."""

from __future__ import annotations

import base64
from typing import Any

import artifacts.app

Json = dict[str, Any]


def upload(path: str, data: bytes, method: str = "PUT", route: str = "artifacts") -> Json:
    event = {
        "version": "2.0",
        "rawPath": f"/api/2.0/mlflow-artifacts/{route}/{path}",
        "rawQueryString": "",
        "headers": {"host": "h:1", "content-type": "application/octet-stream"},
        "requestContext": {"http": {"method": method}, "requestId": "test"},
        "isBase64Encoded": True,
        "body": base64.b64encode(data).decode(),
    }
    if route != "artifacts":
        event["headers"] = {"host": "h:1", "content-type": "application/json"}
    answer: Json = artifacts.app.handler(event, None)
    return answer
