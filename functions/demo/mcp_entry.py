"""Lists this deployment's own MCP server (``/mcp``) in the registry of MCP servers."""

from __future__ import annotations

import os
from typing import Final

from mlcore.http.api_client import API_URL, ApiClient

SERVER: Final = "mlflow-serverless/tracking"
VERSION: Final = "1.0.0"
_PATH: Final = "/3.0/mlflow/mcp-servers"
_DESCRIPTION: Final = (
    "Tools with which agents read this server's experiments, runs, traces, models and prompts, and "
    "query its tables. They show what their caller may read."
)


def make(client: ApiClient, _experiment_id: str) -> None:
    url = f"{os.environ[API_URL].rstrip('/')}/mcp"
    client.create(_PATH, name=SERVER, description=_DESCRIPTION)
    server_json = {
        "name": SERVER,
        "version": VERSION,
        "title": "This MLflow server",
        "description": _DESCRIPTION,
        "remotes": [{"type": "streamable-http", "url": url}],
    }
    of_server = f"{_PATH}/{SERVER}"
    client.create(f"{of_server}/versions", server_json=server_json, status="active")
    endpoints = client.get(f"{of_server}/endpoints").get("mcp_access_endpoints", ())
    if not any(endpoint["url"] == url for endpoint in endpoints):
        client.post(f"{of_server}/endpoints", server_version=VERSION, url=url)


def remove(client: ApiClient, _experiment_id: str) -> None:
    """Deletes the demo's entry in the registry of MCP servers. Makes its version a draft first,
    because a server with an active version cannot be deleted."""
    client.remove("PATCH", f"{_PATH}/{SERVER}/versions/{VERSION}", status="draft")
    client.remove("DELETE", f"{_PATH}/{SERVER}")
