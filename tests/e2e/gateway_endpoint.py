"""An endpoint of the gateway of a running product, and plain calls of the product."""

from __future__ import annotations

import json
import urllib.request
from typing import Any

from tests.servers import Server

Json = dict[str, Any]


def call(server: Server, method: str, path: str, body: Json | None = None, **more: str) -> Json:
    request = urllib.request.Request(
        server.url + path,
        method=method,
        data=None if body is None else json.dumps(body).encode(),
        headers={"content-type": "application/json", **more},
    )
    with urllib.request.urlopen(request) as answer:
        content: Json = json.loads(answer.read() or b"{}")
    return content


def configure(server: Server, url: str) -> None:
    """The endpoint ``chat`` of the gateway."""
    path = "/api/3.0/mlflow/gateway"
    secret = call(
        server,
        "POST",
        f"{path}/secrets/create",
        {
            "secret_name": "key",
            "secret_value": {"api_key": "sk-0123456789"},
            "provider": "openai",
            "auth_config": {"api_base": url},
        },
    )["secret"]
    model = call(
        server,
        "POST",
        f"{path}/model-definitions/create",
        {
            "name": "model",
            "secret_id": secret["secret_id"],
            "provider": "openai",
            "model_name": "gpt-4o-mini",
        },
    )["model_definition"]
    linked = {
        "model_definition_id": model["model_definition_id"],
        "linkage_type": "PRIMARY",
        "weight": 1.0,
    }
    body = {"name": "chat", "model_configs": [linked], "usage_tracking": False}
    call(server, "POST", f"{path}/endpoints/create", body)
