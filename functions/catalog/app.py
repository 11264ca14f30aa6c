"""The routes of the catalog of models and MCP servers, in both versions of its API."""

from __future__ import annotations

from typing import Final

from catalog import models, registering, servers, sources
from catalog.answers import MANNER, MODELS, OLD, SERVERS, V1, Function, answering
from mlcore.http import PlainRoute, lambda_handler

_MODEL: Final = "/sources/{source_id}/models/{model_name+}"

_MODELS: Final[tuple[tuple[str, str, Function, str], ...]] = (
    ("GET", "/sources", sources.list_sources, "requests.anybody"),
    ("GET", "/labels", sources.list_labels, "requests.anybody"),
    ("GET", "/models", models.list_models, "requests.anybody"),
    ("GET", "/models/filter_options", models.filter_options, "requests.anybody"),
    (
        "GET",
        f"{_MODEL}/artifacts/performance",
        models.list_performance,
        "requests.anybody",
    ),
    ("GET", f"{_MODEL}/artifacts", models.list_artifacts, "requests.anybody"),
    ("GET", _MODEL, models.get_model, "requests.anybody"),
    ("POST", f"{_MODEL}:register", registering.register, "catalog.register"),
)
_SERVERS: Final[tuple[tuple[str, str, Function, str], ...]] = (
    ("GET", "/mcp_servers", servers.list_servers, "requests.anybody"),
    ("GET", "/mcp_servers/filter_options", servers.filter_options, "requests.anybody"),
    ("GET", "/mcp_servers/{server_id}", servers.get_server, "requests.anybody"),
    ("GET", "/mcp_servers/{server_id}/tools", servers.list_tools, "requests.anybody"),
    ("GET", "/mcp_servers/{server_id}/tools/{tool_name}", servers.get_tool, "requests.anybody"),
)

PLAIN_ROUTES: Final = tuple(
    PlainRoute(method, f"{api}/{version}{path}", answering(function), policy)
    for api, table in ((MODELS, _MODELS), (SERVERS, _SERVERS))
    for version in (V1, OLD)
    for method, path, function, policy in table
)

handler = lambda_handler((), PLAIN_ROUTES, MANNER)
