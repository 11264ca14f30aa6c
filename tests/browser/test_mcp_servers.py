"""The MCP registry in the UI: the list of servers, and a server with its version and its tools."""

from __future__ import annotations

import pytest

from tests.browser.conftest import Data
from tests.browser.visitor import Visitor
from tests.differential.rest import Call

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(300),
]
ROOT = "/api/3.0/mlflow/mcp-servers"


def test_servers(visitor: Visitor, data: Data) -> None:
    server = "com.example/weather"
    server_json = {"name": server, "version": "1.0.0", "description": "Forecasts for sailors"}
    tools = [{"name": "forecast", "description": "Wind and waves"}]
    version = {"server_json": server_json, "tools": tools, "status": "active"}
    data.ask(Call("POST", f"{ROOT}/{server}/versions", version))
    endpoint = {"url": "https://weather.example/mcp", "server_alias": "latest"}
    data.ask(Call("POST", f"{ROOT}/{server}/endpoints", endpoint))
    visitor.open("/mcp-registry")
    visitor.looks("mcp-servers", "com.example/weather")
    visitor.go("/mcp-registry/com.example%2Fweather")
    visitor.looks("mcp-server", "Forecasts for sailors")
