"""Fills a gateway over HTTP with endpoints whose providers are servers of this machine."""

from __future__ import annotations

import base64
import json
import urllib.request
from typing import Any

from tests.servers import ADMIN

KEYS = {
    name: f"sk-{name}-0123456789abcdefghij" for name in ("openai", "anthropic", "gemini", "broken")
}


class Configuration:
    """Fills a gateway over HTTP."""

    def __init__(self, url: str) -> None:
        self._url = url
        self.said: list[str] = []

    def make(self, path: str, **fields: Any) -> dict[str, Any]:
        login = base64.b64encode(":".join(ADMIN).encode()).decode()
        request = urllib.request.Request(
            f"{self._url}/api/3.0/mlflow/gateway/{path}",
            json.dumps(fields).encode(),
            {"content-type": "application/json", "authorization": f"Basic {login}"},
        )
        with urllib.request.urlopen(request) as answer:
            text = answer.read().decode()
        self.said.append(text)
        (made,) = json.loads(text).values()
        return dict(made)

    def model(self, name: str, provider: str, url: str, model_name: str) -> str:
        secret = self.make(
            "secrets/create",
            secret_name=name,
            secret_value={"api_key": KEYS[name]},
            provider=provider,
            auth_config={"api_base": url},
        )
        made = self.make(
            "model-definitions/create",
            name=name,
            secret_id=secret["secret_id"],
            provider=provider,
            model_name=model_name,
        )
        return str(made["model_definition_id"])

    def endpoint(self, name: str, *models: str, usage_tracking: bool = False) -> str:
        """The first model is asked first, the others when it fails."""
        configs: list[dict[str, Any]] = [
            {"model_definition_id": model, "linkage_type": "FALLBACK", "fallback_order": order}
            for order, model in enumerate(models)
        ]
        configs[0] = {"model_definition_id": models[0], "linkage_type": "PRIMARY", "weight": 1}
        more: dict[str, Any] = {}
        if len(models) > 1:
            more = {"fallback_config": {"strategy": "SEQUENTIAL", "max_attempts": 1}}
        made = self.make(
            "endpoints/create",
            name=name,
            model_configs=configs,
            usage_tracking=usage_tracking,
            **more,
        )
        return str(made["endpoint_id"])
