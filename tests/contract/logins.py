"""Calls handlers as somebody whom the authorizer has named; knows paths and no rules."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import Any
from urllib.parse import urlencode

import pytest

import experiments.app
import registry.app
import users.app
from authorizer.basic_authentication import authenticate
from mlcore.environment import AUTHENTICATION
from mlcore.http import lambda_handler
from mlcore.http.handler import Handler
from tests.contract.api import JSON, Answer


class Logins:
    """Handlers that ask who calls, as ``ask`` tells them."""

    def __init__(self, mode: str = "basic", workspace: str = "") -> None:
        self._workspace = workspace
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv(AUTHENTICATION, mode)
            self._handlers = {
                "experiments": lambda_handler(experiments.app.RPCS),
                "registered-models": lambda_handler(registry.app.RPCS),
                "model-versions": lambda_handler(registry.app.RPCS),
            }
            self._users = lambda_handler(users.app.RPCS)

    def ask(self, caller: dict[str, Any], method: str, path: str, **fields: Any) -> Answer:
        """Calls ``2.0/mlflow/…`` or ``3.0/mlflow/…``; the caller is the authorizer's answer."""
        domain = path.split("/")[2]
        handler = self._users if "permissions" in path else self._handlers.get(domain, self._users)
        sent = urlencode(fields) if method == "GET" else json.dumps(fields)
        status, text = called_as(caller, handler, method, f"/api/{path}", sent, self._workspace)
        body = json.loads(text) if text.startswith("{") else {"text": text}
        return Answer(status, body, len(text))


def called_as(
    caller: dict[str, Any],
    handler: Handler,
    method: str,
    path: str,
    sent: str,
    workspace: str = "",
) -> tuple[int, str]:
    """What a handler answers to somebody: status and body as sent.

    Args:
        caller: the authorizer's answer.
        sent: the query of a GET, the body of any other request.
    """
    event: dict[str, Any] = {
        "version": "2.0",
        "rawPath": path,
        "rawQueryString": sent if method == "GET" else "",
        "headers": {**JSON, **({"x-mlflow-workspace": workspace} if workspace else {})},
        "requestContext": {"http": {"method": method}, "requestId": "test", "authorizer": caller},
        "isBase64Encoded": False,
    }
    if method != "GET":
        event["body"] = sent
    answer = handler(event, None)
    return answer["statusCode"], str(answer["body"])


def named(username: str, *, is_admin: bool = False) -> dict[str, Any]:
    return {"lambda": {"username": username, "is_admin": is_admin, "method": "basic"}}


ADMIN = named("admin", is_admin=True)


def signed(arn: str) -> dict[str, Any]:
    return {"iam": {"userArn": arn, "accountId": "123456789012"}}


def proves(username: str, password: str, address: str = "192.0.2.1") -> bool:
    """Whether the authorizer knows the caller."""
    header = "Basic " + b64encode(f"{username}:{password}".encode()).decode()
    return authenticate(header, address) is not None
