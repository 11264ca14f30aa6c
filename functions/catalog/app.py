"""The routes of the catalog of models and MCP servers, in both versions of its API."""

from __future__ import annotations

from typing import Final

from catalog import models, registering, servers, sources
from catalog.answers import MANNER, MODELS, OLD, SERVERS, V1, Function, answering, parse
from mlcore.http import PlainRoute, lambda_handler

_MODEL: Final = "/sources/{source_id}/models/{model_name+}"

_ANYBODY: Final = "requests.anybody"
_MODELS: Final[tuple[tuple[str, str, Function, str, int], ...]] = (
    ("GET", "/sources", sources.list_sources, _ANYBODY, 1),
    ("GET", "/labels", sources.list_labels, _ANYBODY, 1),
    ("GET", "/models", models.list_models, _ANYBODY, 3),
    ("GET", "/models/filter_options", models.filter_options, _ANYBODY, 2),
    ("GET", f"{_MODEL}/artifacts/performance", models.list_performance, _ANYBODY, 3),
    ("GET", f"{_MODEL}/artifacts", models.list_artifacts, _ANYBODY, 3),
    ("GET", _MODEL, models.get_model, _ANYBODY, 3),
    ("POST", f"{_MODEL}:register", registering.register, "catalog.register", 21),
)
_SERVER: Final = "/mcp_servers/{server_id}"
_SERVERS: Final[tuple[tuple[str, str, Function, str, int], ...]] = (
    ("GET", "/mcp_servers", servers.list_servers, _ANYBODY, 2),
    ("GET", "/mcp_servers/filter_options", servers.filter_options, _ANYBODY, 2),
    ("GET", _SERVER, servers.get_server, _ANYBODY, 2),
    ("GET", f"{_SERVER}/tools", servers.list_tools, _ANYBODY, 2),
    ("GET", f"{_SERVER}/tools/{{tool_name}}", servers.get_tool, _ANYBODY, 2),
)

PLAIN_ROUTES: Final = (
    *(
        PlainRoute(
            method,
            f"{api}/{version}{path}",
            registering.parse_registration if function is registering.register else parse,
            answering(function),
            policy,
            cost=cost,
        )
        for api, table in ((MODELS, _MODELS), (SERVERS, _SERVERS))
        for version in (V1, OLD)
        for method, path, function, policy, cost in table
    ),
    # Of the old version alone.
    PlainRoute(
        "GET",
        f"{SERVERS}/{OLD}{_SERVER}/logo",
        parse,
        answering(servers.get_logo),
        _ANYBODY,
        cost=2,
    ),
)

handler = lambda_handler((), PLAIN_ROUTES, MANNER)
