"""Calls the functions of the skill registry and of the artifact proxy as API Gateway would."""

from __future__ import annotations

import base64
import json
from typing import Any, NamedTuple
from urllib.parse import unquote

import artifacts.app
import skills.app
from tests.contract.skill_requests import ROOT, Call

FILES = "/api/2.0/mlflow-artifacts/artifacts"


class Reply(NamedTuple):
    status: int
    body: Any
    """Decoded JSON, or the text where it is none."""

    @property
    def code(self) -> str:
        return str(self.body.get("error_code", "")) if isinstance(self.body, dict) else ""


def ask(
    call: Call, *, workspace: str = "", user: str = "", admin: bool = False, root: str = ROOT
) -> Reply:
    """What the function answers to a call.

    Args:
        user: who has logged in; "" for nobody.
        root: the path that the call's path is below.
    """
    path, _, query = call.path.partition("?")
    headers = {"host": "localhost"}
    if call.content_type:
        headers["content-type"] = call.content_type
    if call.content is not None:
        headers["content-length"] = str(len(call.content))
    if workspace:
        headers["x-mlflow-workspace"] = workspace
    context: dict[str, Any] = {"http": {"method": call.method}, "requestId": "test"}
    if user:
        claims = {"username": user, "is_admin": admin, "method": "basic"}
        context["authorizer"] = {"lambda": claims}
    event = {
        "version": "2.0",
        "rawPath": root + unquote(path),
        "rawQueryString": query,
        "headers": headers,
        "requestContext": context,
        "isBase64Encoded": call.content is not None,
        "body": "" if call.content is None else base64.b64encode(call.content).decode(),
    }
    handler = skills.app.handler if "/mlflow/skills" in root else artifacts.app.handler
    answer = handler(event, None)
    text = answer["body"]
    if answer["isBase64Encoded"]:
        text = base64.b64decode(text).decode("utf-8", "replace")
    try:
        return Reply(answer["statusCode"], json.loads(text))
    except ValueError:
        return Reply(answer["statusCode"], text)
